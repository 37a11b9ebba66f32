/* Begins and ends rounds of the exchange, and makes the updates that are the worker's own. */
#include "worker/train/round.h"

#include "common/optimizer/optimizer_formulas.h"
#include "worker/train/trainer_state.h"

#include <string.h>

static struct span span_of_bucket(const struct trainer *trainer, uint32_t bucket)
{
    return model_layout(trainer->model)->buckets[bucket];
}

/* Local SGD: by how much the parameters of a bucket have become less in this round, in the place of
 * a gradient. The parameters become again what they were, for the mean change to be applied to. */
static void make_change(struct trainer *trainer, struct span span)
{
    const float *base = trainer->base + span.offset;
    float *params = model_params(trainer->model) + span.offset;
    float *grads = model_grads(trainer->model) + span.offset;
    for (uint64_t i = 0; i < span.count; i++) {
        grads[i] = base[i] - params[i];
    }
    memcpy(params, base, span.count * sizeof(float));
}

/* Local SGD: the update of a bucket from this worker's own gradient. */
static void update_alone(struct trainer *trainer, struct span span, uint64_t step)
{
    optimizer_apply(trainer->optimizer, span, model_params(trainer->model) + span.offset,
                    model_grads(trainer->model) + span.offset, step + 1,
                    schedule_rate(&trainer->schedule, step));
}

/* The optimizer's update of a bucket for the step that ends. */
static enum status update_params(struct trainer *trainer, uint32_t bucket)
{
    struct span span = span_of_bucket(trainer, bucket);
    uint64_t number =
        trainer->phase->updates_before + trainer->step - trainer->phase->marks.first + 1;
    double rate = schedule_rate(&trainer->schedule, trainer->step);
    if (trainer->device_updates) {
        struct optimizer_update update;
        optimizer_plan_update(trainer->optimizer, span, number, rate, &update); // of one group
        return model_apply(trainer->model, bucket, &update);
    }
    optimizer_apply(trainer->optimizer, span, model_params(trainer->model) + span.offset,
                    model_grads(trainer->model) + span.offset, number, rate);
    return STATUS_OK;
}

static void apply_mean_change(struct trainer *trainer, uint32_t bucket)
{
    struct span span = span_of_bucket(trainer, bucket);
    optimizer_apply(trainer->averager, span, model_params(trainer->model) + span.offset,
                    model_grads(trainer->model) + span.offset, 1, 1);
}

/* One update of one bucket, from its mean gradient: where the exchange delivers that. */
static enum status apply_gradients(void *context, uint32_t bucket)
{
    struct trainer *trainer = context;
    enum status status = STATUS_OK;
    enum step_activity before = step_clock_enter(&trainer->clock, STEP_COMPUTE);
    uint64_t began_ns = trace_enter(trainer->clock.trace, TRACE_OPTIMIZER, bucket);
    if (trainer->averager != NULL) {
        apply_mean_change(trainer, bucket);
    } else {
        status = update_params(trainer, bucket);
    }
    trace_leave(trainer->clock.trace, began_ns,
                &(struct trace_tag){TRACE_OPTIMIZER, bucket, .step = trainer->step});
    step_clock_enter(&trainer->clock, before);
    return status;
}

/* Whether a mark, where parameters are evaluated or handed on, comes behind the step. */
static bool mark_follows(const struct marks *marks, uint64_t step)
{
    return (step + 1) % marks->period == 0 || step + 1 == marks->end;
}

/* A round is shorter than --sync-every where a mark comes and workers are synchronised. */
static bool round_ends(const struct trainer *trainer, uint64_t step)
{
    return trainer->round_steps + 1 == trainer->job->sync_every ||
           (mark_follows(&trainer->phase->marks, step) && !trainer->phase->is_unsynchronised);
}

enum status round_settle(struct trainer *trainer)
{
    if (trainer->is_pending || trainer->round_steps > 0) {
        return STATUS_OK;
    }
    enum step_activity before = step_clock_enter(&trainer->clock, STEP_EXCHANGE);
    enum status status = exchange_settle(trainer->exchange);
    step_clock_enter(&trainer->clock, before);
    return status;
}

static enum status begin_round(struct trainer *trainer)
{
    enum status status = exchange_begin_step(trainer->exchange, trainer->round);
    if (status == STATUS_OK && trainer->base != NULL) {
        memcpy(trainer->base, model_params(trainer->model),
               model_layout(trainer->model)->value_count * sizeof(float));
    }
    return status;
}

enum status round_end_pending(struct trainer *trainer)
{
    if (!trainer->is_pending) {
        return STATUS_OK;
    }
    trainer->is_pending = false;
    return exchange_end_step(trainer->exchange, apply_gradients, trainer);
}

enum status round_pass(struct trainer *trainer)
{
    enum step_activity before = step_clock_enter(&trainer->clock, STEP_EXCHANGE);
    enum status status = round_end_pending(trainer);
    if (status == STATUS_OK && trainer->round_steps == 0) {
        status = begin_round(trainer);
    }
    step_clock_enter(&trainer->clock, before);
    return status;
}

/* Whatever buckets they lie in. The first layers need the last buckets. */
enum status round_await_params(void *context, uint64_t offset, uint64_t count)
{
    struct trainer *trainer = context;
    const struct layout *layout = model_layout(trainer->model);
    const struct span wanted = {offset, count};
    enum status status = STATUS_OK;
    enum step_activity before = step_clock_enter(&trainer->clock, STEP_EXCHANGE);
    for (uint32_t bucket = layout->bucket_count; bucket-- > 0 && status == STATUS_OK;) {
        if (span_intersect(layout->buckets[bucket], wanted).count > 0) {
            status = exchange_await_bucket(trainer->exchange, bucket, apply_gradients, trainer);
        }
    }
    step_clock_enter(&trainer->clock, before);
    return status;
}

void round_buckets_ready(struct trainer *trainer, uint32_t first, uint32_t count, uint64_t step)
{
    bool ends = round_ends(trainer, step);
    for (uint32_t bucket = first; bucket < first + count && trainer->base != NULL; bucket++) {
        update_alone(trainer, span_of_bucket(trainer, bucket), step);
        if (ends) {
            make_change(trainer, span_of_bucket(trainer, bucket));
        }
    }
    if (!ends) {
        return;
    }
    // It may add up gradients on this thread.
    enum step_activity before = step_clock_enter(&trainer->clock, STEP_EXCHANGE);
    for (uint32_t bucket = first; bucket < first + count; bucket++) {
        trace_note(trainer->clock.trace, &(struct trace_tag){TRACE_READY, bucket, .step = step});
    }
    exchange_buckets_ready(trainer->exchange, first, count);
    step_clock_enter(&trainer->clock, before);
}

enum status round_take_ready(struct trainer *trainer, uint64_t step)
{
    trainer->step = step; // whose means those are; the round before is over
    enum step_activity before = step_clock_enter(&trainer->clock, STEP_EXCHANGE);
    enum status status = exchange_take_ready(trainer->exchange, apply_gradients, trainer);
    step_clock_enter(&trainer->clock, before);
    return status;
}

static enum status end_round(struct trainer *trainer, uint64_t step)
{
    trainer->round++;
    trainer->round_steps = 0;
    trainer->is_pending = trainer->base == NULL && exchange_overlaps(trainer->exchange) &&
                          !mark_follows(&trainer->phase->marks, step);
    if (trainer->is_pending) {
        return STATUS_OK;
    }
    enum status status = exchange_end_step(trainer->exchange, apply_gradients, trainer);
    if (status == STATUS_OK && trainer->phase->is_unsynchronised) {
        // The next parameters come with how far the job is: to be known before the next batch.
        status = exchange_settle(trainer->exchange);
    }
    return status;
}

enum status round_step_done(struct trainer *trainer, uint64_t step)
{
    bool ends = round_ends(trainer, step);
    trainer->step = step;
    trainer->round_steps++;
    if (!ends) {
        return STATUS_OK;
    }
    enum step_activity before = step_clock_enter(&trainer->clock, STEP_EXCHANGE);
    enum status status = end_round(trainer, step);
    step_clock_enter(&trainer->clock, before);
    return status;
}
