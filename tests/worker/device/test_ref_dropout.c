/* The reference dropout: whom it drops, how it scales, that it is reproducible. */
#include "common/base/random.h"
#include "tests/worker/device/ref_kernel_fixture.h"

#include <math.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static const struct op op = {
    .kind = OP_DROPOUT,
    .x = {4, 25, 25},
    .y = {4, 25, 25},
    .rate = 0.25f,
    .stream = 1,
};

static void an_element_is_dropped_as_its_key_says(void **state)
{
    (void)state;
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_dropout, &op, 3, 5);
    ref_kernel_fixture_forward(&fixture);
    size_t count = ref_element_count(op.x);
    for (size_t i = 0; i < fixture.x_count; i++) {
        uint64_t key = random_mix(fixture.sample_keys[i / count] + op.stream);
        bool is_kept = random_element(key, (uint32_t)(i % count)) >= 0x40000000;
        float expected = is_kept ? fixture.x[i] / 0.75f : 0;
        assert_true(fabsf(fixture.y[i] - expected) <= 1e-6f);
    }
    ref_kernel_fixture_finish(&fixture);
}

static void the_share_of_dropped_elements_is_the_rate(void **state)
{
    (void)state;
    static const float rates[] = {0, 0.1f, 0.25f, 0.5f, 0.9f};
    for (size_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++) {
        struct op with_rate = op;
        with_rate.rate = rates[r];
        struct ref_kernel_fixture fixture;
        ref_kernel_fixture_init(&fixture, &ref_dropout, &with_rate, 8, r);
        ref_kernel_fixture_forward(&fixture);
        double dropped = 0;
        for (size_t i = 0; i < fixture.x_count; i++) {
            dropped += fixture.y[i] == 0;
        }
        // 20,000 draws: five standard deviations are at most 0.018.
        double share = dropped / (double)fixture.x_count;
        assert_true(fabs(share - (double)rates[r]) < 0.018);
        ref_kernel_fixture_finish(&fixture);
    }
}

static void streams_and_samples_have_masks_of_their_own(void **state)
{
    (void)state;
    struct op other = op;
    other.stream = 2;
    struct ref_kernel_fixture a;
    struct ref_kernel_fixture b;
    ref_kernel_fixture_init(&a, &ref_dropout, &op, 2, 5);
    ref_kernel_fixture_init(&b, &ref_dropout, &other, 2, 5);
    ref_kernel_fixture_forward(&a);
    ref_kernel_fixture_forward(&b);
    size_t count = ref_element_count(op.x);
    uint32_t stream_differences = 0;
    uint32_t sample_differences = 0;
    for (size_t i = 0; i < count; i++) {
        stream_differences += (a.y[i] == 0) != (b.y[i] == 0);
        sample_differences += (a.y[i] == 0) != (a.y[count + i] == 0);
    }
    // Independent masks differ in 2 * 0.25 * 0.75 of 2,500 elements.
    assert_in_range(stream_differences, 800, 1075);
    assert_in_range(sample_differences, 800, 1075);
    ref_kernel_fixture_finish(&a);
    ref_kernel_fixture_finish(&b);
}

static void without_training_nothing_is_changed(void **state)
{
    (void)state;
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_dropout, &op, 2, 5);
    fixture.input.is_training = false;
    fixture.input.sample_keys = NULL;
    ref_kernel_fixture_forward(&fixture);
    assert_memory_equal(fixture.y, fixture.x, fixture.x_count * sizeof(float));
    ref_kernel_fixture_finish(&fixture);
}

static void gradients_agree_with_finite_differences(void **state)
{
    (void)state;
    struct op small = op;
    small.x = small.y = (struct shape){3, 4, 5};
    struct ref_kernel_fixture fixture;
    ref_kernel_fixture_init(&fixture, &ref_dropout, &small, 3, 9);
    ref_kernel_fixture_forward(&fixture);
    ref_kernel_fixture_backward(&fixture);
    assert_true(ref_kernel_fixture_x_error(&fixture, 0.5f) < 1e-5); // linear: any step will do
    ref_kernel_fixture_finish(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_element_is_dropped_as_its_key_says),
        cmocka_unit_test(the_share_of_dropped_elements_is_the_rate),
        cmocka_unit_test(streams_and_samples_have_masks_of_their_own),
        cmocka_unit_test(without_training_nothing_is_changed),
        cmocka_unit_test(gradients_agree_with_finite_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
