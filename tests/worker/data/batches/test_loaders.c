/* Tests of threads that read ahead: how many there are changes nothing but the time. */
#include "tests/support/data/numbered.h"
#include "worker/data/batches/loaders.h"
#include "worker/data/byte_images.h"

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

#define PROCESSORS 4

static struct loaders *start(uint32_t threads)
{
    struct loaders *loaders = NULL;
    const struct loaders_options options = {.threads = threads, .processors = PROCESSORS};
    assert_int_equal(loaders_create(&options, &loaders), STATUS_OK);
    return loaders;
}

static uint32_t count(struct loaders *loaders)
{
    pthread_mutex_lock(loaders_lock(loaders));
    uint32_t threads = loaders_count(loaders);
    pthread_mutex_unlock(loaders_lock(loaders));
    return threads;
}

/* A batcher of the loaders; without them one that reads when it is asked. */
static struct batcher *open_batcher(const struct numbered *numbered, uint32_t batch_size,
                                    struct loaders *loaders)
{
    struct batcher_options options = numbered_training(batch_size, 1, 0, loaders != NULL ? 3 : 0);
    options.loaders = loaders;
    return numbered_batcher(options, numbered);
}

// 0: auto.
static const uint32_t thread_counts[] = {1, 2, 4, 0};
#define THREAD_COUNTS (sizeof(thread_counts) / sizeof(thread_counts[0]))

static void batches_are_the_same_with_any_number_of_threads(void **state)
{
    (void)state;
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    for (size_t i = 0; i < THREAD_COUNTS; i++) {
        struct loaders *loaders = start(thread_counts[i]);
        struct batcher *ahead = open_batcher(&numbered, 24, loaders);
        struct batcher *direct = open_batcher(&numbered, 24, NULL);
        for (uint32_t step = 0; step < 200; step++) {
            struct batch a = numbered_next(direct), b = numbered_next(ahead);
            numbered_check_equal(&a, &b, 24);
        }
        batcher_destroy(direct);
        batcher_destroy(ahead);
        loaders_destroy(loaders);
    }
}

/* As a process has them that carries several ranks. */
static void several_batchers_share_threads_and_get_their_own_batches(void **state)
{
    (void)state;
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    struct loaders *loaders = start(3);
    struct batcher *ahead[3], *direct[3];
    for (uint32_t rank = 0; rank < 3; rank++) {
        struct batcher_options options = numbered_training(21, 3, rank, 0);
        direct[rank] = numbered_batcher(options, &numbered);
        options.depth = 1 + rank;
        options.loaders = loaders;
        ahead[rank] = numbered_batcher(options, &numbered);
    }
    for (uint32_t step = 0; step < 300; step++) {
        uint32_t rank = step % 3;
        if (step % 50 == 49) {
            assert_int_equal(batcher_seek(ahead[rank], step, 1), STATUS_OK);
            assert_int_equal(batcher_seek(direct[rank], step, 1), STATUS_OK);
        }
        struct batch a = numbered_next(direct[rank]), b = numbered_next(ahead[rank]);
        numbered_check_equal(&a, &b, 7);
    }
    for (uint32_t rank = 0; rank < 3; rank++) {
        batcher_destroy(direct[rank]);
        batcher_destroy(ahead[rank]);
    }
    loaders_destroy(loaders);
}

/* ---- images that are changed ---- */

#define SIDE         8
#define IMAGE_BYTES  ((size_t)3 * SIDE * SIDE)
#define RECORD_BYTES (1 + IMAGE_BYTES)
#define IMAGES       40
#define BATCH        16

static const struct dataset_ops image_ops = {
    .read = byte_images_read,
    .describe = byte_images_describe,
    .read_bytes = byte_images_read_bytes,
    .convert = byte_images_convert,
    .close = byte_images_close,
};

static struct dataset *open_images(void)
{
    static uint8_t records[IMAGES * RECORD_BYTES];
    static const struct byte_format format = {
        .ops = &image_ops,
        .sample = {.channels = 3, .rows = SIDE, .columns = SIDE},
        .class_count = IMAGES,
        .mean = {0.5f, 0.4f, 0.3f},
        .deviation = {0.2f, 0.3f, 0.4f},
    };
    struct byte_images *images;
    char why[DATA_FILE_WHY_BYTES];
    for (uint32_t i = 0; i < IMAGES * RECORD_BYTES; i++) {
        records[i] = (uint8_t)(i % RECORD_BYTES == 0 ? i / RECORD_BYTES : i * 53 % 251);
    }
    const struct byte_records all = {records, records + 1, RECORD_BYTES, RECORD_BYTES, IMAGES};
    assert_int_equal(byte_images_create(&format, &images), STATUS_OK);
    assert_int_equal(byte_images_add(images, &all, NULL, why, sizeof(why)), STATUS_OK);
    return byte_images_dataset(images);
}

static struct batcher *open_changed(const struct dataset *dataset, bool reads_bytes,
                                    struct loaders *loaders)
{
    const struct batcher_options options = {
        .batch_size = BATCH,
        .global_batch = BATCH,
        .world = 1,
        .seed = NUMBERED_SEED,
        .is_training = true,
        .reads_bytes = reads_bytes,
        .augmentation = {{[AUGMENT_FLIP] = 1,
                          [AUGMENT_CROP] = 2,
                          [AUGMENT_COLOUR] = 0.5,
                          [AUGMENT_ROTATE] = 20}},
        .depth = loaders != NULL ? 4 : 0,
        .loaders = loaders,
    };
    struct batcher *batcher = NULL;
    assert_int_equal(batcher_create(&options, dataset, &batcher), STATUS_OK);
    return batcher;
}

static void check_changed(struct batcher *ahead, struct batcher *direct)
{
    struct batch a, b;
    assert_int_equal(batcher_next(ahead, &a), STATUS_OK);
    assert_int_equal(batcher_next(direct, &b), STATUS_OK);
    assert_memory_equal(a.labels, b.labels, BATCH * sizeof(uint32_t));
    assert_memory_equal(a.sample_keys, b.sample_keys, BATCH * sizeof(uint64_t));
    if (a.bytes != NULL) {
        assert_memory_equal(a.bytes, b.bytes, BATCH * IMAGE_BYTES);
    } else {
        assert_memory_equal(a.pixels, b.pixels, BATCH * IMAGE_BYTES * sizeof(float));
    }
}

static void changed_images_are_the_same_with_any_number_of_threads(void **state)
{
    (void)state;
    struct dataset *dataset = open_images();
    for (size_t i = 0; i < 2 * THREAD_COUNTS; i++) {
        struct loaders *loaders = start(thread_counts[i / 2]);
        struct batcher *ahead = open_changed(dataset, i % 2 == 1, loaders);
        struct batcher *direct = open_changed(dataset, i % 2 == 1, NULL);
        for (uint32_t step = 0; step < 50; step++) {
            check_changed(ahead, direct);
        }
        batcher_destroy(direct);
        batcher_destroy(ahead);
        loaders_destroy(loaders);
    }
    dataset_close(dataset);
}

/* ---- sharing ---- */

static void a_slow_sample_holds_up_no_other(void **state)
{
    (void)state;
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    reads.gate_at = 2;
    const uint32_t depth = 3, batch_size = 8; // portions of one sample
    struct loaders *loaders = start(2);
    struct batcher *batcher = open_batcher(&numbered, batch_size, loaders);
    sem_wait(&reads.arrived);
    // One thread waits at the gate; the other one reads all others of all batches.
    while (atomic_load(&reads.count) < depth * batch_size) {
        sched_yield();
    }
    sem_post(&reads.gate);
    struct batch batch = numbered_next(batcher);
    for (uint32_t i = 0; i < batch_size; i++) {
        numbered_check_sample(&batch, i);
    }
    batcher_destroy(batcher);
    loaders_destroy(loaders);
}

/* Threads that still read for the batches before are waited for: their slots are used again. */
static void a_seek_waits_for_samples_that_are_being_read(void **state)
{
    (void)state;
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    reads.gate_at = 5;
    struct loaders *loaders = start(3);
    struct batcher *batcher = open_batcher(&numbered, 24, loaders);
    struct batcher *direct = open_batcher(&numbered, 24, NULL);
    sem_wait(&reads.arrived);
    assert_int_equal(batcher_seek(batcher, 2, 1), STATUS_OK);
    assert_int_equal(batcher_seek(direct, 2, 1), STATUS_OK);
    uint32_t before = atomic_load(&reads.count);
    for (uint32_t i = 0; i < 1000; i++) {
        sched_yield();
    }
    // Two threads may have been within a sample each.
    assert_in_range(atomic_load(&reads.count), before, before + 2);
    sem_post(&reads.gate);
    struct batch a = numbered_next(direct), b = numbered_next(batcher);
    numbered_check_equal(&a, &b, 24);
    batcher_destroy(direct);
    batcher_destroy(batcher);
    loaders_destroy(loaders);
}

static void check_failure(const struct numbered *numbered, struct numbered_reads *reads,
                          struct loaders *loaders, uint32_t broken)
{
    const uint32_t batch_size = 8;
    struct batch batch;
    atomic_store(&reads->broken, broken + 1);
    struct batcher_options options = {.batch_size = batch_size,
                                      .world = 1,
                                      .seed = NUMBERED_SEED,
                                      .depth = 5,
                                      .loaders = loaders};
    struct batcher *batcher = numbered_batcher(options, numbered);
    for (uint32_t i = 0; i < broken / batch_size; i++) {
        numbered_next(batcher);
    }
    assert_int_equal(batcher_next(batcher, &batch), STATUS_IO);
    assert_int_equal(batcher_next(batcher, &batch), STATUS_IO);
    atomic_store(&reads->broken, 0);
    assert_int_equal(batcher_seek(batcher, 0, 0), STATUS_OK);
    numbered_next(batcher);
    batcher_destroy(batcher);
}

static void batches_before_one_that_cannot_be_read_are_delivered(void **state)
{
    (void)state;
    struct numbered numbered;
    struct numbered_reads reads;
    numbered_init(&numbered, &reads);
    struct loaders *loaders = start(4);
    for (uint32_t broken = 0; broken < NUMBERED_SAMPLES; broken++) {
        check_failure(&numbered, &reads, loaders, broken);
    }
    loaders_destroy(loaders);
}

/* ---- auto ---- */

static void threads_are_added_while_training_waits_and_processors_are_idle(void **state)
{
    (void)state;
    static const struct {
        uint32_t threads, threads_max, waited_percent, busy_percent; // of one processor
        uint32_t processors, added;
    } cases[] = {
        {1, 8, 50, 100, 8, 1},                        // at most as many as there are
        {3, 8, 50, 300, 8, 3}, {4, 8, 50, 600, 8, 2}, // one for each idle processor
        {4, 8, 50, 760, 8, 1},                        // or for a part of one
        {4, 8, 50, 780, 8, 0},                        // or for none
        {4, 8, 50, 900, 8, 0}, {1, 8, 4, 100, 8, 0},  // training does not wait
        {1, 8, 6, 100, 8, 1},  {1, 1, 90, 10, 8, 0},  // the most
        {6, 8, 90, 100, 8, 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct loaders_view view = {
            .threads = cases[i].threads,
            .threads_max = cases[i].threads_max,
            .elapsed_ns = 1000000000,
            .waited_ns = cases[i].waited_percent * UINT64_C(10000000),
            .busy_ns = cases[i].busy_percent * UINT64_C(10000000),
        };
        uint32_t added = loaders_growth(&view, cases[i].processors);
        if (added != cases[i].added) {
            fail_msg("case %zu: %u are added", i, added);
        }
    }
}

/* A user that always waits, while one processor of four is busy. */
static void auto_grows_to_its_share_and_a_given_number_stays(void **state)
{
    (void)state;
    struct loaders *grows = start(0), *stays = start(2);
    assert_int_equal(count(grows), 1);
    while (count(grows) < PROCESSORS) {
        for (int i = 0; i < 2; i++) {
            struct loaders *loaders = i == 0 ? grows : stays;
            pthread_mutex_lock(loaders_lock(loaders));
            loaders_note_use(loaders, 1000000000);
            pthread_mutex_unlock(loaders_lock(loaders));
        }
    }
    assert_int_equal(count(stays), 2);
    loaders_destroy(stays);
    loaders_destroy(grows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_the_same_with_any_number_of_threads),
        cmocka_unit_test(several_batchers_share_threads_and_get_their_own_batches),
        cmocka_unit_test(changed_images_are_the_same_with_any_number_of_threads),
        cmocka_unit_test(a_slow_sample_holds_up_no_other),
        cmocka_unit_test(a_seek_waits_for_samples_that_are_being_read),
        cmocka_unit_test(batches_before_one_that_cannot_be_read_are_delivered),
        cmocka_unit_test(threads_are_added_while_training_waits_and_processors_are_idle),
        cmocka_unit_test(auto_grows_to_its_share_and_a_given_number_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
