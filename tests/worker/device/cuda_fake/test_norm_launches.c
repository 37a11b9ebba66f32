/* Sums of rows, and what takes them, in one launch: the bits of the same in three launches. */
#include "common/base/random.h"
#include "worker/device/cuda/kernels/kernels.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <cuda_runtime_api.h>

#include <math.h>
#include <string.h>

#define CHANNELS_MAX ((size_t)24)
#define ROWS         ((size_t)700)
#define PARTS        ((size_t)300) // more than the threads that add them up
#define VECTORS      5
#define COUNT        (ROWS * CHANNELS_MAX)

/* In elements of either type: what is of two bytes takes the first half. */
struct memory {
    _Alignas(256) float x[COUNT];
    _Alignas(256) float other[COUNT];
    _Alignas(256) float addend[COUNT];
    _Alignas(256) float y[COUNT];
    _Alignas(256) float dy[COUNT];
    _Alignas(256) float dx[COUNT];
    _Alignas(256) double parts[PARTS * CHANNELS_MAX * 2];
    double sums[2 * CHANNELS_MAX + 1], inverse[CHANNELS_MAX];
    float vectors[VECTORS][CHANNELS_MAX], params[2][CHANNELS_MAX], dparams[2][CHANNELS_MAX];
    float statistics[2][CHANNELS_MAX];
};

struct variant {
    enum cuda_type type;
    size_t channels;
    enum cuda_mask mask;
    bool has_relu, adds_x, has_other, has_addend;
};

/* A value of the type whose bits these are, between one half and two. */
static void fill(enum cuda_type type, float *values, uint64_t key)
{
    uint16_t halves[2];
    for (uint32_t i = 0; i < COUNT; i++) {
        float value = 0.5f + 1.5f * random_unit_float(random_element(key, i));
        value = random_element(key, i) % 2 == 1 ? -value : value;
        memcpy(halves, &value, sizeof(halves));
        if (type == CUDA_TYPE_BF16) {
            memcpy((char *)values + i * sizeof(halves[1]), &halves[1], sizeof(halves[1]));
        } else {
            values[i] = value;
        }
    }
}

/* Which is there before, and where a sum is written. */
static float scale_of(size_t c)
{
    return 1 + 0.125f * (float)c;
}

static void fill_memory(struct memory *memory, enum cuda_type type)
{
    memset(memory, 0, sizeof(*memory));
    fill(type, memory->x, 1);
    fill(type, memory->other, 2);
    fill(type, memory->dy, 3);
    fill(type, memory->dx, 4);
    fill(type, memory->addend, 5);
    for (size_t c = 0; c < CHANNELS_MAX; c++) {
        memory->params[0][c] = scale_of(c);
        memory->params[1][c] = 0.25f;
        memory->statistics[1][c] = 1;
    }
}

static struct cuda_norm_operands operands_of(struct memory *memory, const struct variant *variant)
{
    return (struct cuda_norm_operands){
        .x = memory->x,
        .other = variant->has_other ? memory->other : NULL,
        .y = memory->y,
        .centre = memory->vectors[0],
        .factor = memory->vectors[1],
        .shift = memory->vectors[2],
        .slope = memory->vectors[3],
        .offset = memory->vectors[4],
        .parts = memory->parts,
    };
}

static struct cuda_norm_channel channel_of(struct memory *memory)
{
    return (struct cuda_norm_channel){
        .scale = memory->params[0],
        .bias = memory->params[1],
        .statistic_mean = memory->statistics[0],
        .statistic_variance = memory->statistics[1],
        .centre = memory->vectors[0],
        .factor = memory->vectors[1],
        .shift = memory->vectors[2],
        .slope = memory->vectors[3],
        .offset = memory->vectors[4],
        .dscale = memory->dparams[0],
        .dbias = memory->dparams[1],
        .inverse = memory->inverse,
        .sums = memory->sums,
        .count = (double)ROWS,
        .epsilon = 1e-3f,
        .rate = 0.1f,
    };
}

struct work {
    struct cuda_norm norm;
    struct cuda_norm_sums sums;
    struct cuda_norm_operands then;
    enum { NOTHING, APPLY, GRADIENT } kind;
    cudaStream_t stream;
};

static void one_by_one(enum cuda_type type, const struct work *w)
{
    const struct cuda_norm_sums *sums = &w->sums;
    assert_int_equal(kernel_norm_parts(type, &w->norm, &sums->rows, w->stream), 0);
    assert_int_equal(
        kernel_norm_finish(&w->norm, sums->rows.parts, &sums->channel, sums->finish, w->stream), 0);
    if (w->kind == APPLY) {
        assert_int_equal(kernel_norm_apply(type, &w->norm, &w->then, w->stream), 0);
    } else if (w->kind == GRADIENT) {
        assert_int_equal(kernel_norm_gradient(type, &w->norm, &w->then, w->stream), 0);
    }
}

static void at_once(enum cuda_type type, const struct work *w)
{
    int result = w->kind == NOTHING ? kernel_sums(type, &w->norm, &w->sums, w->stream)
                 : w->kind == APPLY
                     ? kernel_sums_apply(type, &w->norm, &w->sums, &w->then, w->stream)
                     : kernel_sums_gradient(type, &w->norm, &w->sums, &w->then, w->stream);
    assert_int_equal(result, 0);
}

typedef void runner(enum cuda_type type, const struct work *work);

/* Forward, backward, and the gradient of a bias, as the backend queues them. */
static void run_all(struct memory *memory, const struct variant *variant, runner *run)
{
    struct work work = {
        .norm = {.channels = variant->channels,
                 .rows = ROWS,
                 .counted = ROWS,
                 .parts = PARTS,
                 .has_relu = variant->has_relu,
                 .adds_x = variant->adds_x},
        .sums = {operands_of(memory, variant), channel_of(memory), CUDA_FINISH_FORWARD},
        .then = operands_of(memory, variant),
        .kind = APPLY,
    };
    fill_memory(memory, variant->type);
    assert_int_equal(cudaStreamCreateWithFlags(&work.stream, cudaStreamNonBlocking), cudaSuccess);
    work.sums.rows.new_centre = memory->vectors[0];
    work.sums.rows.addend = variant->has_addend ? memory->addend : NULL;
    work.sums.rows.sum = memory->x;
    run(variant->type, &work);
    work.norm.mask = variant->mask;
    work.then.dy = memory->dy;
    work.then.dx = memory->dx;
    work.sums.rows = work.then;
    work.sums.finish = CUDA_FINISH_BACKWARD;
    work.kind = GRADIENT;
    run(variant->type, &work);
    work.norm.mask = CUDA_NO_MASK;
    work.sums.rows = (struct cuda_norm_operands){.dy = memory->dx, .parts = memory->parts};
    work.sums.channel.dbias = memory->params[0]; // nobody needs them any more
    work.sums.finish = CUDA_FINISH_BIAS;
    work.kind = NOTHING;
    run(variant->type, &work);
    assert_int_equal(cudaStreamSynchronize(work.stream), cudaSuccess);
    cudaStreamDestroy(work.stream);
}

/* What the sums were over is what an add writes. */
static void check_sum(const struct memory *after, const struct variant *variant)
{
    static struct memory plain;
    cudaStream_t stream;
    fill_memory(&plain, variant->type);
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(kernel_add(variant->type, plain.x, plain.addend, plain.x, false,
                                ROWS * variant->channels, stream),
                     0);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    cudaStreamDestroy(stream);
    assert_memory_equal(after->x, plain.x, sizeof(plain.x));
}

static void check_variant(const struct variant *variant)
{
    static struct memory separate, together;
    run_all(&separate, variant, one_by_one);
    run_all(&together, variant, at_once);
    assert_memory_equal(&separate, &together, sizeof(separate));
    if (variant->has_addend) {
        check_sum(&together, variant);
    }
    for (size_t c = 0; c < variant->channels; c++) { // it has computed something
        assert_true(isnormal(separate.vectors[1][c]) && isnormal(separate.vectors[3][c]));
        assert_true(isfinite(separate.params[0][c]) && separate.params[0][c] != scale_of(c));
    }
}

static void one_launch_has_the_bits_of_three(void **state)
{
    (void)state;
    static const size_t channels[] = {5, 8, 12, 24}; // whole packs of neither, of both, of floats
    for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++) {
        for (unsigned k = 0; k < 96; k++) {
            const struct variant variant = {
                .type = k % 2 == 0 ? CUDA_TYPE_FLOAT : CUDA_TYPE_BF16,
                .channels = channels[i],
                .mask = (enum cuda_mask)(k / 2 % 3),
                .has_relu = k / 6 % 2 == 1,
                .adds_x = k / 12 % 2 == 1,
                .has_other = k / 24 % 2 == 1,
                .has_addend = k / 48 == 1,
            };
            check_variant(&variant);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_launch_has_the_bits_of_three),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
