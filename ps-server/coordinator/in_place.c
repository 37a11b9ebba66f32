/* Asks servers where they are, and finds what the job has had by then. */
#include "ps-server/coordinator/in_place.h"

#include "common/job/job_modes.h"
#include "ps-server/coordinator/checkpoint_ranks.h"
#include "ps-server/coordinator/checkpoint_schedule.h"
#include "ps-server/coordinator/coordinator.h"
#include "ps-server/coordinator/coordinator_port.h"

// A server that does not answer for so long may be lost, too: then a copy is what there is.
#define PATIENCE_MS 500

/* Whether gradients race in this phase, and servers have all that the job needs to go on. */
static bool may_go_on_in_place(const struct coordinator *coordinator)
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
        membership->servers[i].has_answered = false;
    }
    coordinator->in_place = (struct in_place){.is_asked = true,
                                              .asked_ms = now_ms,
                                              .unanswered = membership->server_count,
                                              .least_gradients = UINT64_MAX};
    coordinator_port_send_servers(&coordinator->port, membership, &keep);
}

/* Whether servers are to be asked: all of them are there. */
static bool may_ask(const struct coordinator *coordinator)
{
    return coordinator->started_ms > 0 && may_go_on_in_place(coordinator) &&
           are_servers_here(coordinator);
}

void in_place_ask(struct coordinator *coordinator, uint64_t now_ms)
{
    if (coordinator->state == COORDINATOR_RENEWING && !coordinator->in_place.is_asked &&
        may_ask(coordinator)) {
        ask(coordinator, now_ms);
    }
}

bool in_place_awaits(const struct coordinator *coordinator, uint64_t now_ms)
{
    const struct in_place *in_place = &coordinator->in_place;
    return in_place->is_asked && may_ask(coordinator) && in_place->unanswered > 0 &&
           in_place->least_gradients > 0 && now_ms - in_place->asked_ms < PATIENCE_MS;
}

void in_place_take(struct coordinator *coordinator, const struct sender *from,
                   const struct message *message)
{
    struct in_place *in_place = &coordinator->in_place;
    if (from->role != ROLE_SERVER || !in_place->is_asked || from->slot->has_answered) {
        return;
    }
    from->slot->has_answered = true;
    in_place->unanswered--;
    if (message->step < in_place->least_gradients) {
        in_place->least_gradients = message->step;
    }
    if (message->report != NULL) {
        checkpoint_counts_note(&coordinator->checkpointing, from->index, message->report);
    }
}

/* The periods that are over at a step. */
static uint32_t count_periods(const struct coordinator *coordinator, uint64_t step)
{
    uint64_t period = phases_period(coordinator->job, coordinator->train_samples);
    return period > 0 ? (uint32_t)(step / period) : 0;
}

/* Whether a period can be closed with what workers have reported: all have, or some have. If an
 * evaluation decides whether the target accuracy was reached, all have to have reported it. */
static bool can_close(const struct coordinator *coordinator, uint32_t index)
{
    const struct results *results = &coordinator->results;
    if (index >= results->period_count) {
        return false;
    }
    if (results_period_is_complete(results, index)) {
        return true;
    }
    const struct results_period *period = &results->periods[index];
    bool may_lack = coordinator->job->eval != EVALUATION_EPOCH ||
                    (period->test_images > 0 && coordinator->job->target_accuracy <= 0);
    return period->images > 0 && may_lack;
}

/* Whether a period ends at this step, and some worker has not reported its evaluation. It is made
 * again even if the period can be closed, as that takes only one step. */
static bool is_incomplete_at(const struct coordinator *coordinator, uint32_t index, uint64_t step)
{
    return coordinator->job->eval == EVALUATION_EPOCH &&
           !results_period_is_complete(&coordinator->results, index) &&
           phases_period_end(coordinator->job, coordinator->train_samples, index) == step;
}

/* The step that all servers have the gradients of, or, where an evaluation is made again, the one
 * before it. Servers then pass over the gradients that they have had since. */
static uint64_t find_step(const struct coordinator *coordinator)
{
    const struct job *job = coordinator->job;
    uint64_t step = coordinator->in_place.least_gradients / job->workers;
    uint32_t count = count_periods(coordinator, step);
    for (uint32_t i = 0; i < count; i++) {
        if (!can_close(coordinator, i) || is_incomplete_at(coordinator, i, step)) {
            return phases_period_end(job, coordinator->train_samples, i) - 1;
        }
    }
    return step;
}

/* Why the next generation does not begin in place at a step; NULL: it does. */
static const char *find_obstacle(const struct coordinator *coordinator, uint64_t step)
{
    const struct in_place *in_place = &coordinator->in_place;
    const struct phase *phase = &coordinator->checkpointing.phases.list[coordinator->phase_index];
    if (!in_place->is_asked || !are_servers_here(coordinator)) {
        return "a server is lost";
    }
    if (in_place->least_gradients > 0 && in_place->unanswered > 0) {
        return "a server has not said what it has";
    }
    if (step == 0 || step < phase->begin) {
        return "its phase had not begun at the step that all have";
    }
    return step >= phase->marks.end ? "servers have all gradients of the phase" : NULL;
}

uint64_t in_place_step(const struct coordinator *coordinator)
{
    if (coordinator->started_ms == 0 || !may_go_on_in_place(coordinator)) {
        return 0;
    }
    uint64_t step = find_step(coordinator);
    const char *obstacle = find_obstacle(coordinator, step);
    if (obstacle != NULL) {
        coordinator_port_say(&coordinator->port, false, "the job does not go on in place: %s",
                             obstacle);
    }
    return obstacle == NULL ? step : 0;
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
    for (uint32_t i = 0; i < count_periods(coordinator, step); i++) {
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

/* Closes a period for workers that have not reported it, as if their loss were the others' mean. */
static void share_period(struct results_period *period, uint32_t workers, uint64_t images)
{
    period->loss_sum *= (double)images / (double)period->images;
    period->images = images;
    period->report_count = workers;
}

/* Closes the periods before a step that not all workers have reported. */
static void close_periods(struct coordinator *coordinator, uint64_t step)
{
    const struct job *job = coordinator->job;
    uint64_t images = phases_period(job, coordinator->train_samples) * job_batch_present(job);
    uint32_t count = count_periods(coordinator, step);
    for (uint32_t i = 0; i < count; i++) {
        if (!results_period_is_complete(&coordinator->results, i)) {
            share_period(&coordinator->results.periods[i], job->workers, images);
            coordinator->port.period_closed(coordinator->port.context, i);
        }
    }
}

void in_place_describe(struct coordinator *coordinator, uint64_t step)
{
    struct checkpointing *of = &coordinator->checkpointing;
    of->step = step;
    close_periods(coordinator, step);
    for (uint32_t i = 0; i < coordinator->carriers.ranks; i++) {
        struct checkpoint_rank *rank = &of->collected[i];
        rank->open_period = open_period(coordinator, i, step);
        rank->results = coordinator->results.ranks[i];
        results_rank_share(&rank->results, step, step * job_batch_of(coordinator->job, i));
    }
    checkpoint_counts_add(coordinator, coordinator->membership.server_count);
}
