/* Asks servers where they are, and finds what the job has had by then. */
#include "ps-server/coordinator/in_place.h"

#include "common/job/job_modes.h"
#include "ps-server/coordinator/checkpoint_ranks.h"
#include "ps-server/coordinator/checkpoint_schedule.h"
#include "ps-server/coordinator/coordinator.h"
#include "ps-server/coordinator/coordinator_port.h"

// A server that does not answer for so long may be lost, too: then a copy is what there is.
#define PATIENCE_MS 500

/* Whether gradients race in the phase that the job is in, and servers have all that counts. */
static bool is_race(const struct coordinator *coordinator)
{
    const struct checkpointing *of = &coordinator->checkpointing;
    const struct job *job = coordinator->job;
    if (!of->plan.are_on || job->on_loss != ON_LOSS_REDEAL || job->compress.kind != CODEC_NONE ||
        coordinator->phase_index < of->phases.trial_count) {
        return false;
    }
    const struct phase *phase = &of->phases.list[coordinator->phase_index];
    return mode_updates_on_push(phase->mode.kind) &&
           checkpoint_schedule_is_race(coordinator, phase->begin + 1);
}

static bool are_servers_here(const struct coordinator *coordinator)
{
    const struct membership *membership = &coordinator->membership;
    for (uint32_t i = 0; i < membership->server_count; i++) {
        const struct slot *slot = &membership->servers[i];
        if (slot->state == SLOT_GONE || slot->state == SLOT_FREE || slot->closed_ms != 0) {
            return false;
        }
    }
    return membership->server_count > 0;
}

static void ask(struct coordinator *coordinator, uint64_t now_ms)
{
    const struct message keep = {.kind = MESSAGE_SNAPSHOT, .reason = STATUS_AGAIN};
    struct membership *membership = &coordinator->membership;
    for (uint32_t i = 0; i < membership->server_count; i++) {
        membership->servers[i].has_kept = false;
    }
    coordinator->in_place = (struct in_place){.is_asked = true,
                                              .asked_ms = now_ms,
                                              .missing = membership->server_count,
                                              .least = UINT64_MAX};
    coordinator_port_send_servers(&coordinator->port, membership, &keep);
}

bool in_place_awaits(struct coordinator *coordinator, uint64_t now_ms)
{
    struct in_place *of = &coordinator->in_place;
    if (coordinator->started_ms == 0 || !is_race(coordinator) || !are_servers_here(coordinator)) {
        return false;
    }
    if (!of->is_asked) {
        ask(coordinator, now_ms);
    }
    return of->missing > 0 && of->least > 0 && now_ms - of->asked_ms < PATIENCE_MS;
}

void in_place_take(struct coordinator *coordinator, const struct sender *from,
                   const struct message *message)
{
    struct in_place *of = &coordinator->in_place;
    if (from->role != ROLE_SERVER || !of->is_asked || from->slot->has_kept) {
        return;
    }
    from->slot->has_kept = true;
    of->missing--;
    of->least = message->step < of->least ? message->step : of->least;
    if (message->report != NULL) {
        checkpoint_counts_note(&coordinator->checkpointing, from->index, message->report);
    }
}

/* Whether every worker has reported what lies behind the step: the next generation does not make it
 * again. */
static bool is_reported(const struct coordinator *coordinator, uint64_t step)
{
    uint64_t period = phases_period(coordinator->job, coordinator->train_samples);
    uint64_t periods = period > 0 ? step / period : 0;
    return periods == 0 || results_period_is_complete(&coordinator->results, (uint32_t)periods - 1);
}

uint64_t in_place_step(const struct coordinator *coordinator)
{
    const struct in_place *of = &coordinator->in_place;
    if (!of->is_asked || of->missing > 0 || of->least == 0 || !is_race(coordinator) ||
        !are_servers_here(coordinator)) {
        return 0;
    }
    const struct phase *phase = &coordinator->checkpointing.phases.list[coordinator->phase_index];
    uint64_t step = of->least / coordinator->job->workers;
    bool is_within = step > 0 && step >= phase->begin && step < phase->marks.end;
    return is_within && is_reported(coordinator, step) ? step : 0;
}

/* What a rank has of the open period. Its worker may have made more steps than that, or fewer: see
 * checkpoint_ranks.c. */
static struct wire_report open_period(const struct coordinator *coordinator, uint32_t rank,
                                      uint64_t step)
{
    const struct results *results = &coordinator->results;
    const struct results_rank *of = &results->ranks[rank];
    uint64_t period = phases_period(coordinator->job, coordinator->train_samples);
    uint64_t made = step % period, closed_ns = 0;
    for (uint32_t i = 0; i < step / period; i++) {
        closed_ns += results->periods[i].total_ns_max;
    }
    struct wire_report open = {.steps = made,
                               .total_ns = of->total_ns > closed_ns ? of->total_ns - closed_ns : 0};
    if (of->images > 0) { // otherwise nobody knows a loss of it
        open.images = made * job_batch_of(coordinator->job, rank);
        open.loss_sum = of->loss * (double)open.images;
    }
    return open;
}

void in_place_describe(struct coordinator *coordinator, uint64_t step)
{
    struct checkpointing *of = &coordinator->checkpointing;
    of->step = step;
    for (uint32_t i = 0; i < coordinator->carriers.ranks; i++) {
        struct checkpoint_rank *rank = &of->collected[i];
        rank->open_period = open_period(coordinator, i, step);
        rank->results = coordinator->results.ranks[i];
        results_rank_share(&rank->results, step, step * job_batch_of(coordinator->job, i));
    }
    checkpoint_counts_add(coordinator, coordinator->membership.server_count);
}
