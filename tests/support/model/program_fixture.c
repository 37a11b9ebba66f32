/* Random parameters and batches. */
#include "tests/support/model/program_fixture.h"

#include "common/base/random.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum stream { STREAM_PIXELS = 1000, STREAM_LABELS, STREAM_KEYS }; // above any tensor's index

static void *allocate(size_t count, size_t item_bytes)
{
    void *memory = calloc(count, item_bytes);
    assert(memory != NULL);
    return memory;
}

/* Uniform in [-limit, limit). */
static void fill_uniform(float *values, size_t count, float limit, uint64_t key)
{
    for (size_t i = 0; i < count; i++) {
        values[i] = limit * (2 * random_unit_float(random_element(key, (uint32_t)i)) - 1);
    }
}

static void draw_params(struct program_fixture *fixture, uint64_t seed)
{
    const struct network_plan *plan = fixture->plan;
    for (uint32_t t = 0; t < plan->tensor_count; t++) {
        const struct network_tensor *tensor = &plan->tensors[t];
        double fan_in = (double)layer_fan_in(&plan->ops[tensor->op]);
        float limit = tensor->kind == TENSOR_WEIGHT ? (float)sqrt(6 / fan_in) : 0.2f;
        float *values = fixture->params + tensor->span.offset;
        fill_uniform(values, tensor->span.count, limit, random_key(seed, RANDOM_PARAMS, t, 0));
        for (uint64_t i = 0; tensor->kind == TENSOR_SCALE && i < tensor->span.count; i++) {
            values[i] += 1;
        }
    }
}

static void draw_batch(struct program_fixture *fixture, uint64_t seed)
{
    struct shape shape = fixture->plan->ops[0].x;
    size_t sample = (size_t)shape.channels * shape.rows * shape.columns;
    fixture->pixels = allocate(fixture->batch_size * sample, sizeof(float));
    fill_uniform(fixture->pixels, fixture->batch_size * sample, 1.7f,
                 random_key(seed, RANDOM_PARAMS, STREAM_PIXELS, 0));

    uint32_t class_count = fixture->plan->ops[fixture->plan->op_count - 1].x.channels;
    for (uint32_t n = 0; n < fixture->batch_size; n++) {
        uint64_t bits = random_key(seed, RANDOM_PARAMS, STREAM_LABELS, n);
        fixture->labels[n] = (uint32_t)(bits % class_count);
        fixture->sample_keys[n] = random_key(seed, RANDOM_PARAMS, STREAM_KEYS, n);
    }
}

void program_fixture_plan(const struct layer *list, uint32_t layer_count, struct shape input,
                          struct network_plan *ret_plan)
{
    static struct layers layers;
    layers.count = 0;
    layers_append(&layers, list, layer_count);
    program_fixture_plan_layers(&layers, input, list[layer_count - 1].channels, ret_plan);
}

void program_fixture_plan_layers(const struct layers *layers, struct shape input,
                                 uint32_t class_count, struct network_plan *ret_plan)
{
    uint32_t bad_layer;
    ret_plan->layers = *layers;
    enum status status = network_plan_layers(ret_plan, input, class_count, &bad_layer);
    assert(status == STATUS_OK);
    (void)status;
}

uint64_t program_fixture_published(const struct network *network, uint32_t size, uint32_t classes)
{
    static struct network_plan plan;
    uint32_t bad_layer;
    enum status status =
        network_make_plan(network, (struct shape){3, size, size}, classes, &plan, &bad_layer);
    assert(status == STATUS_OK);
    (void)status;
    return network_published_count(network, &plan);
}

void program_fixture_init(struct program_fixture *fixture, const struct network_plan *plan,
                          uint32_t batch_size, uint64_t seed)
{
    fixture->plan = plan;
    fixture->batch_size = batch_size;
    fixture->params = allocate(plan->value_count, sizeof(float));
    fixture->grads = allocate(plan->value_count, sizeof(float));
    fixture->statistics = allocate(plan->statistic_count + 1, sizeof(float));
    network_init_statistics(plan, fixture->statistics);
    fixture->labels = allocate(batch_size, sizeof(uint32_t));
    fixture->sample_keys = allocate(batch_size, sizeof(uint64_t));
    draw_params(fixture, seed);
    draw_batch(fixture, seed);
    program_fixture_poison(fixture->grads, plan->value_count);
    fixture->input = (struct program_input){
        .pixels = fixture->pixels,
        .labels = fixture->labels,
        .sample_keys = fixture->sample_keys,
        .count = batch_size,
        .gradient_scale = 1.0f / (float)batch_size,
        .is_training = true,
    };
}

void program_fixture_finish(struct program_fixture *fixture)
{
    free(fixture->params);
    free(fixture->grads);
    free(fixture->statistics);
    free(fixture->pixels);
    free(fixture->labels);
    free(fixture->sample_keys);
}

void program_fixture_poison(float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        values[i] = nanf("");
    }
}

bool program_fixture_has_bf16(const struct device_ops *ops)
{
    bool has_bf16 = ops->has_precision != NULL && ops->has_precision(PRECISION_BF16);
    if (!has_bf16) {
        printf("%s has no bfloat16 here\n", ops->name);
    }
    return has_bf16;
}

double program_fixture_relative_error(const float *a, const float *b, size_t count)
{
    double difference = 0;
    double norm = 0;
    for (size_t i = 0; i < count; i++) {
        double d = (double)a[i] - (double)b[i];
        difference += d * d;
        norm += (double)b[i] * (double)b[i];
    }
    if (!isfinite(difference)) {
        return (double)INFINITY;
    }
    return norm > 0 ? sqrt(difference / norm) : sqrt(difference);
}
