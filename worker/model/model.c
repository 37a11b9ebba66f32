/* A network's plan, compiled for a device, with its two vectors.
 *
 * A bucket of gradients is complete once backward has run through the layers that its tensors
 * belong to, so each bucket is given a range of operations:
 *
 *     operations   conv relu pool | conv relu pool | linear relu linear loss
 *     buckets            2        |       1        |           0
 *
 * Buckets begin at the first tensor of a layer; the operations behind that layer, up to the next
 * bucket, have no parameters or share its bucket. What comes before the first layer with parameters
 * belongs to the last bucket. Of buckets that are parts of one large tensor the first has its
 * operation. */
#include "worker/model/model.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/optimizer/optimizer.h"
#include "worker/model/bucket_layers.h"
#include "worker/model/models.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct model {
    const struct network *network;
    struct network_plan plan;
    struct layout fine;                     // as it was cut at create
    struct layout layout;                   // with buckets of it joined
    uint32_t first_ops[LAYOUT_BUCKETS_MAX]; // of each bucket; its last is before the next bucket's
    float *params;                          // (value_count), owned
    float *grads;                           // (value_count), the last of gradients
    float **gradients;                      // (gradient_count) of memory; owned
    uint32_t gradient_count;
    void *memory; // (memory_bytes) of all gradients; owned unless it is the region's
    size_t memory_bytes;
    float *statistics;       // (statistic_count), owned
    struct region region;    // of grads, or empty
    struct device *device;   // borrowed
    struct program *program; // owned
    uint32_t rank, world;    // of the programs that it has met
};

static enum status make_plan(struct model *model, const struct model_options *options)
{
    const struct network *network = model->network;
    struct shape input = options->input;
    uint32_t bad_layer;
    enum status status =
        network_make_plan(network, input, options->class_count, &model->plan, &bad_layer);
    if (status == STATUS_OK) {
        return STATUS_OK;
    }
    const struct layer *layer = &model->plan.layers.list[bad_layer];
    bool is_first = layer->input == DEVICE_INPUT_PIXELS;
    struct shape x = is_first ? input : model->plan.ops[layer->input].y;
    log_error("model %s does not fit samples of %ux%ux%u: its layer %u (%s, window %u) would get "
              "%ux%ux%u; choose another model or dataset, or a larger --image-size",
              network->name, input.channels, input.rows, input.columns, bad_layer + 1,
              op_kind_name(layer->kind), layer->window, x.channels, x.rows, x.columns);
    return status;
}

/* The last operation whose backward has to run for a bucket that begins here: that of the tensor in
 * which it does. */
static uint32_t first_op_of(const struct network_plan *plan, uint64_t offset)
{
    if (offset == 0) {
        return 0;
    }
    uint32_t t = 0;
    while (plan->tensors[t].span.offset + plan->tensors[t].span.count <= offset) {
        t++;
        assert(t < plan->tensor_count);
    }
    return plan->tensors[t].op;
}

void model_merge_buckets(struct model *model, uint64_t bucket_bytes)
{
    layout_merge(&model->fine, bucket_bytes, &model->layout);
    for (uint32_t bucket = 0; bucket < model->layout.bucket_count; bucket++) {
        model->first_ops[bucket] = first_op_of(&model->plan, model->layout.buckets[bucket].offset);
    }
}

static enum status make_layout(struct model *model, uint64_t bucket_bytes)
{
    const struct network_plan *plan = &model->plan;
    struct span spans[NETWORK_TENSORS_MAX];
    unsigned char may_close[NETWORK_TENSORS_MAX];
    for (uint32_t t = 0; t < plan->tensor_count; t++) {
        spans[t] = plan->tensors[t].span;
        may_close[t] = plan->tensors[t].kind != TENSOR_BIAS;
    }
    enum status status =
        layout_make_buckets(spans, may_close, plan->tensor_count, bucket_bytes, &model->fine);
    if (status != STATUS_OK) {
        log_error("model %s cannot be cut into buckets of %llu bytes: %s", model->network->name,
                  (unsigned long long)bucket_bytes, status_text(status));
        return status;
    }
    layout_split_buckets(&model->fine, bucket_bytes);
    model->fine.digest = network_digest(model->network, plan);
    model_merge_buckets(model, 0);
    return STATUS_OK;
}

/* The vectors of gradients, one behind the other. */
static enum status create_gradients(struct model *model, const struct model_options *options)
{
    uint64_t count = model->plan.value_count, stride = layout_stride(count);
    model->gradient_count = options->gradient_count > 0 ? options->gradient_count : 1;
    if (__builtin_mul_overflow((model->gradient_count - 1) * stride + count, sizeof(float),
                               &model->memory_bytes)) {
        return STATUS_NO_MEMORY;
    }
    model->gradients = calloc(model->gradient_count, sizeof(*model->gradients));
    if (!options->has_region) {
        model->memory = memory_create_large(model->memory_bytes);
    } else if (region_create(model->memory_bytes, &model->region) == STATUS_OK) {
        model->memory = model->region.bytes;
    }
    if (model->gradients == NULL || model->memory == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < model->gradient_count; i++) {
        model->gradients[i] = (float *)model->memory + i * stride;
    }
    model->grads = model->gradients[model->gradient_count - 1];
    return STATUS_OK;
}

static enum status create_vectors(struct model *model, const struct model_options *options)
{
    size_t bytes = model->plan.value_count * sizeof(float);
    model->params = memory_create_large(bytes);
    model->statistics = memory_create_large(model->plan.statistic_count * sizeof(float) + 1);
    enum status status = create_gradients(model, options);
    if (model->params == NULL || model->statistics == NULL || status != STATUS_OK) {
        log_error("no memory for model %s: %u vectors of %zu MiB", model->network->name,
                  1 + model->gradient_count, bytes >> 20);
        return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static enum status compile(struct model *model, const struct model_options *options)
{
    const struct program_options program = {
        .ops = model->plan.ops,
        .op_count = model->plan.op_count,
        .batch_size = options->batch_size,
        .params = model->params,
        .grads = model->grads,
        .kept_count = options->kept_count,
        .statistics = model->statistics,
        .source = options->source,
        .conv = options->conv,
        .precision = options->precision,
    };
    return device_compile(model->device, &program, &model->program);
}

static enum status fill_model(struct model *model, const struct model_options *options)
{
    enum status status = make_plan(model, options);
    if (status != STATUS_OK) {
        return status;
    }
    status = make_layout(model, options->bucket_bytes);
    if (status != STATUS_OK) {
        return status;
    }
    status = create_vectors(model, options);
    if (status != STATUS_OK) {
        return status;
    }
    network_init_params(&model->plan, options->seed, model->params);
    network_init_statistics(&model->plan, model->statistics);
    return compile(model, options);
}

enum status model_create(const struct model_options *options, struct device *device,
                         struct model **ret_model)
{
    assert(options->class_count >= 1 && options->batch_size >= 1);

    const struct network *network = models_find(options->name);
    if (network == NULL) {
        log_error("unknown model '%s'; --help lists those of this build", options->name);
        return STATUS_INVALID;
    }
    struct model *model = calloc(1, sizeof(*model));
    if (model == NULL) {
        return STATUS_NO_MEMORY;
    }
    model->network = network;
    model->device = device;
    enum status status = fill_model(model, options);
    if (status != STATUS_OK) {
        model_destroy(model);
        return status;
    }
    *ret_model = model;
    return STATUS_OK;
}

void model_destroy(struct model *model)
{
    if (model == NULL) {
        return;
    }
    size_t bytes = model->plan.value_count * sizeof(float);
    program_destroy(model->program);
    memory_destroy_large(model->statistics, model->plan.statistic_count * sizeof(float) + 1);
    memory_destroy_large(model->params, bytes);
    if (model->region.bytes == NULL) {
        memory_destroy_large(model->memory, model->memory_bytes);
    }
    free(model->gradients);
    region_destroy(&model->region);
    free(model);
}

const struct layout *model_layout(const struct model *model)
{
    return &model->layout;
}

const struct layout *model_fine_layout(const struct model *model)
{
    return &model->fine;
}

float *model_params(struct model *model)
{
    return model->params;
}

float *model_grads(struct model *model)
{
    return model->grads;
}

float *const *model_gradients(const struct model *model)
{
    return model->gradients;
}

void model_keep_gradients(struct model *model, uint32_t index)
{
    assert(index + 1 < model->gradient_count);
    memcpy(model->gradients[index], model->grads, model->plan.value_count * sizeof(float));
}

float *model_statistics(struct model *model)
{
    return model->statistics;
}

enum status model_fetch_statistics(struct model *model)
{
    return program_fetch_statistics(model->program);
}

uint64_t model_statistic_count(const struct model *model)
{
    return model->plan.statistic_count;
}

uint64_t model_published_count(const struct model *model)
{
    return network_published_count(model->network, &model->plan);
}

const struct region *model_region(const struct model *model)
{
    return model->region.bytes != NULL ? &model->region : NULL;
}

enum status model_forward(struct model *model, const struct program_input *input,
                          struct program_result *ret_result)
{
    return program_forward(model->program, input, ret_result);
}

enum status model_begin_forward(struct model *model, const struct program_input *input)
{
    return program_begin_forward(model->program, input);
}

enum status model_await_result(struct model *model, struct program_result *ret_result)
{
    return program_await_result(model->program, ret_result);
}

/* The operation behind the last one of a bucket. */
static uint32_t end_op_of(const struct model *model, uint32_t bucket)
{
    return bucket == 0 ? model->plan.op_count : model->first_ops[bucket - 1];
}

void model_name_bucket(const struct model *model, uint32_t bucket, char *ret_text, size_t text_size)
{
    bucket_layers_write(model->plan.ops, model->first_ops[bucket], end_op_of(model, bucket),
                        ret_text, text_size);
}

uint32_t model_op_count(const struct model *model)
{
    return model->plan.op_count;
}

void model_name_layer(const struct model *model, uint32_t op, char *ret_text, size_t text_size)
{
    bucket_layers_name(model->plan.ops, model->plan.op_count, op, ret_text, text_size);
}

void model_watch(struct model *model, const struct op_watch *watch)
{
    model->program->watch = watch;
}

enum status model_backward(struct model *model, uint32_t bucket)
{
    assert(bucket < model->layout.bucket_count);
    uint32_t end = end_op_of(model, bucket);
    if (end == model->first_ops[bucket]) {
        return STATUS_OK; // a part of what has been computed for the bucket before
    }
    model->program->recording.bucket = bucket;
    return program_backward(model->program, end - 1, model->first_ops[bucket]);
}

uint32_t model_end_of_ready(const struct model *model, uint32_t bucket)
{
    assert(bucket < model->layout.bucket_count);
    uint32_t end = bucket + 1;
    while (end < model->layout.bucket_count && model->first_ops[end] == end_op_of(model, end)) {
        end++;
    }
    return end;
}

enum status model_await_gradients(struct model *model, uint32_t bucket)
{
    assert(bucket < model->layout.bucket_count);
    return program_await(model->program, model->first_ops[bucket]);
}

bool model_runs_ahead(const struct model *model)
{
    return program_runs_ahead(model->program);
}

bool model_may_update(const struct model *model)
{
    return program_may_update(model->program);
}

enum status model_hold(struct model *model, struct optimizer *optimizer)
{
    float *states[OPTIMIZER_STATES_MAX];
    uint32_t state_count = optimizer_state_count(optimizer);
    for (uint32_t i = 0; i < state_count; i++) {
        states[i] = optimizer_state(optimizer, i);
    }
    return program_hold(model->program, states, state_count);
}

enum status model_apply(struct model *model, uint32_t bucket, const struct optimizer_update *update)
{
    assert(bucket < model->layout.bucket_count);
    struct span span = model->layout.buckets[bucket];
    model->program->recording.bucket = bucket;
    return program_apply(model->program, update, span.offset, span.count);
}

enum status model_fetch(struct model *model)
{
    return program_fetch(model->program);
}

bool model_may_share(const struct model *model)
{
    return program_may_share(model->program);
}

enum status model_share(struct model *model, unsigned char ret_share[PROGRAM_SHARE_BYTES])
{
    return program_share(model->program, ret_share);
}

/* Each worker sums the chunk that a ring would leave with it. */
static struct program_sum sum_of(const struct model *model, uint32_t bucket)
{
    struct span whole = model->layout.buckets[bucket];
    struct span part = span_part(whole, model->world, model->rank);
    return (struct program_sum){
        .bucket = bucket,
        .first_op = model->first_ops[bucket],
        .offset = whole.offset,
        .count = whole.count,
        .part_offset = part.offset,
        .part_count = part.count,
    };
}

enum status model_meet(struct model *model, const struct program_peers *peers)
{
    struct program_peers complete = *peers;
    struct program_sum *sums = calloc(peers->bucket_count, sizeof(*sums));
    assert(peers->bucket_count == model->layout.bucket_count);
    if (sums == NULL) {
        return STATUS_NO_MEMORY;
    }
    model->rank = peers->rank;
    model->world = peers->world;
    for (uint32_t bucket = 0; bucket < peers->bucket_count; bucket++) {
        sums[bucket] = sum_of(model, bucket);
    }
    complete.sums = sums;
    enum status status = program_meet(model->program, &complete);
    free(sums);
    return status;
}

enum status model_expose(struct model *model, struct program_exposed *ret_exposed)
{
    return program_expose(model->program, ret_exposed);
}

enum status model_join(struct model *model, const struct program_joining *joining)
{
    assert(joining->bucket_count == model->layout.bucket_count);
    model->rank = joining->rank;
    model->world = joining->world;
    return program_join(model->program, joining);
}

enum status model_sum(struct model *model, uint32_t bucket)
{
    assert(bucket < model->layout.bucket_count);
    const struct program_sum sum = sum_of(model, bucket);
    return program_sum(model->program, &sum);
}

void model_stop(struct model *model)
{
    program_stop(model->program);
}

void model_part(struct model *model)
{
    program_part(model->program);
}

uint64_t model_take_copy_ns(struct model *model)
{
    return program_take_copy_ns(model->program);
}

enum status model_read_times(struct model *model, struct op_time *ret_times)
{
    return program_read_times(model->program, ret_times);
}

bool model_has_spans(const struct model *model)
{
    return program_has_spans(model->program);
}

void model_record_spans(struct model *model, bool is_on, uint64_t step)
{
    model->program->recording =
        (struct device_recording){.is_on = is_on, .step = step, .bucket = DEVICE_NO_BUCKET};
}

enum status model_read_spans(struct model *model, struct device_span *ret_spans, size_t span_max,
                             size_t *ret_count, uint64_t *ret_dropped)
{
    return program_read_spans(model->program, ret_spans, span_max, ret_count, ret_dropped);
}

uint64_t model_device_memory(const struct model *model)
{
    const struct device_ops *ops = model->device->ops;
    return ops->memory != NULL ? ops->memory(model->program) : 0;
}

void model_describe(const struct model *model, char *ret_text, size_t text_size)
{
    device_describe(model->device, model->program, ret_text, text_size);
}
