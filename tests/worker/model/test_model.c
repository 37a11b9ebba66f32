/* Models as the trainer sees them: vectors, buckets, and what is refused. */
#include "common/base/memory.h"
#include "tests/support/model/program_fixture.h"
#include "worker/model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define BATCH_SIZE 2

/* Buckets of lenet5, 61,706 parameters, from one for all to one for each layer. */
static const uint64_t bucket_sizes[] = {1 << 20, 100000, 12000, 1};
#define BUCKET_SIZE_COUNT (sizeof(bucket_sizes) / sizeof(bucket_sizes[0]))

static struct model_options lenet5_options(uint64_t bucket_bytes)
{
    return (struct model_options){
        .name = "lenet5",
        .input = {1, 28, 28},
        .class_count = 10,
        .batch_size = BATCH_SIZE,
        .seed = 5,
        .bucket_bytes = bucket_bytes,
    };
}

static int open_ref(void **state)
{
    const struct device_options options = {.threads = 1};
    struct device *device;
    if (device_open("ref", &options, &device) != STATUS_OK) {
        return -1;
    }
    *state = device;
    return 0;
}

static int close_ref(void **state)
{
    device_close(*state);
    return 0;
}

static struct model *create(const struct model_options *options, struct device *device)
{
    struct model *model = NULL;
    assert_int_equal(model_create(options, device, &model), STATUS_OK);
    assert_non_null(model);
    return model;
}

static double forward(struct model *model)
{
    static float pixels[BATCH_SIZE * 28 * 28];
    static const uint32_t labels[BATCH_SIZE] = {3, 7};
    static const uint64_t sample_keys[BATCH_SIZE] = {1, 2};
    for (uint32_t i = 0; i < BATCH_SIZE * 28 * 28; i++) {
        pixels[i] = sinf((float)i);
    }
    const struct program_input input = {
        .pixels = pixels,
        .labels = labels,
        .sample_keys = sample_keys,
        .count = BATCH_SIZE,
        .gradient_scale = 1.0f / BATCH_SIZE,
        .is_training = true,
    };
    struct program_result result = {.loss_sum = (double)NAN};
    assert_int_equal(model_forward(model, &input, &result), STATUS_OK);
    return result.loss_sum;
}

static void the_vectors_are_aligned(void **state)
{
    struct model_options options = lenet5_options(1 << 20);
    struct model *model = create(&options, *state);
    assert_int_equal(model_layout(model)->value_count, 61706);
    assert_int_equal((uintptr_t)model_params(model) % MEMORY_ALIGNMENT, 0);
    assert_int_equal((uintptr_t)model_grads(model) % MEMORY_ALIGNMENT, 0);
    model_destroy(model);
}

static void the_layout_is_sound_and_its_digest_is_the_networks(void **state)
{
    uint64_t digest = 0;
    uint32_t bucket_count = 0;
    for (size_t i = 0; i < BUCKET_SIZE_COUNT; i++) {
        struct model_options options = lenet5_options(bucket_sizes[i]);
        options.seed = i;
        struct model *model = create(&options, *state);
        const struct layout *layout = model_layout(model);
        assert_int_equal(layout_check(layout), STATUS_OK);
        assert_true(i == 0 || layout->bucket_count != bucket_count);
        assert_true(i == 0 || layout->digest == digest);
        bucket_count = layout->bucket_count;
        digest = layout->digest;
        model_destroy(model);
    }
    assert_int_equal(bucket_count, 5); // a layer each

    struct model_options options = lenet5_options(1);
    options.class_count = 11;
    struct model *model = create(&options, *state);
    assert_true(model_layout(model)->digest != digest);
    model_destroy(model);
}

static bool all_nan(const float *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!isnan(values[i])) {
            return false;
        }
    }
    return true;
}

static bool none_nan(const float *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (isnan(values[i])) {
            return false;
        }
    }
    return true;
}

/* A large tensor is several buckets, which are all there once the first is: 12000 bytes of the
 * 192000 of lenet5's first linear layer. */
static void parts_of_a_tensor_are_complete_together(void **state)
{
    struct model_options options = lenet5_options(12000);
    struct model *model = create(&options, *state);
    const struct layout *layout = model_layout(model);
    float *grads = model_grads(model);
    uint32_t complete_before = 0, end = 0;
    program_fixture_poison(grads, layout->value_count);
    forward(model);
    for (uint32_t bucket = 0; bucket < layout->bucket_count; bucket++) {
        struct span span = layout->buckets[bucket];
        bool is_complete = none_nan(grads + span.offset, span.count);
        assert_int_equal(is_complete, bucket < end);
        complete_before += is_complete;
        end = is_complete ? end : model_end_of_ready(model, bucket);
        assert_int_equal(model_backward(model, bucket), STATUS_OK);
        assert_int_equal(model_await_gradients(model, bucket), STATUS_OK);
        assert_true(none_nan(grads + span.offset, span.count));
    }
    assert_in_range(complete_before, 15, layout->bucket_count - 3);
    model_destroy(model);
}

static void backward_of_a_bucket_fills_it_and_no_other(void **state)
{
    const uint64_t whole_sizes[] = {1 << 20, 1}; // in which no tensor is cut
    for (size_t i = 0; i < 2; i++) {
        struct model_options options = lenet5_options(whole_sizes[i]);
        struct model *model = create(&options, *state);
        const struct layout *layout = model_layout(model);
        float *grads = model_grads(model);
        for (int step = 0; step < 2; step++) {
            program_fixture_poison(grads, layout->value_count);
            forward(model);
            for (uint32_t bucket = 0; bucket < layout->bucket_count; bucket++) {
                struct span span = layout->buckets[bucket];
                assert_true(all_nan(grads, span.offset + span.count));
                assert_int_equal(model_backward(model, bucket), STATUS_OK);
                assert_int_equal(model_await_gradients(model, bucket), STATUS_OK);
                assert_true(none_nan(grads + span.offset, span.count));
                assert_true(all_nan(grads, span.offset));
            }
        }
        model_destroy(model);
    }
}

static void the_cut_into_buckets_changes_no_gradient(void **state)
{
    size_t bytes = 61706 * sizeof(float);
    float *expected = malloc(bytes);
    assert_non_null(expected);
    for (size_t i = 0; i < BUCKET_SIZE_COUNT; i++) {
        struct model_options options = lenet5_options(bucket_sizes[i]);
        struct model *model = create(&options, *state);
        forward(model);
        for (uint32_t bucket = 0; bucket < model_layout(model)->bucket_count; bucket++) {
            assert_int_equal(model_backward(model, bucket), STATUS_OK);
            assert_int_equal(model_await_gradients(model, bucket), STATUS_OK);
        }
        if (i == 0) {
            memcpy(expected, model_grads(model), bytes);
        }
        assert_memory_equal(model_grads(model), expected, bytes);
        model_destroy(model);
    }
    free(expected);
}

/* As an exchange and a backward pass see it: merged, finer again, and as it was. */
static void merged_buckets_are_filled_one_by_one_with_the_same_gradients(void **state)
{
    const uint64_t sizes[] = {100000, 0, 12000, UINT64_MAX, 30000, 0};
    struct model_options options = lenet5_options(12000);
    struct model *model = create(&options, *state);
    struct layout fine = *model_layout(model), expected;
    float *grads = model_grads(model);
    size_t bytes = fine.value_count * sizeof(float);
    float *first = malloc(bytes);
    assert_non_null(first);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        model_merge_buckets(model, sizes[i]);
        const struct layout *layout = model_layout(model);
        layout_merge(&fine, sizes[i], &expected);
        assert_memory_equal(layout->buckets, expected.buckets,
                            expected.bucket_count * sizeof(expected.buckets[0]));
        assert_int_equal(layout->bucket_count, expected.bucket_count);
        assert_int_equal(model_fine_layout(model)->bucket_count, fine.bucket_count);
        program_fixture_poison(grads, layout->value_count);
        forward(model);
        for (uint32_t bucket = 0; bucket < layout->bucket_count; bucket++) {
            struct span span = layout->buckets[bucket];
            assert_int_equal(model_backward(model, bucket), STATUS_OK);
            assert_int_equal(model_await_gradients(model, bucket), STATUS_OK);
            assert_true(none_nan(grads + span.offset, span.count));
        }
        if (i == 0) {
            memcpy(first, grads, bytes);
        }
        assert_memory_equal(grads, first, bytes);
    }
    free(first);
    model_destroy(model);
}

static void the_seed_alone_decides_the_first_parameters(void **state)
{
    struct model_options options = lenet5_options(1);
    struct model *a = create(&options, *state);
    options.batch_size = 1;
    options.bucket_bytes = 1 << 20;
    struct model *b = create(&options, *state);
    options.seed++;
    struct model *c = create(&options, *state);
    size_t bytes = model_layout(a)->value_count * sizeof(float);
    assert_memory_equal(model_params(a), model_params(b), bytes);
    assert_true(memcmp(model_params(a), model_params(c), bytes) != 0);
    model_destroy(a);
    model_destroy(b);
    model_destroy(c);
}

static void what_cannot_be_trained_is_refused_and_writes_nothing(void **state)
{
    struct model *model = NULL;
    struct model_options options = lenet5_options(1);
    options.name = "lenet6";
    assert_int_equal(model_create(&options, *state, &model), STATUS_INVALID);
    options = lenet5_options(1);
    options.input = (struct shape){1, 8, 8};
    assert_int_equal(model_create(&options, *state, &model), STATUS_INVALID);
    options = lenet5_options(1);
    options.batch_size = UINT32_MAX;
    assert_int_equal(model_create(&options, *state, &model), STATUS_NO_MEMORY);
    assert_null(model);
}

static void a_model_says_what_was_compiled(void **state)
{
    struct model_options options = lenet5_options(1);
    struct model *model = create(&options, *state);
    char text[256] = "";
    model_describe(model, text, sizeof(text));
    assert_true(text[0] != '\0');
    model_destroy(model);
    model_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_are_aligned),
        cmocka_unit_test(the_layout_is_sound_and_its_digest_is_the_networks),
        cmocka_unit_test(parts_of_a_tensor_are_complete_together),
        cmocka_unit_test(backward_of_a_bucket_fills_it_and_no_other),
        cmocka_unit_test(the_cut_into_buckets_changes_no_gradient),
        cmocka_unit_test(merged_buckets_are_filled_one_by_one_with_the_same_gradients),
        cmocka_unit_test(the_seed_alone_decides_the_first_parameters),
        cmocka_unit_test(what_cannot_be_trained_is_refused_and_writes_nothing),
        cmocka_unit_test(a_model_says_what_was_compiled),
    };
    return cmocka_run_group_tests(tests, open_ref, close_ref);
}
