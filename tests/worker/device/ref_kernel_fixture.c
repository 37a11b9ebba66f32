/* One reference kernel on random tensors. */
#include "tests/worker/device/ref_kernel_fixture.h"

#include "common/base/random.h"
#include "tests/support/model/gradient_check.h"
#include "tests/support/model/program_fixture.h"
#include "worker/model/layer.h"

#include <assert.h>
#include <stdlib.h>

static void *allocate(size_t count, size_t item_bytes)
{
    void *memory = calloc(count > 0 ? count : 1, item_bytes);
    assert(memory != NULL);
    return memory;
}

static float *draw_uniform(size_t count, uint64_t key)
{
    float *values = allocate(count, sizeof(*values));
    for (size_t i = 0; i < count; i++) {
        values[i] = 2 * random_unit_float(random_element(key, (uint32_t)i)) - 1;
    }
    return values;
}

static void connect_call(struct ref_kernel_fixture *fixture, uint32_t batch_size)
{
    fixture->input = (struct program_input){
        .pixels = fixture->x,
        .labels = fixture->labels,
        .sample_keys = fixture->sample_keys,
        .count = batch_size,
        .gradient_scale = 1,
        .is_training = true,
    };
    fixture->call = (struct ref_call){
        .op = &fixture->op,
        .batch_size = batch_size,
        .input = &fixture->input,
        .result = &fixture->result,
        .x = fixture->x,
        .other = fixture->other,
        .y = fixture->y,
        .dy = fixture->dy,
        .dx = fixture->dx,
        .dother = fixture->dother,
        .params = fixture->params,
        .grads = fixture->grads,
        .statistics = fixture->statistics,
        .saved = fixture->saved,
        .status = &fixture->status,
        .scratch = fixture->scratch,
    };
}

void ref_kernel_fixture_init(struct ref_kernel_fixture *fixture, const struct ref_kernel *kernel,
                             const struct op *op, uint32_t batch_size, uint64_t seed)
{
    fixture->kernel = kernel;
    fixture->op = *op;
    fixture->x_count = batch_size * ref_element_count(op->x);
    fixture->y_count = batch_size * ref_element_count(op->y);
    fixture->weight_count = layer_weight_count(op);
    fixture->param_count = fixture->weight_count + layer_bias_count(op);
    fixture->op.weight = 0;
    fixture->op.bias = fixture->weight_count;
    fixture->op.statistics = 0;

    fixture->x = draw_uniform(fixture->x_count, random_mix(seed));
    fixture->dy = draw_uniform(fixture->y_count, random_mix(seed + 1));
    fixture->params = draw_uniform(fixture->param_count, random_mix(seed + 2));
    fixture->y = allocate(fixture->y_count, sizeof(float));
    fixture->dx = allocate(fixture->x_count, sizeof(float));
    fixture->grads = allocate(fixture->param_count, sizeof(float));
    fixture->other = draw_uniform(fixture->x_count, random_mix(seed + 3));
    fixture->dother = allocate(fixture->x_count, sizeof(float));
    fixture->statistics = allocate(2 * (size_t)op->x.channels, sizeof(float));
    fixture->saved = allocate(2 * (size_t)op->x.channels, sizeof(double));
    for (uint32_t c = 0; c < op->x.channels; c++) {
        fixture->statistics[op->x.channels + c] = 1;
    }
    fixture->status = STATUS_OK;
    fixture->scratch = allocate(ref_scratch_count(op), sizeof(double));
    fixture->labels = allocate(batch_size, sizeof(uint32_t));
    fixture->sample_keys = allocate(batch_size, sizeof(uint64_t));
    for (uint32_t n = 0; n < batch_size; n++) {
        fixture->labels[n] = n % op->y.channels;
        fixture->sample_keys[n] = random_key(seed, RANDOM_DROPOUT, 0, n);
    }
    connect_call(fixture, batch_size);
}

void ref_kernel_fixture_finish(struct ref_kernel_fixture *fixture)
{
    free(fixture->x);
    free(fixture->y);
    free(fixture->dy);
    free(fixture->dx);
    free(fixture->params);
    free(fixture->grads);
    free(fixture->other);
    free(fixture->dother);
    free(fixture->statistics);
    free(fixture->saved);
    free(fixture->scratch);
    free(fixture->labels);
    free(fixture->sample_keys);
}

void ref_kernel_fixture_forward(struct ref_kernel_fixture *fixture)
{
    program_fixture_poison(fixture->y, fixture->y_count);
    fixture->kernel->forward(&fixture->call);
}

void ref_kernel_fixture_backward(struct ref_kernel_fixture *fixture)
{
    program_fixture_poison(fixture->dx, fixture->x_count);
    program_fixture_poison(fixture->dother, fixture->x_count);
    program_fixture_poison(fixture->grads, fixture->param_count);
    fixture->kernel->backward(&fixture->call);
}

static double weighted_sum(void *context)
{
    struct ref_kernel_fixture *fixture = context;
    ref_kernel_fixture_forward(fixture);
    double sum = 0;
    for (size_t i = 0; i < fixture->y_count; i++) {
        sum += (double)fixture->y[i] * (double)fixture->dy[i];
    }
    return sum;
}

double ref_kernel_fixture_x_error(struct ref_kernel_fixture *fixture, float step)
{
    return gradient_check(weighted_sum, fixture, fixture->x, fixture->dx, fixture->x_count, step);
}

double ref_kernel_fixture_other_error(struct ref_kernel_fixture *fixture, float step)
{
    return gradient_check(weighted_sum, fixture, fixture->other, fixture->dother, fixture->x_count,
                          step);
}

double ref_kernel_fixture_params_error(struct ref_kernel_fixture *fixture, float step)
{
    return gradient_check(weighted_sum, fixture, fixture->params, fixture->grads,
                          fixture->param_count, step);
}
