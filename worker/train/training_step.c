/* One training step. START READING HERE: trainer_step. */
#include "worker/train/round.h"
#include "worker/train/trainer_state.h"

#include <math.h>
#include <string.h>

/* Whether a normalisation is over the batches of all workers. */
static bool sums_over_workers(const struct trainer *trainer)
{
    return trainer->job->sync_bn && trainer->job->workers > 1;
}

/* Of batch normalisation. Time in which others are waited for is not computing. */
static enum status sum_over_workers(void *context, double *values, uint32_t count)
{
    struct trainer *trainer = context;
    enum step_activity before = step_clock_enter(&trainer->clock, STEP_EXCHANGE);
    enum status status = link_sum(trainer->link, values, count);
    step_clock_enter(&trainer->clock, before);
    return status;
}

/* Whether gradients need not come to the host. */
static bool keeps_gradients(const struct trainer *trainer)
{
    bool is_alone = trainer->job->workers == 1;
    if (trainer->device_memory.vectors != NULL) {
        return true;
    }
    return trainer->device_updates && (is_alone || trainer->device_sums) &&
           exchange_of(trainer->phase->mode.kind)->delivers == EXCHANGE_GRADIENTS;
}

/* Every rank's gradient is scaled so that their mean is that of the global batch, also where the
 * local batches differ by a sample. Where each worker makes updates of its own, it is the mean of
 * its local batch. */
static float gradient_scale(const struct trainer *trainer, const struct batch *batch)
{
    if (trainer->phase->is_unsynchronised || trainer->base != NULL) {
        return 1.0f / (float)batch->count;
    }
    return (float)trainer->job->workers / (float)job_batch_present(trainer->job);
}

static struct program_input input_of(struct trainer *trainer, const struct batch *batch)
{
    return (struct program_input){
        .sum_over_workers = sums_over_workers(trainer) ? sum_over_workers : NULL,
        .await_params = trainer->is_pending ? round_await_params : NULL,
        .context = trainer,
        .pixels = batch->pixels,
        .bytes = batch->bytes,
        .labels = batch->labels,
        .mixed = batch->mixed,
        .sample_keys = batch->sample_keys,
        .count = batch->count,
        .gradient_scale = gradient_scale(trainer, batch),
        .is_training = true,
        .keeps_gradients = keeps_gradients(trainer),
    };
}

/* Whether all of backward may be queued before anything is waited for: the device goes on by
 * itself, and nothing in between waits for other workers, whose first bucket would otherwise leave
 * when the last has all but been computed. */
static bool runs_ahead(const struct trainer *trainer)
{
    return model_runs_ahead(trainer->model) && !sums_over_workers(trainer);
}

/* Queues backward where that may be, so that the device never waits for this thread. */
static enum status begin_backward(struct trainer *trainer, uint32_t *begun)
{
    uint32_t end = runs_ahead(trainer) ? model_layout(trainer->model)->bucket_count : 0;
    enum status status = STATUS_OK;
    for (*begun = 0; *begun < end && status == STATUS_OK; (*begun)++) {
        status = model_backward(trainer->model, *begun);
    }
    return status;
}

/* A loss that is not finite ends the step: of its gradients nothing is sent or applied. Devices
 * that sum by themselves may have given them to others, whose job ends as well. */
static enum status await_loss(struct trainer *trainer, double *ret_loss_sum)
{
    struct program_result result;
    enum status status = model_await_result(trainer->model, &result);
    if (status != STATUS_OK) {
        return status;
    }
    *ret_loss_sum = result.loss_sum;
    return isfinite(result.loss_sum) ? STATUS_OK : STATUS_NOT_FINITE;
}

/* Computes the gradients of a bucket, unless its backward has begun, and waits for them. */
static enum status finish_bucket(struct trainer *trainer, uint32_t bucket, uint32_t begun)
{
    uint64_t began_ns = trace_enter(trainer->clock.trace, TRACE_BACKWARD, bucket);
    layer_times_begin(&trainer->layers, trainer->model, TRACE_LAYER_BACKWARD, bucket,
                      trainer->clock.step);
    enum status status = bucket < begun ? STATUS_OK : model_backward(trainer->model, bucket);
    bool awaits = !keeps_gradients(trainer) || trainer->device_memory.vectors != NULL;
    if (status == STATUS_OK && awaits) {
        status = model_await_gradients(trainer->model, bucket);
    }
    layer_times_end(&trainer->layers, trainer->model);
    trace_leave(trainer->clock.trace, began_ns,
                &(struct trace_tag){TRACE_BACKWARD, bucket, .step = trainer->clock.step,
                                    .layers = trainer->names.layers[bucket]});
    return status;
}

/* Whether means go up to the device while gradients of later buckets still come down. */
static bool takes_early(const struct trainer *trainer)
{
    return trainer->device_updates && !keeps_gradients(trainer) && runs_ahead(trainer) &&
           exchange_of(trainer->phase->mode.kind)->delivers == EXCHANGE_GRADIENTS;
}

/* Each bucket travels while the next one is computed. Buckets that are complete at once set out at
 * once, so that every worker sends them in the same order. */
static enum status finish_and_send(struct trainer *trainer, uint64_t step, uint32_t begun)
{
    uint32_t count = model_layout(trainer->model)->bucket_count, first = 0;
    bool takes = takes_early(trainer);
    for (uint32_t bucket = 0; bucket < count; bucket++) {
        enum status status = finish_bucket(trainer, bucket, begun);
        if (status != STATUS_OK) {
            return status;
        }
        if (bucket + 1 < model_end_of_ready(trainer->model, first)) {
            continue;
        }
        round_buckets_ready(trainer, first, bucket + 1 - first, step);
        first = bucket + 1;
        status = takes ? round_take_ready(trainer, step) : STATUS_OK;
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

/* The slices before the last one keep theirs: a bucket travels when all slices have it. */
static enum status finish_and_keep(struct trainer *trainer, uint32_t index, uint32_t begun)
{
    uint32_t count = model_layout(trainer->model)->bucket_count;
    enum status status = STATUS_OK;
    for (uint32_t bucket = 0; bucket < count && status == STATUS_OK; bucket++) {
        status = finish_bucket(trainer, bucket, begun);
    }
    return status == STATUS_OK ? trainer_keep_gradients(trainer, index) : status;
}

static struct step_times times_of(struct trainer *trainer)
{
    const uint64_t *ns = trainer->clock.ns;
    return (struct step_times){
        .input_ns = ns[STEP_INPUT],
        .compute_ns = ns[STEP_COMPUTE],
        .exchange_ns = ns[STEP_EXCHANGE],
        .copy_ns = model_take_copy_ns(trainer->model),
        .wire_ns = exchange_take_wire_ns(trainer->exchange),
    };
}

struct rank_block trainer_turn(const struct trainer *trainer)
{
    return exchange_turns(trainer->exchange) > 1 ? (struct rank_block){trainer->turn, 1}
                                                 : (struct rank_block){0, trainer->slices.count};
}

/* Whether the exchange begins with this slice's gradients. */
static bool is_last(const struct trainer *trainer, uint32_t index)
{
    const struct rank_block turn = trainer_turn(trainer);
    return index + 1 == turn.first + turn.count;
}

/* Forward of a slice, to its loss; of some devices also the begin of backward. */
static enum status forward(struct trainer *trainer, uint32_t index,
                           const struct program_input *input, uint32_t *ret_begun)
{
    enum status status = model_begin_forward(trainer->model, input);
    if (status != STATUS_OK) {
        return status;
    }
    if (index == trainer_turn(trainer).first) {
        status = round_pass(trainer); // the one before is over, gradients may be overwritten
    }
    if (status != STATUS_OK) {
        return status;
    }
    status = begin_backward(trainer, ret_begun);
    if (status != STATUS_OK) {
        return status;
    }
    return await_loss(trainer, &trainer->slices.list[index].loss_sum);
}

/* Forward and backward of a slice. The input is the model's until backward is done. */
static enum status compute(struct trainer *trainer, uint64_t step, uint32_t index,
                           const struct batch *batch)
{
    const struct program_input input = input_of(trainer, batch);
    struct trace_tape *trace = trainer->clock.trace;
    uint32_t begun = 0;
    uint64_t began_ns = trace_enter(trace, TRACE_FORWARD, TRACE_NO_BUCKET);
    layer_times_begin(&trainer->layers, trainer->model, TRACE_LAYER_FORWARD, TRACE_NO_BUCKET, step);
    enum status status = forward(trainer, index, &input, &begun);
    layer_times_end(&trainer->layers, trainer->model);
    trace_leave(
        trace, began_ns,
        &(struct trace_tag){.kind = TRACE_FORWARD, .bucket = TRACE_NO_BUCKET, .step = step});
    if (status != STATUS_OK) {
        return status;
    }
    return is_last(trainer, index) ? finish_and_send(trainer, step, begun)
                                   : finish_and_keep(trainer, index, begun);
}

/* --straggler */
static void wait_as_straggler(struct trainer *trainer, struct slice *slice, uint64_t step)
{
    const struct trace_tag delay = {.kind = TRACE_DELAY, .bucket = TRACE_NO_BUCKET, .step = step};
    uint64_t began_ns = trace_enter(trainer->clock.trace, TRACE_DELAY, TRACE_NO_BUCKET);
    straggling_wait(&slice->straggling, trainer->exchange, step);
    trace_leave(trainer->clock.trace, began_ns, slice->straggling.waited_ns > 0 ? &delay : NULL);
}

/* Of a rank that is left out: its gradients are zeros. */
static enum status make_nothing(struct trainer *trainer, uint64_t step, uint32_t index)
{
    struct model *model = trainer->model;
    bool is_first = index == trainer_turn(trainer).first;
    enum status status = is_first ? round_settle(trainer) : STATUS_OK;
    step_clock_enter(&trainer->clock, STEP_COMPUTE);
    if (status == STATUS_OK && is_first) {
        status = round_pass(trainer);
    }
    if (status != STATUS_OK) {
        return status;
    }
    const struct layout *layout = model_layout(model);
    memset(model_gradients(model)[index], 0, layout->value_count * sizeof(float));
    if (is_last(trainer, index)) {
        round_buckets_ready(trainer, 0, layout->bucket_count, step);
    }
    trainer->slices.list[index].loss_sum = 0;
    return STATUS_OK;
}

/* Everything of a slice, from its batch on. */
static enum status make_slice(struct trainer *trainer, uint64_t step, uint32_t index)
{
    struct slice *slice = &trainer->slices.list[index];
    struct batch batch;
    if (slice->is_left_out) {
        return make_nothing(trainer, step, index);
    }
    enum status status = batcher_next(slice->batcher, &batch);
    if (status == STATUS_OK && index == trainer_turn(trainer).first) {
        status = round_settle(trainer);
    }
    if (status != STATUS_OK) {
        return status;
    }
    step_clock_enter(&trainer->clock, STEP_COMPUTE);
    wait_as_straggler(trainer, slice, step);
    status = slice_enter(&trainer->slices, slice);
    if (status == STATUS_OK) {
        status = compute(trainer, step, index, &batch);
    }
    return status == STATUS_OK ? slice_leave(&trainer->slices, slice) : status;
}

enum status trainer_step(struct trainer *trainer, uint64_t step, struct step_times *ret_times)
{
    const struct rank_block turn = trainer_turn(trainer);
    uint64_t noted_ns = 0;
    enum status status = turn.first == 0 ? faulting_strike(&trainer->faulting, step) : STATUS_OK;
    uint64_t began_ns = trace_enter(trainer->clock.trace, TRACE_STEP, TRACE_NO_BUCKET);
    trace_note_cpu(trainer->clock.trace, step);
    step_clock_start(&trainer->clock, step);
    stream_tapes_begin_step(&trainer->streams, trainer->model, step);
    for (uint32_t i = turn.first; i < turn.first + turn.count && status == STATUS_OK; i++) {
        status = make_slice(trainer, step, i);
        if (status == STATUS_OK && is_last(trainer, i)) {
            status = round_step_done(trainer, step);
        }
        step_clock_enter(&trainer->clock, STEP_INPUT); // the next slice's, or step's
        uint64_t compute_ns = trainer->clock.ns[STEP_COMPUTE];
        straggling_note(&trainer->slices.list[i].straggling, compute_ns - noted_ns);
        noted_ns = compute_ns;
    }
    if (status == STATUS_OK) {
        *ret_times = times_of(trainer);
        status = stream_tapes_end_step(&trainer->streams, trainer->model);
    }
    trace_leave(trainer->clock.trace, began_ns,
                &(struct trace_tag){.kind = TRACE_STEP, .bucket = TRACE_NO_BUCKET, .step = step});
    return status;
}
