/* Tests of the drawn figures. */
#include "common/vector/layout.h"
#include "worker/data/dataset.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define PIXELS  3072
#define CLASSES 10

static struct dataset *open_shapes(uint64_t seed, enum dataset_split split)
{
    struct dataset *dataset = NULL;
    assert_int_equal(
        dataset_open("shapes", &(struct dataset_options){.seed = seed, .split = split}, &dataset),
        STATUS_OK);
    return dataset;
}

static uint64_t digest_of(const struct dataset *dataset, uint64_t count)
{
    uint64_t digest = LAYOUT_DIGEST_SEED;
    for (uint64_t i = 0; i < count; i++) {
        float pixels[PIXELS];
        uint32_t label;
        assert_int_equal(dataset_read(dataset, i, pixels, &label), STATUS_OK);
        digest = layout_digest_add(digest, pixels, sizeof(pixels));
        digest = layout_digest_add(digest, &label, sizeof(label));
    }
    return digest;
}

static void every_machine_draws_the_recorded_bits(void **state)
{
    (void)state;
    struct dataset *dataset = open_shapes(7, DATASET_TRAIN);
    assert_int_equal(digest_of(dataset, 200), UINT64_C(0x6170B41FEC9FC69C));
    dataset_close(dataset);
}

static void figures_follow_from_seed_and_split(void **state)
{
    (void)state;
    struct dataset *one = open_shapes(1, DATASET_TRAIN);
    struct dataset *again = open_shapes(1, DATASET_TRAIN);
    struct dataset *test = open_shapes(1, DATASET_TEST);
    struct dataset *two = open_shapes(2, DATASET_TRAIN);
    uint64_t digest = digest_of(one, 20);
    assert_true(digest_of(again, 20) == digest);
    assert_true(digest_of(test, 20) != digest);
    assert_true(digest_of(two, 20) != digest);
    dataset_close(two);
    dataset_close(test);
    dataset_close(again);
    dataset_close(one);
}

static void classes_are_of_one_size_in_both_splits(void **state)
{
    (void)state;
    static const uint64_t counts[] = {[DATASET_TRAIN] = 8192, [DATASET_TEST] = 2048};
    for (int split = 0; split < 2; split++) {
        struct dataset *dataset = open_shapes(3, (enum dataset_split)split);
        assert_int_equal(dataset->sample_count, counts[split]);
        uint32_t sizes[CLASSES] = {0};
        for (uint64_t i = 0; i < dataset->sample_count; i++) {
            float pixels[PIXELS];
            uint32_t label;
            assert_int_equal(dataset_read(dataset, i, pixels, &label), STATUS_OK);
            sizes[label]++;
        }
        for (uint32_t i = 0; i < CLASSES; i++) {
            assert_in_range(sizes[i], counts[split] / CLASSES, counts[split] / CLASSES + 1);
        }
        dataset_close(dataset);
    }
}

static void no_two_of_a_class_look_alike(void **state)
{
    (void)state;
    struct dataset *dataset = open_shapes(4, DATASET_TRAIN);
    for (uint64_t i = 0; i < 100; i++) {
        float a[PIXELS], b[PIXELS];
        uint32_t label_a, label_b;
        assert_int_equal(dataset_read(dataset, i, a, &label_a), STATUS_OK);
        assert_int_equal(dataset_read(dataset, i + CLASSES, b, &label_b), STATUS_OK);
        assert_int_equal(label_a, label_b);
        double distance = 0;
        for (uint32_t k = 0; k < PIXELS; k++) {
            assert_true(fabsf(a[k]) < 8); // and finite
            distance += (double)((a[k] - b[k]) * (a[k] - b[k]));
        }
        assert_true(distance / PIXELS > 0.05);
    }
    dataset_close(dataset);
}

struct means {
    double pixels[CLASSES][PIXELS];
    double halved_squares[CLASSES]; // of the length of each mean
};

static void learn_means(const struct dataset *dataset, uint64_t count, struct means *ret_means)
{
    memset(ret_means, 0, sizeof(*ret_means));
    for (uint64_t i = 0; i < count; i++) {
        float pixels[PIXELS];
        uint32_t label;
        assert_int_equal(dataset_read(dataset, i, pixels, &label), STATUS_OK);
        for (uint32_t k = 0; k < PIXELS; k++) {
            ret_means->pixels[label][k] += (double)pixels[k] * CLASSES / (double)count;
        }
    }
    for (uint32_t c = 0; c < CLASSES; c++) {
        for (uint32_t k = 0; k < PIXELS; k++) {
            ret_means->halved_squares[c] += 0.5 * ret_means->pixels[c][k] * ret_means->pixels[c][k];
        }
    }
}

static uint32_t nearest_mean(const struct means *means, const float *pixels)
{
    uint32_t best = 0;
    double best_score = -HUGE_VAL;
    for (uint32_t c = 0; c < CLASSES; c++) {
        double score = -means->halved_squares[c];
        for (uint32_t k = 0; k < PIXELS; k++) {
            score += means->pixels[c][k] * (double)pixels[k];
        }
        if (score > best_score) {
            best = c;
            best_score = score;
        }
    }
    return best;
}

static void a_linear_model_stays_near_to_guessing(void **state)
{
    (void)state;
    static struct means means;
    struct dataset *train = open_shapes(5, DATASET_TRAIN);
    struct dataset *test = open_shapes(5, DATASET_TEST);
    learn_means(train, 4000, &means);
    uint32_t right = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        float pixels[PIXELS];
        uint32_t label;
        assert_int_equal(dataset_read(test, i, pixels, &label), STATUS_OK);
        right += nearest_mean(&means, pixels) == label;
    }
    assert_in_range(right, 50, 250); // of 1000, with ten classes
    dataset_close(test);
    dataset_close(train);
}

static void *digest_in_thread(void *argument)
{
    uint64_t digest = digest_of(argument, 30);
    return digest == digest_of(argument, 30) ? argument : NULL;
}

static void several_threads_may_read(void **state)
{
    (void)state;
    struct dataset *dataset = open_shapes(6, DATASET_TRAIN);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, digest_in_thread, dataset), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, dataset);
    }
    dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_machine_draws_the_recorded_bits),
        cmocka_unit_test(figures_follow_from_seed_and_split),
        cmocka_unit_test(classes_are_of_one_size_in_both_splits),
        cmocka_unit_test(no_two_of_a_class_look_alike),
        cmocka_unit_test(a_linear_model_stays_near_to_guessing),
        cmocka_unit_test(several_threads_may_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
