/* Sends snapshots of a shard, and fetches checkpoints for it. */
#include "ps-server/shard/service_checkpoint.h"

#include "common/base/log.h"
#include "ps-server/shard/service_state.h"
#include "ps-server/shard/shard_checkpoint.h"

#include <string.h>

static struct service_checkpoint *checkpoint_of(struct service *service)
{
    return &service->checkpoint;
}

static void tell(struct service *service, const struct message *message)
{
    if (!member_reaches(&service->member)) {
        return; // see service_checkpoint_offer_again
    }
    if (channel_send(service->channel, service->member.coordinator, message, NULL, NULL) !=
        STATUS_OK) {
        log_debug("cannot send %s: the coordinator is gone", message_kind_name(message->kind));
    }
}

/* Tells what was counted with a snapshot, if there is one. */
static void tell_snapshot(struct service *service, uint64_t steps, enum status reason,
                          const struct wire_report *counted)
{
    const struct message message = {.kind = MESSAGE_SNAPSHOT,
                                    .rank = service->index,
                                    .step = steps,
                                    .reason = reason,
                                    .report = counted};
    tell(service, &message);
}

static struct wire_report report_of(const struct staleness *staleness, uint64_t late_count)
{
    return (struct wire_report){
        .late = late_count,
        .staleness = staleness->counts,
        .staleness_bins = staleness_bins(staleness),
        .staleness_sum = staleness->sum,
        .staleness_max = staleness->max,
    };
}

/* That there is a snapshot, or why there is none. */
static void offer(struct service *service, uint64_t steps, enum status reason)
{
    struct service_checkpoint *of = checkpoint_of(service);
    bool is_told = member_reaches(&service->member);
    if (is_told) {
        of->told = steps;
    } else if (reason != STATUS_OK) {
        of->missed = steps;
    }
    of->is_offered = reason == STATUS_OK ? is_told : of->is_offered;
    const struct wire_report counted = report_of(&of->staleness, of->late_count);
    tell_snapshot(service, steps, reason, reason == STATUS_OK ? &counted : NULL);
}

/* The next generation goes on from what its servers have, if all of them have something. This one
 * goes on until it is known what comes: gradients of those milliseconds do not count. */
static void keep(struct service *service)
{
    struct kept_shard *kept = service->options->kept;
    const struct service_checkpoint *of = &service->checkpoint;
    bool has_some = service->shard != NULL && service->is_running && !of->is_restoring &&
                    kept_shard_take(kept, service->shard) == STATUS_OK;
    struct staleness staleness = service->staleness;
    uint64_t late_count = service->late_count;
    if (service->shard != NULL) {
        staleness_add_all(&staleness, shard_staleness(service->shard));
        late_count += shard_late_count(service->shard);
    }
    const struct wire_report counted = report_of(&staleness, late_count);
    tell_snapshot(service, has_some ? kept->gradients : 0, STATUS_AGAIN, &counted);
}

/* Of the phases before, and of this one. */
static void keep_counts(struct service *service)
{
    struct service_checkpoint *of = checkpoint_of(service);
    of->staleness = service->staleness;
    staleness_add_all(&of->staleness, shard_checkpoint_staleness(service->shard));
    of->late_count = service->late_count + shard_checkpoint_late_count(service->shard);
}

/* Waits for the checkpoint that comes behind `steps`. */
static void await_next(struct service *service, uint64_t steps)
{
    struct service_checkpoint *of = checkpoint_of(service);
    of->next = checkpoints_next(&of->plan, &of->phases, steps);
    if (of->announced > steps && of->announced < of->next) {
        of->next = of->announced;
    }
    uint64_t count = of->next != CHECKPOINTS_NEVER
                         ? shard_checkpoint_count(shard_config(service->shard), of->next)
                         : UINT64_MAX;
    shard_checkpoint_set_free(service->shard, !of->is_held);
    shard_checkpoint_await(service->shard, &of->now, count);
}

static enum status send_fetches(struct service *service)
{
    struct wire_piece piece;
    struct message message;
    while (fetch_next(&checkpoint_of(service)->fetch, &piece, &message)) {
        tell(service, &message);
    }
    return STATUS_OK;
}

/* The next span to fetch: of the shard's vectors, then of what workers know of them. */
static bool begin_fetch(struct service *service)
{
    struct service_checkpoint *of = checkpoint_of(service);
    const struct answer_encoder *encoder = &service->answer_encoder;
    if (!of->is_fetching_known && shard_checkpoint_restore(service->shard, of->index, &of->fetch)) {
        return true;
    }
    if (!of->is_fetching_known) {
        of->is_fetching_known = true;
        of->index = 0;
    }
    while (encoder->known != NULL && of->index < encoder->part_count &&
           encoder->parts[of->index].span.count == 0) {
        of->index++;
    }
    if (encoder->known == NULL || of->index >= encoder->part_count) {
        return false;
    }
    const struct encoded_part *part = &encoder->parts[of->index];
    of->fetch = fetch_of("known", shard_config(service->shard)->layout.value_count, part->span,
                         encoder->known + part->start);
    return true;
}

/* Asks for what is next; ready once nothing is. */
static enum status go_on_fetching(struct service *service, bool *ret_is_ready)
{
    struct service_checkpoint *of = checkpoint_of(service);
    *ret_is_ready = !begin_fetch(service);
    if (!*ret_is_ready) {
        return send_fetches(service);
    }
    of->is_restoring = false;
    shard_checkpoint_restored(service->shard);
    return STATUS_OK;
}

static enum status plan(struct service *service, uint64_t train_samples, uint32_t phase_index)
{
    struct service_checkpoint *of = checkpoint_of(service);
    char why[OPTION_ERROR_BYTES];
    enum status status = phases_of(&service->job, train_samples, &of->phases, why, sizeof(why));
    if (status != STATUS_OK) {
        return status;
    }
    uint32_t index = phase_index;
    uint64_t begin = service->member.begin_step;
    if (begin > 0) {
        (void)phases_resume(&service->job, &of->phases, begin, &index);
    }
    of->plan = checkpoints_of(&service->job, train_samples);
    return STATUS_OK;
}

enum status service_checkpoint_begin(struct service *service, uint64_t train_samples,
                                     uint32_t phase_index, bool *ret_is_ready)
{
    struct service_checkpoint *of = checkpoint_of(service);
    *ret_is_ready = true;
    enum status status = plan(service, train_samples, phase_index);
    if (status != STATUS_OK) {
        return status;
    }
    if (of->is_held) {
        if (of->is_before_held) {
            offer(service, of->before.step, STATUS_INTERRUPTED);
        }
        snapshot_finish(&of->before);
        of->before = of->now;
        of->now = (struct snapshot){0};
        of->is_before_held = true;
    }
    snapshot_finish(&of->now);
    of->is_held = of->is_behind = false;
    if (service->shard == NULL) {
        return STATUS_OK;
    }
    if (of->plan.are_on) {
        status = shard_checkpoint_prepare(service->shard, &of->now);
        if (status != STATUS_OK) {
            return status;
        }
        await_next(service, of->phases.list[phase_index].begin);
    }
    if (!shard_config(service->shard)->is_restored) {
        return STATUS_OK;
    }
    if (service->member.is_in_place) {
        status = kept_shard_restore(service->options->kept, service->shard);
        if (status != STATUS_OK) {
            log_error("this shard cannot go on from what it has: %s", status_text(status));
        }
        return status;
    }
    of->is_restoring = true;
    of->is_fetching_known = false;
    of->index = 0;
    status = shard_checkpoint_begin_restore(service->shard);
    return status == STATUS_OK ? go_on_fetching(service, ret_is_ready) : status;
}

void service_checkpoint_finish(struct service *service)
{
    snapshot_finish(&checkpoint_of(service)->now);
    snapshot_finish(&checkpoint_of(service)->before);
}

/* What was copied goes to the coordinator. */
static void hold(struct service *service, uint64_t steps)
{
    struct service_checkpoint *of = checkpoint_of(service);
    snapshot_rewind(&of->now, steps);
    keep_counts(service);
    of->is_held = true;
    shard_checkpoint_set_free(service->shard, false);
    offer(service, steps, STATUS_OK);
}

/* The job's last one, which was missed: nothing changes any more, so it is copied now. */
static void catch_up(struct service *service)
{
    struct service_checkpoint *of = checkpoint_of(service);
    shard_checkpoint_copy(service->shard);
    hold(service, of->plan.total);
    await_next(service, of->plan.total);
}

void service_checkpoint_advance(struct service *service)
{
    struct service_checkpoint *of = checkpoint_of(service);
    if (service->shard == NULL || !of->plan.are_on || of->is_restoring || of->is_behind ||
        !shard_checkpoint_is_whole(service->shard)) {
        return;
    }
    uint64_t steps = of->next;
    bool was_missed = shard_checkpoint_was_missed(service->shard);
    if (was_missed && steps == of->plan.total) {
        // The snapshot before may have gone since the first unit was missed.
        of->is_behind = of->is_held;
        if (!of->is_behind) {
            catch_up(service);
        }
        return;
    }
    if (was_missed) {
        offer(service, steps, STATUS_INTERRUPTED);
    } else {
        hold(service, steps);
    }
    await_next(service, steps);
}

/* The snapshot has gone, or nobody wants it. */
static void let_go(struct service *service)
{
    struct service_checkpoint *of = checkpoint_of(service);
    of->is_held = false;
    if (service->shard == NULL) {
        return;
    }
    shard_checkpoint_set_free(service->shard, true);
    if (of->is_behind) {
        of->is_behind = false;
        catch_up(service);
    }
}

uint64_t service_checkpoint_let_go(struct service *service)
{
    struct service_checkpoint *of = checkpoint_of(service);
    of->announced = 0;
    if (of->is_before_held) {
        of->is_before_held = false;
        snapshot_finish(&of->before);
    }
    if (of->is_held && of->is_offered) {
        let_go(service);
    }
    return of->told;
}

void service_checkpoint_offer_again(struct service *service)
{
    struct service_checkpoint *of = checkpoint_of(service);
    uint64_t missed = of->missed;
    of->missed = 0;
    if (of->is_held) {
        offer(service, of->now.step, STATUS_OK);
    }
    if (missed > 0) {
        offer(service, missed, STATUS_INTERRUPTED);
    }
}

static void collect(struct service *service, const struct message *message)
{
    struct service_checkpoint *of = checkpoint_of(service);
    bool is_before = of->is_before_held && message->step == of->before.step;
    bool is_now = of->is_held && message->step == of->now.step;
    struct snapshot *snapshot = is_before ? &of->before : &of->now;
    if (!is_before && !is_now) {
        return;
    }
    struct wire_piece piece;
    struct message next;
    snapshot->credits += message->collect->credits;
    while (message->reason == STATUS_OK && snapshot_next(snapshot, &piece, &next)) {
        next.rank = service->index;
        tell(service, &next);
    }
    if (message->reason == STATUS_OK && !snapshot->is_over) {
        return;
    }
    if (is_before) {
        of->is_before_held = false;
        snapshot_finish(&of->before);
    } else {
        let_go(service);
    }
}

/* The coordinator names a step that follows from no rule. */
static void take_request(struct service *service, uint64_t steps)
{
    struct service_checkpoint *of = checkpoint_of(service);
    uint64_t count = service->shard != NULL
                         ? shard_checkpoint_count(shard_config(service->shard), steps)
                         : UINT64_MAX;
    bool is_late = service->shard != NULL &&
                   (steps <= shard_config(service->shard)->marks.first ||
                    (count != UINT64_MAX && shard_checkpoint_is_late(service->shard, count)));
    if (of->is_held || is_late) {
        offer(service, steps, STATUS_INTERRUPTED);
        return;
    }
    of->announced = steps;
    if (service->shard != NULL && steps < of->next) {
        await_next(service, steps - 1);
    }
}

static enum status take_piece(struct service *service, const struct message *message,
                              bool *ret_is_ready)
{
    struct service_checkpoint *of = checkpoint_of(service);
    if (!of->is_restoring) {
        return STATUS_OK;
    }
    enum status status = fetch_take(&of->fetch, message);
    if (status == STATUS_INVALID) {
        log_error("the checkpoint does not have %s as this job needs it", of->fetch.vector);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (!fetch_is_over(&of->fetch)) {
        return send_fetches(service);
    }
    status = shard_checkpoint_take(service->shard, &of->fetch);
    if (status != STATUS_OK) {
        return status;
    }
    of->index++;
    return go_on_fetching(service, ret_is_ready);
}

enum status service_checkpoint_handle(struct service *service, const struct message *message,
                                      bool *ret_is_ready)
{
    *ret_is_ready = false;
    if (message->kind == MESSAGE_SNAPSHOT && message->reason == STATUS_AGAIN) {
        keep(service);
    } else if (message->kind == MESSAGE_SNAPSHOT && checkpoint_of(service)->plan.are_on &&
               message->step > 0) {
        take_request(service, message->step);
    } else if (message->kind == MESSAGE_COLLECT) {
        collect(service, message);
    } else if (message->kind == MESSAGE_PIECE) {
        return take_piece(service, message, ret_is_ready);
    }
    return STATUS_OK;
}
