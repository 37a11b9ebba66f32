/* Tests of batches, read ahead and not. */
#include "common/base/memory.h"
#include "common/vector/layout.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/data/numbered.h"
#include "worker/data/batches/batcher.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#define WORKERS_MAX 8

/* ---- training ---- */

/* One step of all workers, and of one that takes the whole batch. */
static void check_step(struct batcher *one, struct batcher **workers, uint32_t world,
                       uint64_t epoch)
{
    struct batch whole = numbered_next(one);
    assert_int_equal(whole.epoch, epoch);
    uint32_t place = 0;
    for (uint32_t rank = 0; rank < world; rank++) {
        struct batch part = numbered_next(workers[rank]);
        assert_int_equal(part.epoch, epoch);
        for (uint32_t i = 0; i < part.count; i++) {
            assert_int_equal(numbered_check_sample(&part, i),
                             numbered_check_sample(&whole, place++));
        }
    }
    assert_int_equal(place, whole.count);
}

static void workers_together_see_what_one_would_in_the_same_steps(void **state)
{
    (void)state;
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    for (uint32_t world = 1; world <= WORKERS_MAX; world++) {
        struct batcher *one = numbered_batcher(numbered_training(11, 1, 0, 2), &numbered);
        struct batcher *workers[WORKERS_MAX];
        for (uint32_t rank = 0; rank < world; rank++) {
            workers[rank] =
                numbered_batcher(numbered_training(11, world, rank, 1 + rank % 3), &numbered);
        }
        for (uint32_t step = 0; step < 3 * (NUMBERED_SAMPLES / 11); step++) {
            check_step(one, workers, world, step / (NUMBERED_SAMPLES / 11));
        }
        for (uint32_t rank = 0; rank < world; rank++) {
            batcher_destroy(workers[rank]);
        }
        batcher_destroy(one);
    }
}

static void every_depth_delivers_the_same(void **state)
{
    (void)state;
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    static const uint32_t depths[] = {1, 2, 3, 7};
    for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
        struct batcher *direct = numbered_batcher(numbered_training(8, 1, 0, 0), &numbered);
        struct batcher *ahead = numbered_batcher(numbered_training(8, 1, 0, depths[i]), &numbered);
        for (uint32_t step = 0; step < 40; step++) {
            struct batch a = numbered_next(direct), b = numbered_next(ahead);
            numbered_check_equal(&a, &b, 8);
        }
        batcher_destroy(ahead);
        batcher_destroy(direct);
    }
}

static void a_batch_stays_while_others_are_read_ahead_and_no_more_than_asked_for(void **state)
{
    (void)state;
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    const uint32_t depth = 3, batch_size = 8;
    struct batcher *batcher =
        numbered_batcher(numbered_training(batch_size, 1, 0, depth), &numbered);
    for (uint32_t step = 0; step < 20; step++) {
        struct batch batch = numbered_next(batcher);
        assert_int_equal((uintptr_t)batch.pixels % MEMORY_ALIGNMENT, 0);
        float pixels[8 * NUMBERED_PIXELS];
        memcpy(pixels, batch.pixels, sizeof(pixels));
        while (atomic_load(&reads.count) < (step + 1 + depth) * batch_size) {
            sched_yield();
        }
        assert_memory_equal(batch.pixels, pixels, sizeof(pixels));
    }
    batcher_destroy(batcher);
    assert_int_equal(atomic_load(&reads.count), (20 + depth) * batch_size);
}

static void a_batcher_can_be_destroyed_at_any_moment(void **state)
{
    (void)state;
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    for (uint32_t i = 0; i < 200; i++) {
        struct batcher *batcher =
            numbered_batcher(numbered_training(40, 1, 0, 1 + i % 3), &numbered);
        for (uint32_t k = 0; k < i % 4; k++) {
            numbered_next(batcher);
        }
        batcher_destroy(batcher);
    }
    batcher_destroy(NULL);
}

static void only_the_first_samples_are_used_if_so_asked(void **state)
{
    (void)state;
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    struct batcher_options options = numbered_training(5, 1, 0, 1);
    options.sample_count = 20;
    struct batcher *batcher = numbered_batcher(options, &numbered);
    for (uint32_t step = 0; step < 8; step++) {
        struct batch batch = numbered_next(batcher);
        assert_int_equal(batch.epoch, step / 4);
        for (uint32_t i = 0; i < 5; i++) {
            assert_in_range(numbered_check_sample(&batch, i), 0, 19);
        }
    }
    batcher_destroy(batcher);
}

static void local_shards_are_disjoint(void **state)
{
    (void)state;
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    uint32_t owners[NUMBERED_SAMPLES] = {0};
    for (uint32_t rank = 0; rank < 3; rank++) {
        struct batcher_options options = numbered_training(10, 3, rank, 1);
        options.is_local = true;
        struct batcher *batcher = numbered_batcher(options, &numbered);
        for (uint32_t step = 0; step < 50; step++) {
            struct batch batch = numbered_next(batcher);
            for (uint32_t i = 0; i < batch.count; i++) {
                uint32_t index = numbered_check_sample(&batch, i);
                assert_true(owners[index] == 0 || owners[index] == rank + 1);
                owners[index] = rank + 1;
            }
        }
        batcher_destroy(batcher);
    }
}

/* ---- evaluation ---- */

static void check_evaluation(struct batcher *batcher, uint32_t batch_size, struct span part)
{
    uint64_t expected = part.offset;
    struct batch batch;
    while (batcher_next(batcher, &batch) == STATUS_OK) {
        assert_in_range(batch.count, 1, batch_size);
        for (uint32_t i = 0; i < batch_size; i++) {
            assert_int_equal(numbered_check_sample(&batch, i), i < batch.count ? expected++ : 0);
        }
    }
    assert_int_equal(expected, part.offset + part.count);
    assert_int_equal(batcher_next(batcher, &batch), STATUS_END_OF_DATA);
}

static void an_evaluation_sees_every_sample_once_and_can_be_repeated(void **state)
{
    (void)state;
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    for (uint32_t depth = 0; depth < 4; depth++) {
        for (uint32_t world = 1; world <= WORKERS_MAX; world++) {
            for (uint32_t rank = 0; rank < world; rank++) {
                struct batcher *batcher =
                    numbered_batcher((struct batcher_options){.batch_size = 7,
                                                              .rank = rank,
                                                              .world = world,
                                                              .seed = NUMBERED_SEED,
                                                              .depth = depth},
                                     &numbered);
                struct span part = span_part((struct span){0, NUMBERED_SAMPLES}, world, rank);
                check_evaluation(batcher, 7, part);
                assert_int_equal(batcher_seek(batcher, 0, 0), STATUS_OK);
                check_evaluation(batcher, 7, part);
                batcher_destroy(batcher);
            }
        }
    }
}

static void a_rank_without_samples_to_evaluate_is_done_at_once(void **state)
{
    (void)state;
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    for (uint32_t depth = 0; depth < 2; depth++) {
        struct batcher *batcher = numbered_batcher((struct batcher_options){.batch_size = 4,
                                                                            .rank = 3,
                                                                            .world = 4,
                                                                            .seed = NUMBERED_SEED,
                                                                            .sample_count = 3,
                                                                            .depth = depth},
                                                   &numbered);
        struct batch batch;
        assert_int_equal(batcher_next(batcher, &batch), STATUS_END_OF_DATA);
        assert_int_equal(batcher_seek(batcher, 0, 0), STATUS_OK);
        assert_int_equal(batcher_next(batcher, &batch), STATUS_END_OF_DATA);
        batcher_destroy(batcher);
    }
}

/* ---- what cannot be ---- */

static void a_sample_that_cannot_be_read_fails_its_batch_and_no_other(void **state)
{
    (void)state;
    for (uint32_t depth = 0; depth < 4; depth++) {
        struct numbered numbered;
        struct numbered_reads reads;
        struct batch batch;
        numbered_init(&numbered, &reads);
        atomic_store(&reads.broken, 16);
        struct batcher *batcher = numbered_batcher(
            (struct batcher_options){
                .batch_size = 7, .world = 1, .seed = NUMBERED_SEED, .depth = depth},
            &numbered);
        numbered_next(batcher);
        numbered_next(batcher);
        assert_int_equal(batcher_next(batcher, &batch), STATUS_IO);
        atomic_store(&reads.broken, 0);
        assert_int_equal(batcher_seek(batcher, 0, 0), STATUS_OK);
        check_evaluation(batcher, 7, (struct span){0, NUMBERED_SAMPLES});
        batcher_destroy(batcher);
    }
}

static void check_refused(struct batcher_options options, const char *reason)
{
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    struct batcher *batcher = NULL;
    captured_log_begin();
    enum status status = batcher_create(&options, &numbered.dataset, &batcher);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_INVALID);
    assert_null(batcher);
    assert_non_null(strstr(log, reason));
}

static void what_cannot_be_batched_is_refused(void **state)
{
    (void)state;
    check_refused(numbered_training(NUMBERED_SAMPLES + 1, 1, 0, 1), "global batch of 51");
    check_refused(numbered_training(3, 4, 0, 1), "at least the 4 workers");
    struct batcher_options options = numbered_training(10, 1, 0, 1);
    options.sample_count = NUMBERED_SAMPLES + 1;
    check_refused(options, "51 samples asked for; the dataset has 50");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_together_see_what_one_would_in_the_same_steps),
        cmocka_unit_test(every_depth_delivers_the_same),
        cmocka_unit_test(a_batch_stays_while_others_are_read_ahead_and_no_more_than_asked_for),
        cmocka_unit_test(a_batcher_can_be_destroyed_at_any_moment),
        cmocka_unit_test(only_the_first_samples_are_used_if_so_asked),
        cmocka_unit_test(local_shards_are_disjoint),
        cmocka_unit_test(an_evaluation_sees_every_sample_once_and_can_be_repeated),
        cmocka_unit_test(a_rank_without_samples_to_evaluate_is_done_at_once),
        cmocka_unit_test(a_sample_that_cannot_be_read_fails_its_batch_and_no_other),
        cmocka_unit_test(what_cannot_be_batched_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
