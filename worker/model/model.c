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
#include "worker/model/models.h"

#include <assert.h>
#include <stdlib.h>

struct model {
    const struct network *network;
    struct network_plan plan;
    struct layout fine;                     // as it was cut at create
    struct layout layout;                   // with buckets of it joined
    uint32_t first_ops[LAYOUT_BUCKETS_MAX]; // of each bucket; its last is before the next bucket's
    float *params;                          // (value_count), owned
    float *grads;                           // (value_count), owned
    float *statistics;                      // (statistic_count), owned
    struct region region;                   // of grads, or empty
    struct device *device;                  // borrowed
    struct program *program;                // owned
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

static enum status create_vectors(struct model *model, bool has_region)
{
    size_t bytes = model->plan.value_count * sizeof(float);
    model->params = memory_create_large(bytes);
    if (!has_region) {
        model->grads = memory_create_large(bytes);
    } else if (region_create(bytes, &model->region) == STATUS_OK) {
        model->grads = model->region.bytes;
    }
    model->statistics = memory_create_large(model->plan.statistic_count * sizeof(float) + 1);
    if (model->params == NULL || model->grads == NULL || model->statistics == NULL) {
        log_error("no memory for model %s: two vectors of %zu MiB", model->network->name,
                  bytes >> 20);
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
        .statistics = model->statistics,
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
    status = create_vectors(model, options->has_region);
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
        memory_destroy_large(model->grads, bytes);
    }
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

float *model_statistics(struct model *model)
{
    return model->statistics;
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

enum status model_backward(struct model *model, uint32_t bucket)
{
    assert(bucket < model->layout.bucket_count);
    uint32_t end = bucket == 0 ? model->plan.op_count : model->first_ops[bucket - 1];
    if (end == model->first_ops[bucket]) {
        return STATUS_OK; // a part of what has been computed for the bucket before
    }
    return program_backward(model->program, end - 1, model->first_ops[bucket]);
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
    return program_apply(model->program, update, span.offset, span.count);
}

enum status model_fetch(struct model *model)
{
    return program_fetch(model->program);
}

uint64_t model_take_copy_ns(struct model *model)
{
    return program_take_copy_ns(model->program);
}

enum status model_read_times(struct model *model, struct op_time *ret_times)
{
    return program_read_times(model->program, ret_times);
}

void model_describe(const struct model *model, char *ret_text, size_t text_size)
{
    device_describe(model->device, model->program, ret_text, text_size);
}
