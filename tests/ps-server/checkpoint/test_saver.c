/* Tests of the thread that writes checkpoints. */
#include "common/checkpoint/checkpoint_reader.h"
#include "ps-server/checkpoint/saver.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PATIENCE_MS 600000 // that no test needs

static atomic_bool hangs; // the disk
static sem_t go;          // nobody says so: what hangs does so until the process ends

// NOLINTBEGIN(readability-identifier-naming): the linker's names.
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
// NOLINTEND(readability-identifier-naming)

int __wrap_mkdir(const char *path, mode_t mode)
{
    if (hangs) {
        sem_wait(&go);
    }
    return __real_mkdir(path, mode);
}

/* Wakes whoever waits for news. */
struct bell {
    pthread_mutex_t mutex;
    pthread_cond_t rung;
    unsigned count;
};

static void ring(void *context)
{
    struct bell *bell = context;
    pthread_mutex_lock(&bell->mutex);
    bell->count++;
    pthread_cond_signal(&bell->rung);
    pthread_mutex_unlock(&bell->mutex);
}

static struct saver_news await(struct saver *saver, struct bell *bell)
{
    struct saver_news news;
    while (!saver_next(saver, &news)) {
        pthread_mutex_lock(&bell->mutex);
        while (bell->count == 0) {
            pthread_cond_wait(&bell->rung, &bell->mutex);
        }
        bell->count--;
        pthread_mutex_unlock(&bell->mutex);
    }
    return news;
}

static enum status create(const char *folder, struct bell *bell, struct saver **ret_saver)
{
    const struct saver_options options = {.folder = folder,
                                          .wait = {.warn_s = 0.25, .fail_s = hangs ? 0.5 : 600},
                                          .keep = 2,
                                          .member_count = 1,
                                          .wake = ring,
                                          .context = bell};
    *bell = (struct bell){.count = 0};
    pthread_mutex_init(&bell->mutex, NULL);
    pthread_cond_init(&bell->rung, NULL);
    return saver_create(&options, ret_saver);
}

static struct saver *open_saver(const char *folder, struct bell *bell)
{
    struct saver *saver;
    assert_int_equal(create(folder, bell, &saver), STATUS_OK);
    return saver;
}

static void store(struct saver *saver, struct span span)
{
    static const float values[4] = {1, 2, 3, 4};
    const struct wire_piece piece = {.vector = "params", .total = 4};
    const struct message message = {
        .kind = MESSAGE_PIECE, .piece = &piece, .span = span, .values = values + span.offset};
    saver_store(saver, 9, &message);
}

static void what_is_stored_and_committed_can_be_read(void **state)
{
    (void)state;
    const struct checkpoint_vector vector = {"params", 4 * sizeof(float)};
    char *folder = temp_folder_create(), error[512], notes[512];
    struct bell bell;
    struct saver *saver = open_saver(folder, &bell);
    saver_begin(saver, 7);
    store(saver, (struct span){2, 2});
    store(saver, (struct span){0, 2});
    for (int i = 0; i < 2; i++) {
        const struct saver_news news = await(saver, &bell);
        assert_false(news.is_end);
        assert_int_equal(news.peer, 9);
        assert_int_equal(news.step, 7);
    }
    saver_commit(saver, &vector, 1, json_pack("{s:i}", "answer", 42));
    const struct saver_news news = await(saver, &bell);
    assert_true(news.is_end);
    assert_int_equal(news.status, STATUS_OK);
    assert_true(saver_destroy(saver, PATIENCE_MS));
    struct checkpoint_reader *reader;
    float values[4];
    const float expected[4] = {1, 2, 3, 4};
    assert_int_equal(checkpoint_open(folder, &reader, error, sizeof(error), notes, sizeof(notes)),
                     STATUS_OK);
    assert_int_equal(checkpoint_step(reader), 7);
    assert_int_equal(checkpoint_read(reader, "params", 0, values, sizeof(values)), STATUS_OK);
    assert_memory_equal(values, expected, sizeof(values));
    assert_int_equal(json_integer_value(json_object_get(checkpoint_job_part(reader), "answer")),
                     42);
    checkpoint_reader_close(reader);
    temp_folder_destroy(folder);
}

static void one_that_is_not_whole_ends_with_why_and_the_next_one_is_written(void **state)
{
    (void)state;
    const struct checkpoint_vector vector = {"params", 4 * sizeof(float)};
    char *folder = temp_folder_create();
    struct bell bell;
    struct saver *saver = open_saver(folder, &bell);
    saver_begin(saver, 7);
    store(saver, (struct span){0, 2});
    saver_commit(saver, &vector, 1, json_object());
    assert_false(await(saver, &bell).is_end);
    struct saver_news news = await(saver, &bell);
    assert_true(news.is_end);
    assert_int_equal(news.status, STATUS_MALFORMED);
    assert_string_not_equal(news.why, "");
    saver_begin(saver, 8);
    store(saver, (struct span){0, 4});
    saver_commit(saver, &vector, 1, json_object());
    assert_false(await(saver, &bell).is_end);
    news = await(saver, &bell);
    assert_int_equal(news.step, 8);
    assert_int_equal(news.status, STATUS_OK);
    assert_true(saver_destroy(saver, PATIENCE_MS));
    temp_folder_destroy(folder);
}

static void a_folder_that_hangs_is_named_and_not_waited_for(void **state)
{
    (void)state;
    char *top = temp_folder_create(), folder[512];
    struct bell bell;
    struct saver *saver;
    snprintf(folder, sizeof(folder), "%.400s/checkpoint", top);
    hangs = true;
    captured_log_begin();
    enum status status = create(folder, &bell, &saver);
    const char *log = captured_log_end();
    hangs = false;
    assert_int_equal(status, STATUS_IO);
    assert_non_null(strstr(log, "the disk hangs"));
    assert_non_null(strstr(log, folder));
    temp_folder_destroy(top);
}

static void that_the_folder_was_moved_is_told(void **state)
{
    (void)state;
    char *top = temp_folder_create(), folder[512], aside[512];
    struct bell bell;
    snprintf(folder, sizeof(folder), "%s/checkpoint", top);
    snprintf(aside, sizeof(aside), "%s/aside", top);
    struct saver *saver = open_saver(folder, &bell);
    saver_begin(saver, 7);
    store(saver, (struct span){0, 2});
    assert_false(await(saver, &bell).is_end);
    assert_int_equal(rename(folder, aside), 0);
    saver_abandon(saver);
    assert_true(await(saver, &bell).is_end);
    saver_begin(saver, 8);
    store(saver, (struct span){0, 4});
    struct saver_news news = await(saver, &bell);
    assert_true(news.is_moved);
    assert_int_equal(news.status, STATUS_OK);
    assert_false(await(saver, &bell).is_moved);
    assert_true(saver_destroy(saver, PATIENCE_MS));
    temp_folder_destroy(top);
}

static void that_it_cannot_be_made_again_is_told_once(void **state)
{
    (void)state;
    char *top = temp_folder_create(), run[512], folder[512], aside[512];
    struct bell bell;
    snprintf(run, sizeof(run), "%.400s/run", top);
    snprintf(folder, sizeof(folder), "%.400s/run/checkpoint", top);
    snprintf(aside, sizeof(aside), "%.400s/aside", top);
    assert_int_equal(mkdir(run, 0700), 0);
    struct saver *saver = open_saver(folder, &bell);
    assert_int_equal(rename(run, aside), 0);
    for (uint64_t step = 7; step <= 8; step++) {
        saver_begin(saver, step);
        struct saver_news news = await(saver, &bell);
        assert_int_equal(news.is_moved, step == 7);
        news = step == 7 ? await(saver, &bell) : news;
        assert_true(news.is_end && !news.is_moved);
        assert_int_equal(news.status, STATUS_IO);
    }
    assert_int_equal(mkdir(run, 0700), 0);
    saver_begin(saver, 9);
    store(saver, (struct span){0, 4});
    struct saver_news news = await(saver, &bell);
    assert_true(news.is_moved);
    assert_int_equal(news.status, STATUS_OK);
    assert_false(await(saver, &bell).is_moved);
    assert_true(saver_destroy(saver, PATIENCE_MS));
    temp_folder_destroy(top);
}

static void what_was_given_up_is_forgotten(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    struct bell bell;
    struct saver *saver = open_saver(folder, &bell);
    struct saver_news news;
    saver_begin(saver, 7);
    saver_abandon(saver);
    store(saver, (struct span){0, 2});
    saver_begin(saver, 9);
    store(saver, (struct span){0, 4});
    news = await(saver, &bell);
    assert_true(news.is_end);
    assert_int_equal(news.step, 7);
    assert_int_equal(news.status, STATUS_INTERRUPTED);
    news = await(saver, &bell);
    assert_false(news.is_end);
    assert_int_equal(news.step, 9);
    assert_true(saver_destroy(saver, PATIENCE_MS)); // what is begun is given up, too
    struct checkpoint_reader *reader;
    char error[512], notes[512];
    assert_int_not_equal(
        checkpoint_open(folder, &reader, error, sizeof(error), notes, sizeof(notes)), STATUS_OK);
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_stored_and_committed_can_be_read),
        cmocka_unit_test(one_that_is_not_whole_ends_with_why_and_the_next_one_is_written),
        cmocka_unit_test(a_folder_that_hangs_is_named_and_not_waited_for),
        cmocka_unit_test(that_the_folder_was_moved_is_told),
        cmocka_unit_test(that_it_cannot_be_made_again_is_told_once),
        cmocka_unit_test(what_was_given_up_is_forgotten),
    };
    sem_init(&go, 0, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
