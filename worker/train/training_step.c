/* One training step. START READING HERE: trainer_step. */
#include "common/optimizer/optimizer_formulas.h"
#include "worker/train/trainer_state.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Local SGD: by how much the parameters of a bucket have become less in this round, in the place of
 * a gradient; they are again as they were, for the mean of all changes to be applied to. */
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

/* The update of a bucket from this worker's own gradient. */
static void update_alone(struct trainer *trainer, struct span span, uint64_t step)
{
    optimizer_apply(trainer->optimizer, span, model_params(trainer->model) + span.offset,
                    model_grads(trainer->model) + span.offset, step + 1,
                    schedule_rate(&trainer->schedule, step));
}

/* Whether a normalisation is over the batches of all workers. */
static bool sums_over_workers(const struct trainer *trainer)
{
    return trainer->job->sync_bn && trainer->job->workers > 1;
}

/* Begins backward of a bucket, the first *begun having begun; and of all at once on a device that
 * goes on by itself, so that it never waits for this thread. Not if its sums wait for others: then
 * the first bucket would leave when the last has all but been computed. */
static enum status begin_backward(const struct trainer *trainer, uint32_t bucket, uint32_t *begun)
{
    bool is_ahead = model_runs_ahead(trainer->model) && !sums_over_workers(trainer);
    uint32_t end = is_ahead ? model_layout(trainer->model)->bucket_count : bucket + 1;
    enum status status = STATUS_OK;
    while (*begun < end && status == STATUS_OK) {
        status = model_backward(trainer->model, (*begun)++);
    }
    return status;
}

/* Whether the device that computes the gradients is all who needs them. */
static bool keeps_gradients(const struct trainer *trainer)
{
    return trainer->device_updates && trainer->job->workers == 1 &&
           exchange_of(trainer->phase->mode.kind)->delivers == EXCHANGE_GRADIENTS;
}

static enum status backward_and_send(struct trainer *trainer, uint64_t step, bool ends_round)
{
    // Each bucket travels while the next one is computed.
    const struct layout *layout = model_layout(trainer->model);
    uint32_t begun = 0;
    for (uint32_t bucket = 0; bucket < layout->bucket_count; bucket++) {
        enum status status = begin_backward(trainer, bucket, &begun);
        if (status == STATUS_OK && !keeps_gradients(trainer)) {
            status = model_await_gradients(trainer->model, bucket);
        }
        if (status != STATUS_OK) {
            return status;
        }
        if (trainer->base != NULL) {
            update_alone(trainer, layout->buckets[bucket], step);
        }
        if (trainer->base != NULL && ends_round) {
            make_change(trainer, layout->buckets[bucket]);
        }
        if (ends_round) {
            // It may add up gradients on this thread.
            uint64_t clock_ns = clock_now_ns();
            exchange_bucket_ready(trainer->exchange, bucket);
            trainer->away_ns += lap(&clock_ns);
        }
    }
    return STATUS_OK;
}

/* The optimizer's update of a bucket for the step that ends. */
static enum status update_params(struct trainer *trainer, uint32_t bucket)
{
    struct span span = model_layout(trainer->model)->buckets[bucket];
    uint64_t number =
        trainer->phase->updates_before + trainer->step - trainer->phase->marks.first + 1;
    double rate = schedule_rate(&trainer->schedule, trainer->step);
    if (trainer->device_updates) {
        struct optimizer_update update;
        optimizer_plan_update(trainer->optimizer, number, rate, &update);
        return model_apply(trainer->model, bucket, &update);
    }
    optimizer_apply(trainer->optimizer, span, model_params(trainer->model) + span.offset,
                    model_grads(trainer->model) + span.offset, number, rate);
    return STATUS_OK;
}

/* One update of one bucket, from its mean gradient: where the exchange delivers that. */
static enum status apply_gradients(void *context, uint32_t bucket)
{
    struct trainer *trainer = context;
    uint64_t clock_ns = clock_now_ns();
    struct span span = model_layout(trainer->model)->buckets[bucket];
    enum status status = STATUS_OK;
    if (trainer->averager != NULL) {
        optimizer_apply(trainer->averager, span, model_params(trainer->model) + span.offset,
                        model_grads(trainer->model) + span.offset, 1, 1);
    } else {
        status = update_params(trainer, bucket);
    }
    trainer->apply_ns += lap(&clock_ns);
    return status;
}

/* Every rank's gradient is scaled so that their mean is that of the global batch, also where the
 * slices differ by a sample. Where each makes updates of its own, it is the mean of its slice. */
static float gradient_scale(const struct trainer *trainer, const struct batch *batch)
{
    if (trainer->phase->is_unsynchronised || trainer->base != NULL) {
        return 1.0f / (float)batch->count;
    }
    return (float)trainer->job->workers / (float)trainer->job->global_batch;
}

/* Whether a mark, where parameters are evaluated or handed on, comes behind the step. */
static bool mark_follows(const struct trainer *trainer, uint64_t step)
{
    const struct marks *marks = &trainer->phase->marks;
    return (step + 1) % marks->period == 0 || step + 1 == marks->end;
}

/* A round is what one exchange is for: a step, or --sync-every of them, or less if a mark comes
 * where workers are in step. */
static bool round_ends(const struct trainer *trainer, uint64_t step)
{
    return trainer->round_steps + 1 == trainer->job->sync_every ||
           (mark_follows(trainer, step) && !trainer->phase->is_unsynchronised);
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

/* The round is over, but for what of it the next forward pass can wait for. */
static enum status end_round(struct trainer *trainer, uint64_t step)
{
    trainer->round++;
    trainer->round_steps = 0;
    trainer->is_pending = trainer->base == NULL && exchange_overlaps(trainer->exchange) &&
                          !mark_follows(trainer, step);
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

/* Parameters that forward is about to read: whatever buckets they lie in. The first layers need the
 * last buckets. */
static enum status await_params(void *context, uint64_t offset, uint64_t count)
{
    struct trainer *trainer = context;
    const struct layout *layout = model_layout(trainer->model);
    const struct span wanted = {offset, count};
    uint64_t clock_ns = clock_now_ns(), apply_ns = trainer->apply_ns;
    enum status status = STATUS_OK;
    for (uint32_t bucket = layout->bucket_count; bucket-- > 0 && status == STATUS_OK;) {
        if (span_intersect(layout->buckets[bucket], wanted).count > 0) {
            status = exchange_await_bucket(trainer->exchange, bucket, apply_gradients, trainer);
        }
    }
    trainer->away_ns += lap(&clock_ns) - (trainer->apply_ns - apply_ns);
    trainer->apply_ns = apply_ns; // it is computing, as what is around it
    return status;
}

/* What was left of the last round; then a new one, if one begins. */
static enum status pass_round(struct trainer *trainer)
{
    enum status status = STATUS_OK;
    if (trainer->is_pending) {
        trainer->is_pending = false;
        status = exchange_end_step(trainer->exchange, apply_gradients, trainer);
    }
    return status == STATUS_OK && trainer->round_steps == 0 ? begin_round(trainer) : status;
}

/* Of batch normalisation; time in which others are waited for is not computing. */
static enum status sum_over_workers(void *context, double *values, uint32_t count)
{
    struct trainer *trainer = context;
    uint64_t clock_ns = clock_now_ns();
    enum status status = link_sum(trainer->link, values, count);
    trainer->away_ns += lap(&clock_ns);
    return status;
}

static struct program_input input_of(struct trainer *trainer, const struct batch *batch)
{
    return (struct program_input){
        .sum_over_workers = sums_over_workers(trainer) ? sum_over_workers : NULL,
        .await_params = trainer->is_pending ? await_params : NULL,
        .context = trainer,
        .pixels = batch->pixels,
        .labels = batch->labels,
        .sample_keys = batch->sample_keys,
        .count = batch->count,
        .gradient_scale = gradient_scale(trainer, batch),
        .is_training = true,
        .keeps_gradients = keeps_gradients(trainer),
    };
}

enum status trainer_step(struct trainer *trainer, uint64_t step, double *ret_loss_sum,
                         struct step_times *ret_times)
{
    uint64_t clock_ns = clock_now_ns();
    bool ends_round = round_ends(trainer, step);
    struct batch batch;
    enum status status = batcher_next(trainer->batcher, &batch);
    if (status != STATUS_OK) {
        return status;
    }
    ret_times->input_ns = lap(&clock_ns);

    if (!trainer->is_pending && trainer->round_steps == 0) {
        status = exchange_settle(trainer->exchange);
    }
    if (status != STATUS_OK) {
        return status;
    }
    ret_times->exchange_ns = lap(&clock_ns);
    straggling_wait(&trainer->straggling, trainer->exchange, step);

    trainer->away_ns = trainer->apply_ns = 0;
    const struct program_input input = input_of(trainer, &batch); // until backward is done
    struct program_result result;
    status = model_forward(trainer->model, &input, &result);
    if (status == STATUS_OK && !isfinite(result.loss_sum)) {
        status = STATUS_NOT_FINITE;
    }
    if (status == STATUS_OK) {
        ret_times->compute_ns = lap(&clock_ns);
        status = pass_round(trainer);
    }
    if (status == STATUS_OK) {
        ret_times->exchange_ns += lap(&clock_ns);
        status = backward_and_send(trainer, step, ends_round);
    }
    if (status != STATUS_OK) {
        return status;
    }
    ret_times->compute_ns += lap(&clock_ns);
    trainer->step = step;
    trainer->round_steps++;
    status = ends_round ? end_round(trainer, step) : STATUS_OK;
    if (status != STATUS_OK) {
        return status;
    }
    ret_times->exchange_ns += lap(&clock_ns) + trainer->away_ns - trainer->apply_ns;
    ret_times->compute_ns += trainer->apply_ns - trainer->away_ns;
    ret_times->copy_ns = model_take_copy_ns(trainer->model);
    ret_times->wire_ns = exchange_take_wire_ns(trainer->exchange);
    straggling_note(&trainer->straggling, ret_times->compute_ns);
    *ret_loss_sum = result.loss_sum;
    return STATUS_OK;
}
