/* Tests of which samples each batch takes. */
#include "common/vector/layout.h"
#include "worker/data/batches/sampler.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdbool.h>
#include <string.h>

#define SAMPLES_MAX 4096
#define WORKERS_MAX 8

static struct batcher_options training(uint32_t sample_count, uint32_t global_batch, uint32_t world,
                                       uint32_t rank)
{
    struct span slice = span_part((struct span){0, global_batch}, world, rank);
    return (struct batcher_options){
        .batch_size = (uint32_t)slice.count,
        .global_batch = global_batch,
        .rank = rank,
        .world = world,
        .seed = 42,
        .sample_count = sample_count,
        .is_training = true,
    };
}

static struct sampler *create(struct batcher_options options)
{
    struct sampler *sampler = NULL;
    assert_int_equal(sampler_create(&options, &sampler), STATUS_OK);
    return sampler;
}

/* Takes all steps of an epoch; returns the number of samples. */
static uint32_t take_epoch(struct sampler *sampler, uint64_t epoch, uint32_t *ret_indices)
{
    uint32_t total = 0;
    for (uint64_t step = 0; step < sampler_step_count(sampler); step++) {
        uint32_t count = 0;
        sampler_take(sampler, epoch, step, ret_indices + total, &count);
        total += count;
    }
    return total;
}

static void check_slices(struct sampler *one, struct sampler **workers, uint32_t world,
                         uint64_t epoch)
{
    for (uint64_t step = 0; step < sampler_step_count(one); step++) {
        uint32_t whole[SAMPLES_MAX], parts[SAMPLES_MAX], whole_count, part_count, total = 0;
        sampler_take(one, epoch, step, whole, &whole_count);
        for (uint32_t rank = 0; rank < world; rank++) {
            sampler_take(workers[rank], epoch, step, parts + total, &part_count);
            total += part_count;
        }
        assert_int_equal(total, whole_count);
        assert_memory_equal(parts, whole, whole_count * sizeof(whole[0]));
    }
}

static void workers_together_take_what_one_would_in_the_same_steps(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{64, 8}, {100, 9}, {131, 13}, {1000, 64}, {15, 15}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct sampler *one = create(training(sizes[i][0], sizes[i][1], 1, 0));
        for (uint32_t world = 1; world <= WORKERS_MAX; world++) {
            struct sampler *workers[WORKERS_MAX];
            for (uint32_t rank = 0; rank < world; rank++) {
                workers[rank] = create(training(sizes[i][0], sizes[i][1], world, rank));
                assert_int_equal(sampler_step_count(workers[rank]), sizes[i][0] / sizes[i][1]);
            }
            for (uint64_t epoch = 0; epoch < 3; epoch++) {
                check_slices(one, workers, world, epoch);
            }
            for (uint32_t rank = 0; rank < world; rank++) {
                sampler_destroy(workers[rank]);
            }
        }
        sampler_destroy(one);
    }
}

static void a_larger_batch_changes_nothing_of_what_is_taken(void **state)
{
    (void)state;
    for (int is_local = 0; is_local < 2; is_local++) {
        for (uint32_t rank = 0; rank < 3; rank++) {
            struct batcher_options options = training(100, 10, 3, rank);
            options.is_local = is_local != 0;
            struct sampler *exact = create(options);
            options.batch_size = 4;
            struct sampler *padded = create(options);
            uint32_t expected[SAMPLES_MAX], taken[SAMPLES_MAX];
            uint32_t count = take_epoch(exact, 1, expected);
            assert_int_equal(take_epoch(padded, 1, taken), count);
            assert_memory_equal(taken, expected, count * sizeof(taken[0]));
            sampler_destroy(padded);
            sampler_destroy(exact);
        }
    }
}

static void each_sample_is_taken_at_most_once_an_epoch(void **state)
{
    (void)state;
    struct sampler *sampler = create(training(1000, 64, 1, 0));
    for (uint64_t epoch = 0; epoch < 5; epoch++) {
        uint32_t indices[SAMPLES_MAX];
        bool is_taken[1000] = {false};
        assert_int_equal(take_epoch(sampler, epoch, indices), 1000 / 64 * 64);
        for (uint32_t i = 0; i < 1000 / 64 * 64; i++) {
            assert_in_range(indices[i], 0, 999);
            assert_false(is_taken[indices[i]]);
            is_taken[indices[i]] = true;
        }
    }
    sampler_destroy(sampler);
}

static void the_order_is_another_in_each_epoch_and_for_each_seed(void **state)
{
    (void)state;
    struct batcher_options options = training(1000, 100, 1, 0);
    struct sampler *sampler = create(options);
    options.seed++;
    struct sampler *other = create(options);
    uint32_t first[SAMPLES_MAX], second[SAMPLES_MAX], foreign[SAMPLES_MAX];
    take_epoch(sampler, 0, first);
    take_epoch(sampler, 1, second);
    take_epoch(other, 0, foreign);
    uint32_t same_epoch = 0, same_seed = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        same_epoch += first[i] == second[i];
        same_seed += first[i] == foreign[i];
    }
    // One on average for independent orders.
    assert_in_range(same_epoch, 0, 8);
    assert_in_range(same_seed, 0, 8);
    sampler_destroy(other);
    sampler_destroy(sampler);
}

static void an_epoch_does_not_depend_on_those_taken_before(void **state)
{
    (void)state;
    struct sampler *sampler = create(training(500, 50, 1, 0));
    struct sampler *other = create(training(500, 50, 1, 0));
    uint32_t direct[SAMPLES_MAX], later[SAMPLES_MAX];
    uint32_t count = take_epoch(sampler, 7, direct);
    for (uint64_t epoch = 0; epoch < 7; epoch++) {
        take_epoch(other, epoch, later);
    }
    take_epoch(other, 7, later);
    assert_memory_equal(direct, later, count * sizeof(direct[0]));
    take_epoch(other, 3, later);
    take_epoch(other, 7, later);
    assert_memory_equal(direct, later, count * sizeof(direct[0]));
    sampler_destroy(other);
    sampler_destroy(sampler);
}

static void every_order_of_few_samples_is_equally_likely(void **state)
{
    (void)state;
    struct sampler *sampler = create(training(4, 4, 1, 0));
    uint32_t counts[256] = {0};
    for (uint64_t epoch = 0; epoch < 24000; epoch++) {
        uint32_t order[4], count;
        sampler_take(sampler, epoch, 0, order, &count);
        counts[order[0] | order[1] << 2 | order[2] << 4 | order[3] << 6]++;
    }
    uint32_t seen = 0;
    for (uint32_t i = 0; i < 256; i++) {
        if (counts[i] > 0) {
            seen++;
            assert_in_range(counts[i], 1000 - 150, 1000 + 150); // five deviations
        }
    }
    assert_int_equal(seen, 24);
    sampler_destroy(sampler);
}

/* Adds the samples that a worker takes in some epochs to owners[]. */
static void claim(struct sampler *sampler, uint8_t rank, uint8_t *owners, uint32_t sample_count)
{
    for (uint64_t epoch = 0; epoch < 60; epoch++) {
        uint32_t indices[SAMPLES_MAX];
        uint8_t times[SAMPLES_MAX] = {0};
        uint32_t count = take_epoch(sampler, epoch, indices);
        for (uint32_t i = 0; i < count; i++) {
            assert_in_range(indices[i], 0, sample_count - 1);
            assert_int_equal(times[indices[i]]++, 0);
            assert_true(owners[indices[i]] == 0 || owners[indices[i]] == rank + 1);
            owners[indices[i]] = (uint8_t)(rank + 1);
        }
    }
}

static void local_parts_are_fixed_and_disjoint_and_hold_every_sample(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{64, 8}, {100, 9}, {131, 13}, {300, 17}, {15, 15}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (uint32_t world = 1; world <= WORKERS_MAX; world++) {
            uint8_t owners[SAMPLES_MAX] = {0};
            for (uint32_t rank = 0; rank < world; rank++) {
                struct batcher_options options = training(sizes[i][0], sizes[i][1], world, rank);
                options.is_local = true;
                struct sampler *sampler = create(options);
                assert_int_equal(sampler_step_count(sampler), sizes[i][0] / sizes[i][1]);
                claim(sampler, (uint8_t)rank, owners, sizes[i][0]);
                sampler_destroy(sampler);
            }
            for (uint32_t sample = 0; sample < sizes[i][0]; sample++) {
                assert_int_not_equal(owners[sample], 0);
            }
        }
    }
}

static void one_worker_takes_the_same_from_its_local_part_as_from_all(void **state)
{
    (void)state;
    struct batcher_options options = training(200, 30, 1, 0);
    struct sampler *shared = create(options);
    options.is_local = true;
    struct sampler *local = create(options);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        uint32_t a[SAMPLES_MAX], b[SAMPLES_MAX];
        uint32_t count = take_epoch(shared, epoch, a);
        assert_int_equal(take_epoch(local, epoch, b), count);
        assert_memory_equal(a, b, count * sizeof(a[0]));
    }
    sampler_destroy(local);
    sampler_destroy(shared);
}

/* Checks that the part of a rank begins at `begin`; returns where it ends. */
static uint32_t check_part(uint32_t sample_count, uint32_t world, uint32_t rank, uint32_t begin)
{
    struct sampler *sampler = create((struct batcher_options){
        .batch_size = 3, .rank = rank, .world = world, .sample_count = sample_count});
    uint32_t indices[SAMPLES_MAX];
    uint32_t count = take_epoch(sampler, 0, indices);
    assert_int_equal(sampler_step_count(sampler), (count + 2) / 3);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(indices[i], begin + i);
    }
    sampler_destroy(sampler);
    return begin + count;
}

static void an_evaluation_takes_every_sample_once_and_in_order(void **state)
{
    (void)state;
    for (uint32_t sample_count = 1; sample_count < 40; sample_count++) {
        for (uint32_t world = 1; world <= WORKERS_MAX; world++) {
            uint32_t end = 0;
            for (uint32_t rank = 0; rank < world; rank++) {
                end = check_part(sample_count, world, rank, end);
            }
            assert_int_equal(end, sample_count);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_together_take_what_one_would_in_the_same_steps),
        cmocka_unit_test(a_larger_batch_changes_nothing_of_what_is_taken),
        cmocka_unit_test(each_sample_is_taken_at_most_once_an_epoch),
        cmocka_unit_test(the_order_is_another_in_each_epoch_and_for_each_seed),
        cmocka_unit_test(an_epoch_does_not_depend_on_those_taken_before),
        cmocka_unit_test(every_order_of_few_samples_is_equally_likely),
        cmocka_unit_test(local_parts_are_fixed_and_disjoint_and_hold_every_sample),
        cmocka_unit_test(one_worker_takes_the_same_from_its_local_part_as_from_all),
        cmocka_unit_test(an_evaluation_takes_every_sample_once_and_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
