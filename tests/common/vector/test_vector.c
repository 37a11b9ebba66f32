/* Tests of the vector loops: every variant that this machine runs, against plain C. */
#include "common/base/random.h"
#include "common/vector/variants.h"
#include "common/vector/vector.h"
#include "common/vector/vector_variants.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

// Longer than two vectors of the widest variant, with every remainder, at every alignment.
#define COUNT_MAX  75
#define OFFSET_MAX 17
#define SIZE       (COUNT_MAX + OFFSET_MAX + 1)

#define MEAN_MAX 10 // vectors

static void fill(float values[SIZE], uint64_t seed)
{
    struct random_sequence sequence = {seed};
    for (size_t i = 0; i < SIZE; i++) {
        values[i] = ldexpf(random_unit_float((uint32_t)random_next(&sequence)) - 0.5F,
                           (int)random_below(&sequence, 40) - 20);
    }
}

struct vectors {
    float to[SIZE], a[SIZE], b[SIZE], wanted[SIZE];
};

typedef void check_function(const struct vector_operations *operations, struct vectors *vectors,
                            size_t offset, size_t count);

/* All variants, lengths and alignments; the whole of `to` must be as wanted, what lies before and
 * behind the vector too. */
static void check_all(check_function *check)
{
    for (unsigned variant = 0; variant < VARIANT_COUNT; variant++) {
        if (!variant_is_supported(variant)) {
            print_message("not on this machine: %s\n", vector_variants[variant].name);
            continue;
        }
        for (size_t offset = 0; offset < OFFSET_MAX; offset++) {
            for (size_t count = 0; count <= COUNT_MAX; count++) {
                struct vectors vectors;
                fill(vectors.to, 1);
                fill(vectors.a, 2);
                fill(vectors.b, 3);
                memcpy(vectors.wanted, vectors.to, sizeof(vectors.to));
                check(&vector_variants[variant], &vectors, offset, count);
                assert_memory_equal(vectors.to, vectors.wanted, sizeof(vectors.to));
            }
        }
    }
}

static void check_add(const struct vector_operations *operations, struct vectors *vectors,
                      size_t offset, size_t count)
{
    for (size_t i = offset; i < offset + count; i++) {
        vectors->wanted[i] = vectors->to[i] + vectors->a[i - offset];
    }
    operations->add(vectors->to + offset, vectors->a, count);
}

static void check_sum(const struct vector_operations *operations, struct vectors *vectors,
                      size_t offset, size_t count)
{
    for (size_t i = offset; i < offset + count; i++) {
        vectors->wanted[i] = vectors->a[i] + vectors->b[i - offset];
    }
    operations->sum(vectors->to + offset, vectors->a + offset, vectors->b, count);
}

static void check_scale(const struct vector_operations *operations, struct vectors *vectors,
                        size_t offset, size_t count)
{
    for (size_t i = offset; i < offset + count; i++) {
        vectors->wanted[i] = vectors->to[i] * (1.0F / 3);
    }
    operations->scale(vectors->to + offset, 1.0F / 3, count);
}

/* Every vector, each at an alignment of its own, becomes the mean, and nothing around it changes.
 */
static void check_mean_of(const struct vector_operations *operations, size_t vector_count,
                          size_t offset, size_t count)
{
    float all[MEAN_MAX][SIZE], wanted[MEAN_MAX][SIZE];
    float *starts[MEAN_MAX];
    for (size_t k = 0; k < vector_count; k++) {
        fill(all[k], k);
        memcpy(wanted[k], all[k], sizeof(all[k]));
        starts[k] = all[k] + (offset + k) % OFFSET_MAX;
    }
    for (size_t i = 0; i < count; i++) {
        float sum = starts[0][i];
        for (size_t k = 1; k < vector_count; k++) {
            sum += starts[k][i];
        }
        for (size_t k = 0; k < vector_count; k++) {
            wanted[k][(size_t)(starts[k] - all[k]) + i] = sum * (1.0F / 3);
        }
    }
    operations->mean(starts, vector_count, 1.0F / 3, count);
    assert_memory_equal(all, wanted, vector_count * sizeof(all[0]));
}

static void check_mean(const struct vector_operations *operations, struct vectors *vectors,
                       size_t offset, size_t count)
{
    (void)vectors;
    for (size_t vector_count = 1; vector_count <= MEAN_MAX; vector_count++) {
        check_mean_of(operations, vector_count, offset, count);
    }
}

static void check_is_finite(const struct vector_operations *operations, struct vectors *vectors,
                            size_t offset, size_t count)
{
    const float bad[] = {INFINITY, -INFINITY, NAN, -NAN};
    // What is not finite before and behind the vector does not count.
    float values[SIZE];
    for (size_t i = 0; i < SIZE; i++) {
        bool is_inside = i >= offset && i < offset + count;
        values[i] = is_inside ? vectors->a[i] : (float)NAN;
    }
    assert_true(operations->is_finite(values + offset, count));
    for (size_t i = offset; i < offset + count; i++) {
        float kept = values[i];
        values[i] = bad[i % 4];
        assert_false(operations->is_finite(values + offset, count));
        values[i] = kept;
    }
}

static void add_adds_in_every_variant(void **state)
{
    (void)state;
    check_all(check_add);
}

static void sum_sums_in_every_variant(void **state)
{
    (void)state;
    check_all(check_sum);
}

static void mean_gives_every_vector_the_mean_in_every_variant(void **state)
{
    (void)state;
    check_all(check_mean);
}

static void scale_scales_in_every_variant(void **state)
{
    (void)state;
    check_all(check_scale);
}

static void is_finite_sees_every_element_in_every_variant(void **state)
{
    (void)state;
    check_all(check_is_finite);
}

static void the_ends_of_the_range_of_floats_are_finite(void **state)
{
    (void)state;
    const float values[] = {0, -0.0F, FLT_MAX, -FLT_MAX, FLT_MIN, FLT_TRUE_MIN, -FLT_TRUE_MIN};
    assert_true(vector_is_finite(values, sizeof(values) / sizeof(values[0])));
    assert_true(vector_is_finite(values, 0));
}

static void one_nan_in_a_long_vector_is_found_wherever_it_is(void **state)
{
    (void)state;
    static float values[20000];
    const size_t places[] = {0, 4095, 4096, 8191, 8192, 12345, 19999};
    assert_true(vector_is_finite(values, 20000));
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        values[places[i]] = NAN;
        assert_false(vector_is_finite(values, 20000));
        values[places[i]] = 0;
    }
}

static void a_sum_may_land_in_either_of_its_terms(void **state)
{
    (void)state;
    float a[SIZE], b[SIZE], apart[SIZE], in_place[SIZE];
    fill(a, 1);
    fill(b, 2);
    vector_sum(apart, a, b, SIZE);

    memcpy(in_place, a, sizeof(a));
    vector_sum(in_place, in_place, b, SIZE);
    assert_memory_equal(in_place, apart, sizeof(apart));

    memcpy(in_place, b, sizeof(b));
    vector_sum(in_place, a, in_place, SIZE);
    assert_memory_equal(in_place, apart, sizeof(apart));

    vector_sum(in_place, a, a, SIZE);
    memcpy(apart, a, sizeof(a));
    vector_scale(apart, 2, SIZE);
    assert_memory_equal(in_place, apart, sizeof(apart));
}

static void the_variant_has_the_name_of_the_best_that_runs(void **state)
{
    (void)state;
    assert_true(variant_is_supported(VARIANT_PORTABLE));
    assert_true(variant_is_supported(variant_best()));
    assert_string_equal(vector_variant(), vector_variants[variant_best()].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(add_adds_in_every_variant),
        cmocka_unit_test(sum_sums_in_every_variant),
        cmocka_unit_test(mean_gives_every_vector_the_mean_in_every_variant),
        cmocka_unit_test(scale_scales_in_every_variant),
        cmocka_unit_test(is_finite_sees_every_element_in_every_variant),
        cmocka_unit_test(the_ends_of_the_range_of_floats_are_finite),
        cmocka_unit_test(one_nan_in_a_long_vector_is_found_wherever_it_is),
        cmocka_unit_test(a_sum_may_land_in_either_of_its_terms),
        cmocka_unit_test(the_variant_has_the_name_of_the_best_that_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
