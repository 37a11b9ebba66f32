/* Chooses the steps of checkpoints that are due after a time, and waits for the last one. */
#include "ps-server/coordinator/checkpoint_schedule.h"

#include "ps-server/coordinator/coordinator.h"
#include "ps-server/coordinator/coordinator_port.h"

#include <string.h>

#define MARGIN_MIN 8

// How far ahead of everybody a step is named. One that was too near costs another try, so those for
// memory alone are nearer.
#define AHEAD_MS       2000
#define SPARE_AHEAD_MS 800
#define JOIN_AHEAD_MS  2000 // a step that is named for somebody who is to join then

// A copy for memory alone waits for the longer of two times: SPARE_TIMES what the last one took to
// come, as over a slow link, and its bytes at a hundredth of what a core copies in a second.
#define SPARE_MS_MIN           1000
#define SPARE_MS_MAX           600000
#define SPARE_BYTES_PER_SECOND (UINT64_C(10) << 20)
#define SPARE_TIMES            100

/* The phase that a step of a checkpoint is in, which may be over when it is collected. */
static const struct phase *phase_of(const struct coordinator *coordinator, uint64_t step)
{
    const struct phases *phases = &coordinator->checkpointing.phases;
    uint32_t index = 0;
    while (index + 1 < phases->count && step > phases->list[index].marks.end) {
        index++;
    }
    return &phases->list[index];
}

/* Servers have something to give where they hold the parameters. */
static bool has_servers(const struct coordinator *coordinator, uint64_t step)
{
    enum mode_kind kind = phase_of(coordinator, step)->mode.kind;
    return kind != MODE_RING && kind != MODE_LOCAL;
}

uint32_t checkpoint_schedule_shares(const struct coordinator *coordinator, uint64_t step)
{
    const struct checkpointing *of = &coordinator->checkpointing;
    return has_servers(coordinator, step) ? of->share_count : of->worker_count;
}

bool checkpoint_schedule_is_race(const struct coordinator *coordinator, uint64_t step)
{
    const struct phase *phase = phase_of(coordinator, step);
    bool is_free = strcmp(coordinator->job->order, "free") == 0;
    return phase->is_unsynchronised && (is_free || !mode_updates_on_push(phase->mode.kind));
}

/* How far apart checkpoints are; 0: they are so in steps. */
static uint64_t minutes_ms(const struct coordinator *coordinator)
{
    const struct checkpoint_every *every = &coordinator->job->checkpoint_every;
    return every->kind == CHECKPOINT_MINUTES ? every->number * 60000 : 0;
}

/* How long a copy of so many values for memory alone has to wait, if one takes `took_ms` to come.
 */
static uint64_t spare_ms(uint64_t value_count, uint64_t took_ms)
{
    uint64_t ms = value_count * sizeof(float) / (SPARE_BYTES_PER_SECOND / 1000);
    ms = ms < SPARE_TIMES * took_ms ? SPARE_TIMES * took_ms : ms;
    return ms < SPARE_MS_MIN ? SPARE_MS_MIN : ms > SPARE_MS_MAX ? SPARE_MS_MAX : ms;
}

/* Of all vectors of the last checkpoint. */
static uint64_t copied_values(const struct checkpointing *of)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < of->vectors.count; i++) {
        count += of->vectors.list[i].total;
    }
    return count;
}

/* The first copy of a small model comes at once. That of a large one would cost a short job more
 * than it is worth. Only the parameters are known by then, and how long copies took to come in the
 * generation before: this one has begun at one of them. */
static uint64_t first_spare_ms(const struct coordinator *coordinator)
{
    return spare_ms(coordinator->layout.value_count, coordinator->checkpointing.took_ms) -
           SPARE_MS_MIN;
}

void checkpoint_schedule_begin(struct coordinator *coordinator, uint64_t now_ms)
{
    struct checkpointing *of = &coordinator->checkpointing;
    uint64_t minutes = minutes_ms(coordinator);
    of->margin = MARGIN_MIN;
    of->due_ms = minutes > 0 ? now_ms + minutes : 0;
    of->spare_due_ms = job_may_redeal(coordinator->job) ? now_ms + first_spare_ms(coordinator) : 0;
}

/* Steps that were made at least, as far as the last signs of life tell: by the worker that has made
 * most, or where steps of workers are apart by all in the mean, which is what servers count. */
static uint64_t most_steps(const struct coordinator *coordinator, uint64_t begin)
{
    const struct carriers carriers = coordinator->carriers;
    uint64_t most = begin, beyond = 0;
    for (uint32_t i = 0; i < carriers.processes; i++) {
        uint64_t step = coordinator->membership.workers[i].step;
        uint64_t made = step > begin ? step - begin : 0;
        most = begin + made > most ? begin + made : most;
        beyond += made * carriers_block(carriers, i).count;
    }
    uint64_t mean = begin + beyond / carriers.ranks;
    return checkpoint_schedule_is_race(coordinator, mean + 1) ? mean : most;
}

/* How far the job has come, as far as the last signs of life tell. */
struct pace {
    uint64_t begin, most; // steps at the start of this process or generation, and now
    uint64_t ms;          // since
};

static struct pace pace_of(const struct coordinator *coordinator, uint64_t now_ms)
{
    const struct checkpointing *of = &coordinator->checkpointing;
    uint64_t begin = coordinator->resume != NULL ? coordinator->resume->step : 0;
    struct pace pace = {.begin = begin, .most = most_steps(coordinator, begin)};
    for (uint32_t i = 0; i < of->worker_count; i++) {
        pace.most = of->shares[i].last > pace.most ? of->shares[i].last : pace.most;
    }
    pace.ms = now_ms > coordinator->started_ms ? now_ms - coordinator->started_ms : 1;
    return pace;
}

/* How many steps are made in `ms` milliseconds. */
static uint64_t steps_ahead(const struct pace *pace, uint64_t ms)
{
    return pace->most > pace->begin ? (pace->most - pace->begin) * ms / pace->ms : 0;
}

/* Asks for snapshots of a step, for the disk or for memory alone; *due_ms tells which. */
static void announce_step(struct coordinator *coordinator, uint64_t step, const uint64_t *due_ms)
{
    struct checkpointing *of = &coordinator->checkpointing;
    of->announced = step;
    of->is_announced_spare = due_ms == &of->spare_due_ms;
    checkpointing_ask(coordinator, step);
}

/* Names a step that is ahead of everybody. *due_ms: when that is to be. */
static void announce(struct coordinator *coordinator, uint64_t *due_ms, uint64_t now_ms)
{
    struct checkpointing *of = &coordinator->checkpointing;
    const struct pace pace = pace_of(coordinator, now_ms);
    // Signs of life are half a second apart: at the pace so far, that many steps, and a few more.
    bool is_spare = due_ms == &of->spare_due_ms;
    uint64_t ahead = steps_ahead(&pace, is_spare ? SPARE_AHEAD_MS : AHEAD_MS);
    uint64_t step = checkpoints_fit(&of->plan, &of->phases, pace.most + ahead + of->margin);
    *due_ms = now_ms + (is_spare ? SPARE_AHEAD_MS / 8 : AHEAD_MS / 2); // again, if it was too near
    if (step >= of->plan.total) {
        *due_ms = 0; // the job ends there
        return;
    }
    uint64_t next = checkpoints_next(&of->plan, &of->phases, pace.most);
    if (is_spare && next != CHECKPOINTS_NEVER && next <= step + (step - pace.most)) {
        return; // one for the disk is near, which this one would hold up
    }
    announce_step(coordinator, step, due_ms);
}

/* Somebody waits to join after a certain step (--fault after=step:S,join): names that step as soon
 * as it is near, and any step once it is over. */
static void announce_join(struct coordinator *coordinator, uint64_t now_ms)
{
    struct checkpointing *of = &coordinator->checkpointing;
    uint64_t join = newcomers_awaited_step(coordinator);
    if (join == 0 || of->spare_due_ms == 0) {
        return;
    }
    const struct pace pace = pace_of(coordinator, now_ms);
    uint64_t step = checkpoints_fit(&of->plan, &of->phases, join);
    if (pace.most >= join) {
        announce(coordinator, &of->spare_due_ms, now_ms);
    } else if (step >= pace.most + steps_ahead(&pace, SPARE_AHEAD_MS) + of->margin &&
               step <= pace.most + steps_ahead(&pace, JOIN_AHEAD_MS)) {
        announce_step(coordinator, step, &of->spare_due_ms);
    }
}

void checkpoint_schedule_tick(struct coordinator *coordinator, uint64_t now_ms)
{
    struct checkpointing *of = &coordinator->checkpointing;
    if (of->announced == 0 && of->state == CHECKPOINTING_IDLE) {
        announce_join(coordinator, now_ms);
    }
    if (of->announced != 0 || of->state != CHECKPOINTING_IDLE) {
        return;
    }
    if (of->due_ms != 0 && now_ms >= of->due_ms) {
        announce(coordinator, &of->due_ms, now_ms);
    } else if (of->spare_due_ms != 0 && now_ms >= of->spare_due_ms && !of->is_mirroring) {
        announce(coordinator, &of->spare_due_ms, now_ms);
    }
}

void checkpoint_schedule_note(struct coordinator *coordinator, uint64_t step, uint64_t now_ms)
{
    struct checkpointing *of = &coordinator->checkpointing;
    if (of->announced == step) {
        of->margin = MARGIN_MIN;
    }
    if (of->announced == step && !of->is_announced_spare) {
        of->due_ms = now_ms + minutes_ms(coordinator);
    }
    if (job_may_redeal(coordinator->job)) {
        of->spare_due_ms = now_ms + spare_ms(copied_values(of), of->took_ms);
    }
}

/* ==========================================================================================
 * The last one
 * ========================================================================================== */

bool checkpoint_schedule_is_for_disk(const struct checkpointing *of, uint64_t step)
{
    return (step == of->announced && !of->is_announced_spare) ||
           checkpoints_are_due(&of->plan, &of->phases, step);
}

bool checkpoint_schedule_postpones(const struct checkpointing *of, uint64_t step)
{
    return of->has_rest && checkpoint_schedule_is_for_disk(of, step) &&
           (!of->hangs || step == of->plan.total);
}

bool checkpoint_schedule_holds_up(const struct coordinator *coordinator, uint64_t step)
{
    const struct checkpointing *of = &coordinator->checkpointing;
    // Before the next phase, and before their end, they wait for the one before to leave them.
    return (of->is_slow || of->hangs) && phase_of(coordinator, step)->marks.end == step;
}

/* Whether somebody has offered one for the disk that is not being collected or written. */
static bool is_offered(const struct checkpointing *of)
{
    for (uint32_t i = 0; i < of->share_count; i++) {
        uint64_t step = of->shares[i].offered;
        bool is_at_hand = of->state != CHECKPOINTING_IDLE && step == of->step;
        if (step != 0 && !is_at_hand && checkpoint_schedule_is_for_disk(of, step)) {
            return true;
        }
    }
    return false;
}

/* Whether a checkpoint is under way, or will be, that goes to the disk. */
static bool is_open(const struct checkpointing *of)
{
    return (of->state != CHECKPOINTING_IDLE && of->is_written) || is_offered(of);
}

/* Where none goes to the disk, nobody goes on from the end. */
static bool is_awaited(const struct checkpointing *of)
{
    return of->plan.are_written && !of->is_overdue && is_open(of);
}

bool checkpoint_schedule_awaits_last(struct coordinator *coordinator, uint64_t now_ms)
{
    struct checkpointing *of = &coordinator->checkpointing;
    bool waits = is_awaited(of);
    of->done_ms = waits && of->done_ms == 0 ? now_ms : of->done_ms;
    return waits;
}

void checkpoint_schedule_give_up_last(struct coordinator *coordinator, const char *why)
{
    coordinator->checkpointing.is_overdue = true;
    coordinator_port_say(&coordinator->port, true, "the job ends without its last checkpoint: %s",
                         why);
}

void checkpoint_schedule_judge_last(struct coordinator *coordinator, uint64_t now_ms)
{
    const struct checkpointing *of = &coordinator->checkpointing;
    if (of->done_ms == 0 || of->is_overdue || !is_open(of)) {
        return;
    }
    if (of->hangs) {
        checkpoint_schedule_give_up_last(coordinator, "the disk hangs, as was said");
    } else if ((double)(now_ms - of->done_ms) >= 1000 * job_disk_fail_s(coordinator->job)) {
        checkpoint_schedule_give_up_last(coordinator, "it has waited for long enough");
    }
}

bool checkpoint_schedule_lacks(const struct coordinator *coordinator, const struct sender *member)
{
    const struct checkpointing *of = &coordinator->checkpointing;
    const struct checkpoint_share *share = &of->shares[checkpointing_share_of(coordinator, member)];
    bool is_sent = of->state == CHECKPOINTING_COMMITTING ||
                   (of->state == CHECKPOINTING_COLLECTING && share->is_over);
    return is_awaited(of) && (!is_sent || is_offered(of));
}
