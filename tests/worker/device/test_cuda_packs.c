/* Bodies of the CUDA kernels that take packs of 16 bytes: the same bits as element by element. */
#include "tests/worker/device/cuda_bodies.h"

#include <string.h>

#define CHANNELS ((size_t)12)
#define ROWS     ((size_t)331)
#define COUNT    (ROWS * CHANNELS)
#define PARTS    ((size_t)5)

/* What bodies read and write. */
struct memory {
    float x[COUNT], y[COUNT], dy[COUNT], dx[COUNT], other[COUNT], vectors[5][CHANNELS];
    float new_centre[CHANNELS];
    double parts[PARTS * CHANNELS * 2];
} __attribute__((aligned(16)));

static void fill(float *values, size_t count, uint64_t key)
{
    for (size_t i = 0; i < count; i++) {
        values[i] = 2 * random_unit_float(random_element(key, (uint32_t)i)) - 1;
    }
}

static struct memory *create_memory(void)
{
    struct memory *memory = aligned_alloc(16, (sizeof(*memory) + 15) / 16 * 16);
    assert_non_null(memory);
    memset(memory, 0, sizeof(*memory));
    fill(memory->x, COUNT, 1);
    fill(memory->y, COUNT, 2);
    fill(memory->dy, COUNT, 3);
    fill(memory->dx, COUNT, 4);
    fill(memory->other, COUNT, 5);
    for (uint64_t i = 0; i < 5; i++) {
        fill(memory->vectors[i], CHANNELS, 6 + i);
    }
    return memory;
}

static struct cuda_norm_operands operands_of(struct memory *memory, bool has_other, bool has_dy)
{
    return (struct cuda_norm_operands){
        .x = memory->x,
        .other = has_other ? memory->other : NULL,
        .y = memory->y,
        .dy = has_dy ? memory->dy : NULL,
        .dx = memory->dx,
        .centre = memory->vectors[0],
        .factor = memory->vectors[1],
        .shift = memory->vectors[2],
        .slope = memory->vectors[3],
        .offset = memory->vectors[4],
        .new_centre = has_dy ? NULL : memory->new_centre,
        .parts = memory->parts,
    };
}

/* Runs a body for all elements, so many at a time. */
typedef void (*run)(struct memory *memory, unsigned width, unsigned variant);

static void run_relu(struct memory *memory, unsigned width, unsigned variant)
{
    (void)variant;
    for (size_t i = COUNT / width; i-- > 0;) {
        body_relu(memory->y, i, width);
    }
}

static void run_mask(struct memory *memory, unsigned width, unsigned variant)
{
    (void)variant;
    for (size_t i = COUNT / width; i-- > 0;) {
        body_mask(memory->dy, memory->y, i, width);
    }
}

static void run_add(struct memory *memory, unsigned width, unsigned variant)
{
    for (size_t i = COUNT / width; i-- > 0;) {
        body_add(memory->x, memory->other, memory->y, variant % 2 == 1, i, width);
    }
}

static void run_bias(struct memory *memory, unsigned width, unsigned variant)
{
    for (size_t i = COUNT / width; i-- > 0;) {
        body_bias(memory->vectors[0], memory->y, CHANNELS, variant % 2 == 1, i, width);
    }
}

static struct cuda_norm norm_of(unsigned variant)
{
    return (struct cuda_norm){.channels = CHANNELS,
                              .rows = ROWS,
                              .counted = variant % 2 == 1 ? ROWS - 7 : ROWS,
                              .parts = PARTS,
                              .rows_at_once = CUDA_NORM_ROWS,
                              .mask = (enum cuda_mask)(variant / 2 % 3),
                              .has_relu = variant / 6 % 2 == 1,
                              .adds_x = variant / 12 % 2 == 1};
}

static void run_apply(struct memory *memory, unsigned width, unsigned variant)
{
    const struct cuda_norm norm = norm_of(variant);
    const struct cuda_norm_operands operands = operands_of(memory, variant % 2 == 1, false);
    for (size_t i = COUNT / width; i-- > 0;) {
        body_norm_apply(&norm, &operands, i, width);
    }
}

static void run_gradient(struct memory *memory, unsigned width, unsigned variant)
{
    const struct cuda_norm norm = norm_of(variant);
    const struct cuda_norm_operands operands = operands_of(memory, false, true);
    for (size_t i = COUNT / width; i-- > 0;) {
        body_norm_gradient(&norm, &operands, i, width);
    }
}

static void run_parts(struct memory *memory, unsigned width, unsigned variant)
{
    struct cuda_norm norm = norm_of(variant);
    norm.rows_at_once = width > 1 ? CUDA_NORM_ROWS / 2 : CUDA_NORM_ROWS;
    bool has_dy = norm.mask != CUDA_NO_MASK || variant / 6 % 2 == 1;
    const struct cuda_norm_operands operands = operands_of(memory, false, has_dy);
    for (size_t i = CHANNELS / width * PARTS; i-- > 0;) {
        body_norm_part(&norm, &operands, i % (CHANNELS / width), i / (CHANNELS / width), width);
    }
}

static void packs_have_the_bits_of_elements(void **state)
{
    (void)state;
    static const run runs[] = {run_relu,  run_mask,     run_add,  run_bias,
                               run_apply, run_gradient, run_parts};
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        for (unsigned variant = 0; variant < 24; variant++) {
            struct memory *ones = create_memory(), *packs = create_memory(),
                          *fresh = create_memory();
            runs[i](ones, 1, variant);
            runs[i](packs, LANES, variant);
            if (memcmp(ones, packs, sizeof(*ones)) != 0) {
                fail_msg("body %zu, variant %u", i, variant);
            }
            assert_true(memcmp(ones, fresh, sizeof(*ones)) != 0); // it does something
            free(ones);
            free(packs);
            free(fresh);
        }
    }
}

/* In an order of rows that is written down: part p has rows p, p + PARTS, ... */
static void parts_add_up_all_rows_once(void **state)
{
    (void)state;
    struct memory *memory = create_memory();
    const struct cuda_norm norm = {.channels = CHANNELS,
                                   .rows = ROWS,
                                   .counted = ROWS,
                                   .parts = PARTS,
                                   .rows_at_once = CUDA_NORM_ROWS};
    const struct cuda_norm_operands operands = operands_of(memory, false, false);
    for (size_t c = 0; c < CHANNELS; c++) {
        double first = 0, second = 0, expected_first = 0, expected_second = 0;
        for (size_t p = 0; p < PARTS; p++) {
            body_norm_part(&norm, &operands, c, p, 1);
            first += memory->parts[(p * CHANNELS + c) * 2];
            second += memory->parts[(p * CHANNELS + c) * 2 + 1];
        }
        for (size_t row = 0; row < ROWS; row++) {
            double d = (double)memory->x[row * CHANNELS + c] - (double)memory->x[c];
            expected_first += d;
            expected_second += d * d;
        }
        assert_true(fabs(first - expected_first) < 1e-4);
        assert_true(fabs(second - expected_second) < 1e-4);
        assert_true(memory->new_centre[c] == memory->x[c]);
    }
    free(memory);
}

/* Of 32 bits where both numbers have no more. */
static void divisions_are_those_of_64_bits(void **state)
{
    (void)state;
    static const size_t numbers[] = {
        1, 2, 3, 7, 64, 4095, UINT32_MAX - 1, UINT32_MAX, (size_t)UINT32_MAX + 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
            assert_true(body_quotient(numbers[i], numbers[k]) == numbers[i] / numbers[k]);
            assert_true(body_rest(numbers[i], numbers[k]) == numbers[i] % numbers[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_have_the_bits_of_elements),
        cmocka_unit_test(parts_add_up_all_rows_once),
        cmocka_unit_test(divisions_are_those_of_64_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
