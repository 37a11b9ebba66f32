/* One step of a program: what worker/train does around forward and backward. */
#include "common/base/clock.h"
#include "worker/library/groups.h"
#include "worker/library/together.h"

/* One update of one bucket, where the exchange delivers the mean gradient. */
static enum status apply(void *context, uint32_t bucket)
{
    struct ringside *ringside = context;
    if (ringside->optimizer == NULL) {
        return STATUS_OK; // servers have made it, or the program will
    }
    struct span span = ringside->layout.buckets[bucket];
    timeline_part(&ringside->timeline, TRACE_EXCHANGE, TRACE_NO_BUCKET, ringside->step);
    optimizer_apply(ringside->optimizer, span, ringside->vectors.params + span.offset,
                    ringside->vectors.grads + span.offset, ringside->update_step + 1,
                    ringside->update_rate);
    timeline_part(&ringside->timeline, TRACE_OPTIMIZER, bucket, ringside->update_step);
    return STATUS_OK;
}

static bool is_unsynchronised(const struct ringside *ringside)
{
    return ringside->exchange->options.is_unsynchronised;
}

static bool has_ended(const struct ringside *ringside)
{
    return is_unsynchronised(ringside) ? exchange_marks_passed(ringside->exchange) > 0
                                       : ringside->step == ringside->job.steps;
}

/* --fault and --straggler strike before a step, as in `worker`. */
static enum status disturb(struct ringside *ringside)
{
    struct straggling *straggling = &ringside->straggling;
    enum status status = faulting_strike(&ringside->faulting, ringside->step);
    if (status != STATUS_OK) {
        return status;
    }
    straggling_wait(straggling, ringside->exchange, ringside->step);
    if (straggling->waited_ns > 0) {
        timeline_part(&ringside->timeline, TRACE_DELAY, TRACE_NO_BUCKET, ringside->step);
    }
    return STATUS_OK;
}

/* Refuses the call by *ret_refusal if the program has written parameters that servers hold, which
 * is lost. Returns whether it does; the next call goes on. */
static bool refuses_written(struct ringside *ringside, enum ringside_status *ret_refusal)
{
    uint32_t tensor = exchange_take_written(ringside->exchange);
    if (tensor == EXCHANGE_NONE) {
        return false;
    }
    *ret_refusal = handle_refuse(
        ringside, RINGSIDE_MISUSE,
        "tensor %u (%.200s) was written after the first step, and that is lost: in mode %s "
        "servers hold the parameters; write them before it, or use --mode ring or "
        "--server-optimizer none",
        tensor, ringside->tensors[tensor].name, ringside->mode);
    return true;
}

enum ringside_status ringside_begin_step(struct ringside *ringside)
{
    enum ringside_status entered =
        handle_enter(ringside, HANDLE_BETWEEN | HANDLE_ENDED, "ringside_begin_step");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    if (ringside->state == HANDLE_BETWEEN && refuses_written(ringside, &entered)) {
        return entered;
    }
    enum status status = STATUS_OK;
    if (ringside->state == HANDLE_BETWEEN && has_ended(ringside)) {
        // Servers have kept them for all.
        status = is_unsynchronised(ringside) ? exchange_pull(ringside->exchange, 1) : STATUS_OK;
        ringside->state = status == STATUS_OK ? HANDLE_ENDED : ringside->state;
        together_say_steps(ringside, UINT64_MAX, 0);
    }
    if (status == STATUS_OK && ringside->state == HANDLE_BETWEEN) {
        ringside->state = HANDLE_FORWARD;
        ringside->step_began_ns = clock_now_ns();
        timeline_begin_step(&ringside->timeline, ringside->step);
        for (uint32_t i = 0; i < ringside->layout.bucket_count; i++) {
            ringside->waits_for[i] = 0;
        }
        for (uint32_t i = 0; i < ringside->tensor_count; i++) {
            ringside->waits_for[ringside->tensors[i].bucket]++;
        }
        ringside->next_bucket = 0;
        status = disturb(ringside);
    }
    bool is_over = ringside->state == HANDLE_ENDED;
    enum ringside_status is = handle_exit(ringside, status);
    return is == RINGSIDE_OK && is_over ? RINGSIDE_END : is;
}

static enum status finish_pending(struct ringside *ringside)
{
    ringside->is_pending = false;
    return exchange_end_step(ringside->exchange, apply, ringside);
}

/* What the program did until now is `kind`. Returns when the wait began. */
static uint64_t begin_wait(struct ringside *ringside, enum trace_kind kind)
{
    timeline_part(&ringside->timeline, kind, TRACE_NO_BUCKET, ringside->step);
    return clock_now_ns();
}

static void end_wait(struct ringside *ringside, uint64_t began_ns)
{
    uint64_t waited_ns = clock_now_ns() - began_ns;
    timeline_part(&ringside->timeline, TRACE_EXCHANGE, TRACE_NO_BUCKET, ringside->step);
    ringside->wait_ns += waited_ns;
    ringside->step_wait_ns += waited_ns;
}

/* Says of how many steps all others have to have given gradients before the parameters can come by
 * which this one goes on, after it has given `given`. */
static void say_needs(struct ringside *ringside, uint64_t given)
{
    const struct mode mode = ringside->job.mode;
    bool is_bounded = mode.kind == MODE_PS_SSP; // in ps-async, and with backups, nobody is needed
    uint64_t needed = 0;
    if (!is_unsynchronised(ringside)) {
        needed = ringside->is_pending ? given : 0;
    } else if (is_bounded && given > mode.slack_steps) {
        needed = given - mode.slack_steps;
    }
    together_say_steps(ringside, given, needed);
}

static bool is_tensor(const struct ringside *ringside, uint32_t tensor)
{
    return tensor == RINGSIDE_ALL || tensor < ringside->tensor_count;
}

enum ringside_status ringside_await(struct ringside *ringside, uint32_t tensor)
{
    enum ringside_status entered =
        handle_enter(ringside, HANDLE_FORWARD | HANDLE_GRADIENTS | HANDLE_ENDED, "ringside_await");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    if (!is_tensor(ringside, tensor)) {
        return handle_refuse(ringside, RINGSIDE_INVALID, "ringside_await: there is no tensor %u",
                             tensor);
    }
    enum status status = STATUS_OK;
    uint64_t began_ns = begin_wait(ringside, TRACE_FORWARD);
    say_needs(ringside, ringside->step);
    for (uint32_t i = ringside->layout.bucket_count;
         ringside->is_pending && i-- > 0 && status == STATUS_OK;) {
        if (tensor == RINGSIDE_ALL || ringside->tensors[tensor].bucket == i) {
            status = exchange_await_bucket(ringside->exchange, i, apply, ringside);
        }
    }
    if (ringside->is_pending && tensor == RINGSIDE_ALL && status == STATUS_OK) {
        status = finish_pending(ringside); // gradients have left, too
    }
    together_say_steps(ringside, ringside->step, 0);
    end_wait(ringside, began_ns);
    if (status == STATUS_OK && ringside->state == HANDLE_FORWARD &&
        refuses_written(ringside, &entered)) {
        return entered;
    }
    return handle_exit(ringside, status);
}

enum ringside_status ringside_begin_gradients(struct ringside *ringside)
{
    enum ringside_status entered =
        handle_enter(ringside, HANDLE_FORWARD, "ringside_begin_gradients");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    enum status status = STATUS_OK;
    uint64_t began_ns = begin_wait(ringside, TRACE_FORWARD);
    handle_report_step(ringside);
    say_needs(ringside, ringside->step);
    if (ringside->is_pending) {
        status = finish_pending(ringside);
    }
    if (status == STATUS_OK && refuses_written(ringside, &entered)) {
        return entered;
    }
    if (status == STATUS_OK) {
        handle_groups_begin_step(ringside);
        status = exchange_begin_step(ringside->exchange, ringside->step - ringside->begin_step);
    }
    together_say_steps(ringside, ringside->step, 0);
    end_wait(ringside, began_ns);
    ringside->state = HANDLE_GRADIENTS;
    return handle_exit(ringside, status);
}

static void note_ready(struct ringside *ringside, struct handle_tensor *tensor)
{
    if (tensor->ready_step <= ringside->step) {
        tensor->ready_step = ringside->step + 1;
        ringside->waits_for[tensor->bucket]--;
    }
}

/* It may add up gradients on this thread. */
static void send_bucket(struct ringside *ringside, uint32_t bucket)
{
    struct timeline *timeline = &ringside->timeline;
    timeline_part(timeline, TRACE_BACKWARD, bucket, ringside->step);
    timeline_ready(timeline, bucket, ringside->step);
    exchange_buckets_ready(ringside->exchange, bucket, 1);
    timeline_part(timeline, TRACE_EXCHANGE, TRACE_NO_BUCKET, ringside->step);
}

enum ringside_status ringside_ready(struct ringside *ringside, uint32_t tensor)
{
    enum ringside_status entered = handle_enter(ringside, HANDLE_GRADIENTS, "ringside_ready");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    if (!is_tensor(ringside, tensor)) {
        return handle_refuse(ringside, RINGSIDE_INVALID, "ringside_ready: there is no tensor %u",
                             tensor);
    }
    if (tensor != RINGSIDE_ALL && ringside->tensors[tensor].ready_step > ringside->step) {
        return handle_refuse(ringside, RINGSIDE_MISUSE,
                             "ringside_ready: tensor %u (%.200s) is ready already in this step",
                             tensor, ringside->tensors[tensor].name);
    }
    uint32_t first = tensor == RINGSIDE_ALL ? 0 : tensor;
    uint32_t end = tensor == RINGSIDE_ALL ? ringside->tensor_count : tensor + 1;
    for (uint32_t i = first; i < end; i++) {
        note_ready(ringside, &ringside->tensors[i]);
    }
    // A bucket that is complete waits for those before it: all processes send in the same order.
    while (ringside->next_bucket < ringside->layout.bucket_count &&
           ringside->waits_for[ringside->next_bucket] == 0) {
        send_bucket(ringside, ringside->next_bucket++);
    }
    return handle_exit(ringside, STATUS_OK);
}

enum status handle_settle(struct ringside *ringside)
{
    if (!ringside->is_pending) {
        return STATUS_OK;
    }
    enum status status = finish_pending(ringside);
    return status == STATUS_OK ? exchange_settle(ringside->exchange) : status;
}

enum status handle_settle_together(struct ringside *ringside)
{
    if (ringside->exchange == NULL) {
        return STATUS_OK; // it has not started
    }
    say_needs(ringside, ringside->step);
    enum status status = handle_settle(ringside);
    together_say_steps(ringside, ringside->step, 0);
    return status;
}

/* Waits, unless the parameters may come during the next forward. */
static enum status end_step(struct ringside *ringside)
{
    bool may_overlap = exchange_overlaps(ringside->exchange) && !ringside->makes_updates;
    ringside->update_step = ringside->step;
    ringside->update_rate = handle_groups_end_step(
        ringside, schedule_rate(&ringside->schedule, ringside->step), &ringside->first_rate);
    ringside->is_pending = true;
    uint64_t given = ringside->step + 1;
    if (may_overlap && given < ringside->job.steps) {
        together_say_steps(ringside, given, 0);
        return STATUS_OK;
    }
    say_needs(ringside, given);
    enum status status = handle_settle(ringside);
    together_say_steps(ringside, given, 0);
    return status;
}

static void count_step(struct ringside *ringside)
{
    struct wire_report *interval = &ringside->interval;
    uint64_t now_ns = clock_now_ns(), total_ns = now_ns - ringside->step_began_ns;
    uint64_t wire_ns = exchange_take_wire_ns(ringside->exchange);
    uint64_t waited_ns = ringside->step_wait_ns;
    ringside->step_wait_ns = 0;
    straggling_note(&ringside->straggling, total_ns > waited_ns ? total_ns - waited_ns : 0);
    ringside->wire_ns += wire_ns;
    interval->rate = ringside->first_rate;
    if (is_unsynchronised(ringside)) {
        const struct exchange_fate fate = exchange_fate(ringside->exchange);
        ringside->staleness = fate.staleness;
        ringside->staleness_sum += fate.staleness;
        timeline_count(&ringside->timeline, TRACE_STALENESS, ringside->step, fate.staleness);
        interval->staleness_sum += fate.staleness;
        interval->rate = fate.rate;
    }
    interval->steps++;
    interval->total_ns += total_ns;
    interval->exchange_wait_ns += waited_ns;
    interval->compute_ns += total_ns > waited_ns ? total_ns - waited_ns : 0;
    interval->wire_ns += wire_ns;
    ringside->step++;
    link_set_step(ringside->link, ringside->step);
}

enum ringside_status ringside_end_step(struct ringside *ringside)
{
    enum ringside_status entered = handle_enter(ringside, HANDLE_GRADIENTS, "ringside_end_step");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    for (uint32_t i = 0; i < ringside->tensor_count; i++) {
        if (ringside->tensors[i].ready_step <= ringside->step) {
            return handle_refuse(ringside, RINGSIDE_MISUSE,
                                 "ringside_end_step: tensor %u (%.200s) is not ready; one without "
                                 "a gradient has zeros, and is ready too",
                                 i, ringside->tensors[i].name);
        }
    }
    uint64_t began_ns = begin_wait(ringside, TRACE_BACKWARD);
    link_set_step(ringside->link, ringside->step + 1); // whose gradients others may wait for, too
    enum status status = end_step(ringside);
    if (status == STATUS_OK) {
        end_wait(ringside, began_ns);
        timeline_end_step(&ringside->timeline, ringside->step);
        count_step(ringside);
        ringside->state = HANDLE_BETWEEN;
    }
    return handle_exit(ringside, status);
}
