/* Tests of seeks: to batches elsewhere in an epoch, also while others are read ahead. */
#include "common/base/random.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/data/numbered.h"
#include "worker/data/batches/batcher.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

static void a_seek_goes_on_as_reading_on_would(void **state)
{
    (void)state;
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    const uint32_t steps = NUMBERED_SAMPLES / 8;
    for (uint32_t depth = 0; depth < 3; depth++) {
        for (uint32_t target = 0; target < 3 * steps; target++) {
            struct batcher *straight =
                numbered_batcher(numbered_training(8, 1, 0, depth), &numbered);
            struct batcher *resumed =
                numbered_batcher(numbered_training(8, 1, 0, depth), &numbered);
            for (uint32_t step = 0; step < target; step++) {
                numbered_next(straight);
            }
            numbered_next(resumed);
            assert_int_equal(batcher_seek(resumed, target / steps, target % steps), STATUS_OK);
            for (uint32_t step = 0; step < 2 * steps; step++) {
                struct batch a = numbered_next(straight), b = numbered_next(resumed);
                numbered_check_equal(&a, &b, 8);
            }
            batcher_destroy(resumed);
            batcher_destroy(straight);
        }
    }
}

static void a_seek_to_the_end_of_an_epoch_begins_the_next(void **state)
{
    (void)state;
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    struct batcher *a = numbered_batcher(numbered_training(8, 1, 0, 1), &numbered);
    struct batcher *b = numbered_batcher(numbered_training(8, 1, 0, 1), &numbered);
    assert_int_equal(batcher_seek(a, 4, NUMBERED_SAMPLES / 8), STATUS_OK);
    assert_int_equal(batcher_seek(b, 5, 0), STATUS_OK);
    struct batch from_a = numbered_next(a), from_b = numbered_next(b);
    numbered_check_equal(&from_a, &from_b, 8);
    batcher_destroy(b);
    batcher_destroy(a);
}

static void a_seek_beyond_the_epoch_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    struct batcher *a = numbered_batcher(numbered_training(8, 1, 0, 1), &numbered);
    struct batcher *b = numbered_batcher(numbered_training(8, 1, 0, 0), &numbered);
    captured_log_begin();
    enum status status = batcher_seek(a, 0, NUMBERED_SAMPLES / 8 + 1);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_INVALID);
    assert_non_null(strstr(log, "step 7 of an epoch of 6"));
    struct batch from_a = numbered_next(a), from_b = numbered_next(b);
    numbered_check_equal(&from_a, &from_b, 8);
    batcher_destroy(b);
    batcher_destroy(a);
}

static void a_seek_interrupts_a_batch_after_one_sample(void **state)
{
    (void)state;
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    reads.gate_at = 4;
    struct batcher *batcher = numbered_batcher(numbered_training(20, 1, 0, 1), &numbered);
    sem_wait(&reads.arrived);
    assert_int_equal(batcher_seek(batcher, 3, 1), STATUS_OK);
    sem_post(&reads.gate);
    struct batch batch = numbered_next(batcher);
    assert_int_equal(batch.epoch, 3);
    for (uint32_t i = 0; i < batch.count; i++) {
        numbered_check_sample(&batch, i);
    }
    batcher_destroy(batcher);
    // Five of the first, twenty of the second, and at most twenty of the third.
    assert_in_range(atomic_load(&reads.count), 25, 45);
}

static void many_seeks_while_batches_are_read_lose_nothing(void **state)
{
    (void)state;
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    struct batcher *ahead = numbered_batcher(numbered_training(8, 1, 0, 2), &numbered);
    struct batcher *direct = numbered_batcher(numbered_training(8, 1, 0, 0), &numbered);
    struct random_sequence sequence = {5};
    for (uint32_t i = 0; i < 500; i++) {
        uint64_t epoch = random_below(&sequence, 4),
                 step = random_below(&sequence, NUMBERED_SAMPLES / 8);
        assert_int_equal(batcher_seek(ahead, epoch, step), STATUS_OK);
        assert_int_equal(batcher_seek(direct, epoch, step), STATUS_OK);
        for (uint64_t k = random_below(&sequence, 4); k > 0; k--) {
            struct batch a = numbered_next(ahead), b = numbered_next(direct);
            numbered_check_equal(&a, &b, 8);
        }
    }
    batcher_destroy(direct);
    batcher_destroy(ahead);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seek_goes_on_as_reading_on_would),
        cmocka_unit_test(a_seek_to_the_end_of_an_epoch_begins_the_next),
        cmocka_unit_test(a_seek_beyond_the_epoch_is_refused_and_changes_nothing),
        cmocka_unit_test(a_seek_interrupts_a_batch_after_one_sample),
        cmocka_unit_test(many_seeks_while_batches_are_read_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
