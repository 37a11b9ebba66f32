/* Tests of batches, read ahead and not. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/vector/layout.h"
#include "tests/support/common/captured_log.h"
#include "worker/data/batcher.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#define SAMPLES     50
#define PIXELS      6
#define CLASSES     7
#define WORKERS_MAX 8
#define SEED        11

/* ---- a dataset whose samples say which they are ---- */

struct reads {
    atomic_uint count;
    uint32_t gate_at;    // this one waits at the gate; UINT32_MAX: none does
    atomic_uint broken;  // the number from 1 of the sample that cannot be read; 0: all can
    sem_t arrived, gate; // the loader is there; it may go on
};

struct numbered {
    struct dataset dataset;
    struct reads *reads; // what a real dataset would not change
};

static enum status numbered_read(const struct dataset *dataset, uint64_t index, float *ret_pixels,
                                 uint32_t *ret_label)
{
    struct reads *reads = ((const struct numbered *)dataset)->reads;
    if (atomic_fetch_add(&reads->count, 1) == reads->gate_at) {
        sem_post(&reads->arrived);
        sem_wait(&reads->gate);
    }
    for (uint32_t i = 0; i < PIXELS; i++) {
        ret_pixels[i] = (float)(index * 10 + i);
    }
    *ret_label = (uint32_t)(index % CLASSES);
    return atomic_load(&reads->broken) == index + 1 ? STATUS_IO : STATUS_OK;
}

static void numbered_close(struct dataset *dataset)
{
    (void)dataset;
}

static const struct dataset_ops numbered_ops = {.read = numbered_read, .close = numbered_close};

static void init_numbered(struct numbered *numbered, struct reads *reads)
{
    *numbered = (struct numbered){
        .dataset = {.ops = &numbered_ops,
                    .sample = {.channels = 1, .rows = 2, .columns = 3},
                    .sample_count = SAMPLES,
                    .class_count = CLASSES},
        .reads = reads,
    };
    *reads = (struct reads){.gate_at = UINT32_MAX};
    sem_init(&reads->arrived, 0, 0);
    sem_init(&reads->gate, 0, 0);
}

static struct batcher_options training(uint32_t global_batch, uint32_t world, uint32_t rank,
                                       uint32_t depth)
{
    struct span slice = span_part((struct span){0, global_batch}, world, rank);
    return (struct batcher_options){
        .batch_size = (uint32_t)slice.count,
        .global_batch = global_batch,
        .rank = rank,
        .world = world,
        .seed = SEED,
        .is_training = true,
        .depth = depth,
    };
}

static struct batcher *create(struct batcher_options options, const struct numbered *numbered)
{
    struct batcher *batcher = NULL;
    assert_int_equal(batcher_create(&options, &numbered->dataset, &batcher), STATUS_OK);
    return batcher;
}

static struct batch next(struct batcher *batcher)
{
    struct batch batch = {0};
    assert_int_equal(batcher_next(batcher, &batch), STATUS_OK);
    return batch;
}

/* Checks that a sample of a batch is whole; returns which it is. */
static uint32_t check_sample(const struct batch *batch, uint32_t i)
{
    uint32_t index = (uint32_t)batch->pixels[(size_t)i * PIXELS] / 10;
    for (uint32_t k = 0; k < PIXELS; k++) {
        assert_true(batch->pixels[(size_t)i * PIXELS + k] == (float)(index * 10 + k));
    }
    assert_int_equal(batch->labels[i], index % CLASSES);
    assert_int_equal(batch->sample_keys[i], random_key(SEED, RANDOM_DROPOUT, batch->epoch, index));
    return index;
}

static void check_equal(const struct batch *a, const struct batch *b, uint32_t batch_size)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->epoch, b->epoch);
    assert_memory_equal(a->pixels, b->pixels, sizeof(float) * batch_size * PIXELS);
    assert_memory_equal(a->labels, b->labels, sizeof(uint32_t) * batch_size);
    assert_memory_equal(a->sample_keys, b->sample_keys, sizeof(uint64_t) * batch_size);
}

/* ---- training ---- */

/* One step of all workers, and of one that takes the whole batch. */
static void check_step(struct batcher *one, struct batcher **workers, uint32_t world,
                       uint64_t epoch)
{
    struct batch whole = next(one);
    assert_int_equal(whole.epoch, epoch);
    uint32_t place = 0;
    for (uint32_t rank = 0; rank < world; rank++) {
        struct batch part = next(workers[rank]);
        assert_int_equal(part.epoch, epoch);
        for (uint32_t i = 0; i < part.count; i++) {
            assert_int_equal(check_sample(&part, i), check_sample(&whole, place++));
        }
    }
    assert_int_equal(place, whole.count);
}

static void workers_together_see_what_one_would_in_the_same_steps(void **state)
{
    (void)state;
    struct numbered numbered;
    struct reads reads;
    init_numbered(&numbered, &reads);
    for (uint32_t world = 1; world <= WORKERS_MAX; world++) {
        struct batcher *one = create(training(11, 1, 0, 2), &numbered);
        struct batcher *workers[WORKERS_MAX];
        for (uint32_t rank = 0; rank < world; rank++) {
            workers[rank] = create(training(11, world, rank, 1 + rank % 3), &numbered);
        }
        for (uint32_t step = 0; step < 3 * (SAMPLES / 11); step++) {
            check_step(one, workers, world, step / (SAMPLES / 11));
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
    struct reads reads;
    init_numbered(&numbered, &reads);
    static const uint32_t depths[] = {1, 2, 3, 7};
    for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
        struct batcher *direct = create(training(8, 1, 0, 0), &numbered);
        struct batcher *ahead = create(training(8, 1, 0, depths[i]), &numbered);
        for (uint32_t step = 0; step < 40; step++) {
            struct batch a = next(direct), b = next(ahead);
            check_equal(&a, &b, 8);
        }
        batcher_destroy(ahead);
        batcher_destroy(direct);
    }
}

static void a_batch_stays_while_others_are_read_ahead_and_no_more_than_asked_for(void **state)
{
    (void)state;
    struct numbered numbered;
    struct reads reads;
    init_numbered(&numbered, &reads);
    const uint32_t depth = 3, batch_size = 8;
    struct batcher *batcher = create(training(batch_size, 1, 0, depth), &numbered);
    for (uint32_t step = 0; step < 20; step++) {
        struct batch batch = next(batcher);
        assert_int_equal((uintptr_t)batch.pixels % MEMORY_ALIGNMENT, 0);
        float pixels[8 * PIXELS];
        memcpy(pixels, batch.pixels, sizeof(pixels));
        while (atomic_load(&reads.count) < (step + 1 + depth) * batch_size) {
            sched_yield();
        }
        assert_memory_equal(batch.pixels, pixels, sizeof(pixels));
    }
    batcher_destroy(batcher);
    assert_int_equal(atomic_load(&reads.count), (20 + depth) * batch_size);
}

static void a_seek_goes_on_as_reading_on_would(void **state)
{
    (void)state;
    struct numbered numbered;
    struct reads reads;
    init_numbered(&numbered, &reads);
    const uint32_t steps = SAMPLES / 8;
    for (uint32_t depth = 0; depth < 3; depth++) {
        for (uint32_t target = 0; target < 3 * steps; target++) {
            struct batcher *straight = create(training(8, 1, 0, depth), &numbered);
            struct batcher *resumed = create(training(8, 1, 0, depth), &numbered);
            for (uint32_t step = 0; step < target; step++) {
                next(straight);
            }
            next(resumed);
            assert_int_equal(batcher_seek(resumed, target / steps, target % steps), STATUS_OK);
            for (uint32_t step = 0; step < 2 * steps; step++) {
                struct batch a = next(straight), b = next(resumed);
                check_equal(&a, &b, 8);
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
    struct reads reads;
    init_numbered(&numbered, &reads);
    struct batcher *a = create(training(8, 1, 0, 1), &numbered);
    struct batcher *b = create(training(8, 1, 0, 1), &numbered);
    assert_int_equal(batcher_seek(a, 4, SAMPLES / 8), STATUS_OK);
    assert_int_equal(batcher_seek(b, 5, 0), STATUS_OK);
    struct batch from_a = next(a), from_b = next(b);
    check_equal(&from_a, &from_b, 8);
    batcher_destroy(b);
    batcher_destroy(a);
}

static void a_seek_beyond_the_epoch_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    struct numbered numbered;
    struct reads reads;
    init_numbered(&numbered, &reads);
    struct batcher *a = create(training(8, 1, 0, 1), &numbered);
    struct batcher *b = create(training(8, 1, 0, 0), &numbered);
    captured_log_begin();
    enum status status = batcher_seek(a, 0, SAMPLES / 8 + 1);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_INVALID);
    assert_non_null(strstr(log, "step 7 of an epoch of 6"));
    struct batch from_a = next(a), from_b = next(b);
    check_equal(&from_a, &from_b, 8);
    batcher_destroy(b);
    batcher_destroy(a);
}

static void a_seek_interrupts_a_batch_after_one_sample(void **state)
{
    (void)state;
    struct numbered numbered;
    struct reads reads;
    init_numbered(&numbered, &reads);
    reads.gate_at = 4;
    struct batcher *batcher = create(training(20, 1, 0, 1), &numbered);
    sem_wait(&reads.arrived);
    assert_int_equal(batcher_seek(batcher, 3, 1), STATUS_OK);
    sem_post(&reads.gate);
    struct batch batch = next(batcher);
    assert_int_equal(batch.epoch, 3);
    for (uint32_t i = 0; i < batch.count; i++) {
        check_sample(&batch, i);
    }
    batcher_destroy(batcher);
    // Five of the first, twenty of the second, and at most twenty of the third.
    assert_in_range(atomic_load(&reads.count), 25, 45);
}

static void many_seeks_while_batches_are_read_lose_nothing(void **state)
{
    (void)state;
    struct numbered numbered;
    struct reads reads;
    init_numbered(&numbered, &reads);
    struct batcher *ahead = create(training(8, 1, 0, 2), &numbered);
    struct batcher *direct = create(training(8, 1, 0, 0), &numbered);
    struct random_sequence sequence = {5};
    for (uint32_t i = 0; i < 500; i++) {
        uint64_t epoch = random_below(&sequence, 4), step = random_below(&sequence, SAMPLES / 8);
        assert_int_equal(batcher_seek(ahead, epoch, step), STATUS_OK);
        assert_int_equal(batcher_seek(direct, epoch, step), STATUS_OK);
        for (uint64_t k = random_below(&sequence, 4); k > 0; k--) {
            struct batch a = next(ahead), b = next(direct);
            check_equal(&a, &b, 8);
        }
    }
    batcher_destroy(direct);
    batcher_destroy(ahead);
}

static void a_batcher_can_be_destroyed_at_any_moment(void **state)
{
    (void)state;
    struct numbered numbered;
    struct reads reads;
    init_numbered(&numbered, &reads);
    for (uint32_t i = 0; i < 200; i++) {
        struct batcher *batcher = create(training(40, 1, 0, 1 + i % 3), &numbered);
        for (uint32_t k = 0; k < i % 4; k++) {
            next(batcher);
        }
        batcher_destroy(batcher);
    }
    batcher_destroy(NULL);
}

static void only_the_first_samples_are_used_if_so_asked(void **state)
{
    (void)state;
    struct numbered numbered;
    struct reads reads;
    init_numbered(&numbered, &reads);
    struct batcher_options options = training(5, 1, 0, 1);
    options.sample_count = 20;
    struct batcher *batcher = create(options, &numbered);
    for (uint32_t step = 0; step < 8; step++) {
        struct batch batch = next(batcher);
        assert_int_equal(batch.epoch, step / 4);
        for (uint32_t i = 0; i < 5; i++) {
            assert_in_range(check_sample(&batch, i), 0, 19);
        }
    }
    batcher_destroy(batcher);
}

static void local_shards_are_disjoint(void **state)
{
    (void)state;
    struct numbered numbered;
    struct reads reads;
    init_numbered(&numbered, &reads);
    uint32_t owners[SAMPLES] = {0};
    for (uint32_t rank = 0; rank < 3; rank++) {
        struct batcher_options options = training(10, 3, rank, 1);
        options.is_local = true;
        struct batcher *batcher = create(options, &numbered);
        for (uint32_t step = 0; step < 50; step++) {
            struct batch batch = next(batcher);
            for (uint32_t i = 0; i < batch.count; i++) {
                uint32_t index = check_sample(&batch, i);
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
            assert_int_equal(check_sample(&batch, i), i < batch.count ? expected++ : 0);
        }
    }
    assert_int_equal(expected, part.offset + part.count);
    assert_int_equal(batcher_next(batcher, &batch), STATUS_END_OF_DATA);
}

static void an_evaluation_sees_every_sample_once_and_can_be_repeated(void **state)
{
    (void)state;
    struct numbered numbered;
    struct reads reads;
    init_numbered(&numbered, &reads);
    for (uint32_t depth = 0; depth < 4; depth++) {
        for (uint32_t world = 1; world <= WORKERS_MAX; world++) {
            for (uint32_t rank = 0; rank < world; rank++) {
                struct batcher *batcher = create((struct batcher_options){.batch_size = 7,
                                                                          .rank = rank,
                                                                          .world = world,
                                                                          .seed = SEED,
                                                                          .depth = depth},
                                                 &numbered);
                struct span part = span_part((struct span){0, SAMPLES}, world, rank);
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
    struct reads reads;
    init_numbered(&numbered, &reads);
    for (uint32_t depth = 0; depth < 2; depth++) {
        struct batcher *batcher = create((struct batcher_options){.batch_size = 4,
                                                                  .rank = 3,
                                                                  .world = 4,
                                                                  .seed = SEED,
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
        struct reads reads;
        struct batch batch;
        init_numbered(&numbered, &reads);
        atomic_store(&reads.broken, 16);
        struct batcher *batcher = create(
            (struct batcher_options){.batch_size = 7, .world = 1, .seed = SEED, .depth = depth},
            &numbered);
        next(batcher);
        next(batcher);
        assert_int_equal(batcher_next(batcher, &batch), STATUS_IO);
        atomic_store(&reads.broken, 0);
        assert_int_equal(batcher_seek(batcher, 0, 0), STATUS_OK);
        check_evaluation(batcher, 7, (struct span){0, SAMPLES});
        batcher_destroy(batcher);
    }
}

static void check_refused(struct batcher_options options, const char *reason)
{
    struct numbered numbered;
    struct reads reads;
    init_numbered(&numbered, &reads);
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
    check_refused(training(SAMPLES + 1, 1, 0, 1), "global batch of 51");
    check_refused(training(3, 4, 0, 1), "at least the 4 workers");
    struct batcher_options options = training(10, 1, 0, 1);
    options.sample_count = SAMPLES + 1;
    check_refused(options, "51 samples asked for; the dataset has 50");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_together_see_what_one_would_in_the_same_steps),
        cmocka_unit_test(every_depth_delivers_the_same),
        cmocka_unit_test(a_batch_stays_while_others_are_read_ahead_and_no_more_than_asked_for),
        cmocka_unit_test(a_seek_goes_on_as_reading_on_would),
        cmocka_unit_test(a_seek_to_the_end_of_an_epoch_begins_the_next),
        cmocka_unit_test(a_seek_beyond_the_epoch_is_refused_and_changes_nothing),
        cmocka_unit_test(a_seek_interrupts_a_batch_after_one_sample),
        cmocka_unit_test(many_seeks_while_batches_are_read_lose_nothing),
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
