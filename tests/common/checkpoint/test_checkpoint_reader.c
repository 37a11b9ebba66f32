/* Tests of the reader: what is damaged, foreign or planted is passed over by name. */
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/manifest.h"
#include "tests/support/common/sample_checkpoint.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t two_steps[] = {100, 200};
static const char *const files[] = {MANIFEST_FILE, "params", "state-1", "rank-3.statistics",
                                    "shard-0.residual"};

#define FILE_COUNT (sizeof(files) / sizeof(files[0]))

struct texts {
    char error[4096], notes[4096];
};

static enum status open_checkpoint(const char *folder, struct checkpoint_reader **ret_reader,
                                   struct texts *ret_texts)
{
    memset(ret_texts, 0, sizeof(*ret_texts));
    return checkpoint_open(folder, ret_reader, ret_texts->error, sizeof(ret_texts->error),
                           ret_texts->notes, sizeof(ret_texts->notes));
}

/* The newer one is damaged: the older one is taken, and the note names the file. By itself, the
 * newer one is refused with the same words. */
static void check_passed_over(const char *folder, const char *file, const char *reason)
{
    struct checkpoint_reader *reader;
    struct texts texts;
    char newer[512];
    assert_int_equal(open_checkpoint(folder, &reader, &texts), STATUS_OK);
    assert_int_equal(checkpoint_step(reader), 100);
    assert_true(sample_is_whole(reader));
    checkpoint_reader_close(reader);
    assert_non_null(strstr(texts.notes, "step-000000000200"));
    assert_non_null(strstr(texts.notes, file));
    assert_non_null(strstr(texts.notes, reason));
    snprintf(newer, sizeof(newer), "%s/step-000000000200", folder);
    assert_int_not_equal(open_checkpoint(newer, &reader, &texts), STATUS_OK);
    assert_non_null(strstr(texts.error, newer));
    assert_non_null(strstr(texts.error, file));
    assert_non_null(strstr(texts.error, reason));
}

static void path_of(const char *folder, const char *file, char ret_path[512])
{
    snprintf(ret_path, 512, "%s/step-000000000200/%s", folder, file);
}

static void a_file_that_is_missing_is_named(void **state)
{
    for (size_t i = 0; i < FILE_COUNT; i++) {
        char path[512];
        sample_write_steps(*state, 2, two_steps, 2);
        path_of(*state, files[i], path);
        assert_int_equal(unlink(path), 0);
        check_passed_over(*state, files[i], "never finished");
    }
}

static void set_bytes(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_int_equal(write(fd, bytes, size), size);
    close(fd);
}

static void a_file_that_is_cut_short_or_longer_is_named(void **state)
{
    sample_write_steps(*state, 2, two_steps, 2);
    for (size_t i = 0; i < FILE_COUNT; i++) {
        char path[512], bytes[2 * SAMPLE_VECTOR_BYTES] = {0};
        path_of(*state, files[i], path);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t size = read(fd, bytes, sizeof(bytes) - 1);
        close(fd);
        assert_in_range(size, 0, sizeof(bytes) - 2);
        bool is_manifest = strcmp(files[i], MANIFEST_FILE) == 0;
        for (ssize_t cut = 0; cut <= size + 1; cut += 1 + size / 50) {
            if (cut != size) {
                set_bytes(path, bytes, (size_t)cut);
                check_passed_over(*state, files[i], is_manifest ? "" : "bytes instead of");
            }
        }
        set_bytes(path, bytes, (size_t)size + 1); // one that is too long
        check_passed_over(*state, files[i], is_manifest ? "" : "bytes instead of");
        set_bytes(path, bytes, (size_t)size);
    }
    assert_int_equal(sample_newest(*state), 200);
}

static void flip_bit(const char *path, off_t offset, uint32_t bit)
{
    unsigned char byte;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, &byte, 1, offset), 1);
    byte = (unsigned char)(byte ^ (1U << bit));
    assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
}

static void a_bit_that_is_flipped_is_found_in_every_region_of_every_file(void **state)
{
    sample_write_steps(*state, 2, two_steps, 2);
    for (size_t i = 0; i < FILE_COUNT; i++) {
        struct stat facts;
        char path[512];
        path_of(*state, files[i], path);
        assert_int_equal(stat(path, &facts), 0);
        bool is_manifest = strcmp(files[i], MANIFEST_FILE) == 0;
        off_t stride = 1 + facts.st_size / 101;
        for (off_t offset = 0; offset < facts.st_size; offset += stride) {
            uint32_t bit = (uint32_t)(offset / stride % 8);
            flip_bit(path, offset, bit);
            check_passed_over(*state, files[i], is_manifest ? "" : "checksum differs");
            flip_bit(path, offset, bit);
        }
    }
    assert_int_equal(sample_newest(*state), 200);
}

static void a_manifest_of_a_newer_version_is_named_as_such(void **state)
{
    static const char text[] = "{\"format\": \"ringside-checkpoint\", \"version\": 7}\n{}\n";
    sample_write_steps(*state, 2, two_steps, 2);
    temp_folder_write(*state, "step-000000000200/" MANIFEST_FILE, text, sizeof(text) - 1);
    check_passed_over(*state, MANIFEST_FILE, "is of version 7");
}

static void a_foreign_manifest_is_named_as_such(void **state)
{
    sample_write_steps(*state, 2, two_steps, 2);
    temp_folder_write(*state, "step-000000000200/" MANIFEST_FILE, "{\"a\": 1}\n", 9);
    check_passed_over(*state, MANIFEST_FILE, "not the manifest of a checkpoint of Ringside");
}

static void a_manifest_of_another_step_is_named_as_such(void **state)
{
    char from[512], to[512];
    sample_write_steps(*state, 3, two_steps, 2);
    snprintf(from, sizeof(from), "%s/step-000000000200", (const char *)*state);
    snprintf(to, sizeof(to), "%s/step-000000000500", (const char *)*state);
    assert_int_equal(rename(from, to), 0);
    struct checkpoint_reader *reader;
    struct texts texts;
    assert_int_equal(open_checkpoint(*state, &reader, &texts), STATUS_OK);
    assert_int_equal(checkpoint_step(reader), 100);
    checkpoint_reader_close(reader);
    assert_non_null(strstr(texts.notes, "that of step 200"));
}

static void what_is_no_regular_file_of_ours_is_not_followed(void **state)
{
    for (size_t i = 0; i < FILE_COUNT; i++) {
        char path[512], aside[600];
        sample_write_steps(*state, 2, two_steps, 2);
        path_of(*state, files[i], path);
        snprintf(aside, sizeof(aside), "%s.aside", path);
        assert_int_equal(rename(path, aside), 0);
        assert_int_equal(symlink(aside, path), 0); // to the very bytes
        check_passed_over(*state, files[i], "link");
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkfifo(path, 0600), 0); // and nobody waits for its other end
        check_passed_over(*state, files[i], "something else is in its place");
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkdir(path, 0700), 0);
        check_passed_over(*state, files[i], "something else is in its place");
        assert_int_equal(rmdir(path), 0);
        assert_int_equal(rename(aside, path), 0);
        if (chown(path, 4711, 4711) == 0) {
            check_passed_over(*state, files[i], "another user");
        }
    }
}

static void a_folder_that_is_a_link_or_belongs_to_others_is_not_followed(void **state)
{
    char path[512], aside[512];
    struct checkpoint_reader *reader;
    struct texts texts;
    snprintf(path, sizeof(path), "%s/step-000000000200", (const char *)*state);
    snprintf(aside, sizeof(aside), "%s/aside", (const char *)*state);
    sample_write_steps(*state, 2, two_steps, 2);
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(symlink(aside, path), 0);
    assert_int_equal(open_checkpoint(*state, &reader, &texts), STATUS_OK);
    assert_int_equal(checkpoint_step(reader), 100);
    checkpoint_reader_close(reader);
    assert_non_null(strstr(texts.notes, "link, which is not followed"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rename(aside, path), 0);
    if (chown(path, 4711, 4711) != 0) {
        skip(); // not root
    }
    assert_int_equal(open_checkpoint(*state, &reader, &texts), STATUS_OK);
    assert_int_equal(checkpoint_step(reader), 100);
    checkpoint_reader_close(reader);
    assert_non_null(strstr(texts.notes, "another user"));
    assert_int_equal(open_checkpoint(path, &reader, &texts), STATUS_DENIED);
    assert_non_null(strstr(texts.error, "uid 4711"));
}

static void a_folder_without_a_checkpoint_is_refused_with_what_was_expected(void **state)
{
    struct checkpoint_reader *reader;
    struct texts texts;
    char path[512];
    assert_int_equal(open_checkpoint(*state, &reader, &texts), STATUS_END_OF_DATA);
    assert_non_null(strstr(texts.error, *state));
    assert_non_null(strstr(texts.error, "--checkpoint-every"));
    snprintf(path, sizeof(path), "%s/missing", (const char *)*state);
    assert_int_equal(open_checkpoint(path, &reader, &texts), STATUS_IO);
    assert_non_null(strstr(texts.error, path));
    temp_folder_write(*state, "file", "x", 1);
    snprintf(path, sizeof(path), "%s/file", (const char *)*state);
    assert_int_equal(open_checkpoint(path, &reader, &texts), STATUS_INVALID);
    // None of those that are there is whole.
    sample_write_steps(*state, 2, two_steps, 2);
    for (int i = 1; i <= 2; i++) {
        snprintf(path, sizeof(path), "%s/step-000000000%d00/params", (const char *)*state, i);
        flip_bit(path, 7, 3);
    }
    assert_int_equal(open_checkpoint(*state, &reader, &texts), STATUS_MALFORMED);
    assert_non_null(strstr(texts.error, "step-000000000200: params is damaged"));
    assert_non_null(strstr(texts.error, "no checkpoint in"));
    assert_non_null(strstr(texts.notes, "step-000000000100 is passed over: params is damaged"));
}

static void a_run_its_folder_of_checkpoints_and_one_of_them_can_be_named(void **state)
{
    static const struct {
        const char *below;
        uint64_t step;
    } cases[] = {
        {"", 200},
        {"/checkpoint", 200},
        {"/checkpoint/", 200},
        {"/checkpoint/step-000000000100", 100},
        {"/checkpoint/step-000000000100/", 100},
    };
    char path[512];
    snprintf(path, sizeof(path), "%s/checkpoint", (const char *)*state);
    sample_write_steps(path, 2, two_steps, 2);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", (const char *)*state, cases[i].below);
        assert_int_equal(sample_newest(path), cases[i].step);
    }
    // A copy keeps what it is under any name.
    char copy[512];
    snprintf(path, sizeof(path), "%s/checkpoint/step-000000000100", (const char *)*state);
    snprintf(copy, sizeof(copy), "%s/best", (const char *)*state);
    assert_int_equal(rename(path, copy), 0);
    assert_int_equal(sample_newest(copy), 100);
}

static void parts_of_vectors_can_be_read_and_nothing_beyond_them(void **state)
{
    struct checkpoint_reader *reader;
    struct texts texts;
    unsigned char expected[SAMPLE_VECTOR_BYTES], bytes[SAMPLE_VECTOR_BYTES];
    uint64_t size = 77;
    sample_write_steps(*state, 2, two_steps, 2);
    assert_int_equal(open_checkpoint(*state, &reader, &texts), STATUS_OK);
    assert_string_equal(texts.notes, "");
    assert_non_null(strstr(checkpoint_path(reader), "step-000000000200"));
    sample_bytes(200, 0, expected);
    assert_int_equal(checkpoint_read(reader, "params", 1000, bytes, 2000), STATUS_OK);
    assert_memory_equal(bytes, expected + 1000, 2000);
    assert_int_equal(checkpoint_read(reader, "params", 3000, bytes, 0), STATUS_OK);
    assert_int_equal(checkpoint_read(reader, "params", 1000, bytes, 2001), STATUS_INVALID);
    assert_int_equal(checkpoint_read(reader, "params", UINT64_MAX, bytes, 2), STATUS_INVALID);
    assert_int_equal(checkpoint_read(reader, "state-2", 0, bytes, 1), STATUS_INVALID);
    assert_false(checkpoint_has(reader, "state-2", &size));
    assert_int_equal(size, 77);
    checkpoint_reader_close(reader);
}

/* Writes one after the other, and keeps one alone, until it is told to end. */
struct busy_job {
    struct checkpoint_writer *writer;
    atomic_bool has_begun, has_failed, is_over;
};

static void *write_many(void *data)
{
    struct busy_job *job = data;
    for (uint64_t step = 1; !atomic_load(&job->is_over); step++) {
        if (sample_write(job->writer, step) != STATUS_OK) {
            atomic_store(&job->has_failed, true);
        }
        atomic_store(&job->has_begun, true);
    }
    return NULL;
}

static void the_only_one_of_a_job_that_replaces_it_is_found_again_and_again(void **state)
{
    struct busy_job job = {.writer = NULL};
    char error[1024], notes[1024];
    pthread_t thread;
    assert_int_equal(checkpoint_writer_open(*state, 1, &job.writer), STATUS_OK);
    assert_int_equal(pthread_create(&thread, NULL, write_many, &job), 0);
    while (!atomic_load(&job.has_begun)) {
        sched_yield();
    }
    enum status status = STATUS_OK;
    for (int i = 0; i < 300 && status == STATUS_OK; i++) {
        struct checkpoint_reader *reader;
        status = checkpoint_open(*state, &reader, error, sizeof(error), notes, sizeof(notes));
        if (status == STATUS_OK) {
            checkpoint_reader_close(reader);
        }
    }
    atomic_store(&job.is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    checkpoint_writer_close(job.writer);
    assert_false(atomic_load(&job.has_failed));
    assert_int_equal(status, STATUS_OK);
}

static void one_below_a_step_is_found(void **state)
{
    struct checkpoint_reader *reader;
    struct texts texts = {"", ""};
    struct checkpoint_place place = {.folder = *state, .before = 200};
    sample_write_steps(*state, 2, two_steps, 2);
    assert_int_equal(checkpoint_open_before(&place, &reader, texts.error, sizeof(texts.error),
                                            texts.notes, sizeof(texts.notes)),
                     STATUS_OK);
    assert_int_equal(checkpoint_step(reader), 100);
    checkpoint_reader_close(reader);
    place.before = 100;
    assert_int_equal(checkpoint_open_before(&place, &reader, texts.error, sizeof(texts.error),
                                            texts.notes, sizeof(texts.notes)),
                     STATUS_END_OF_DATA);
}

static void texts_that_are_too_long_are_cut_off(void **state)
{
    struct checkpoint_reader *reader;
    char error[8] = "1234567", notes[1];
    assert_int_equal(checkpoint_open(*state, &reader, error, sizeof(error), notes, sizeof(notes)),
                     STATUS_END_OF_DATA);
    assert_int_equal(strlen(error), 7);
    assert_string_equal(notes, "");
}

static int open_folder(void **state)
{
    *state = temp_folder_create();
    return 0;
}

static int close_folder(void **state)
{
    temp_folder_destroy(*state);
    return 0;
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, open_folder, close_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_file_that_is_missing_is_named),
        IN_FOLDER(the_only_one_of_a_job_that_replaces_it_is_found_again_and_again),
        IN_FOLDER(one_below_a_step_is_found),
        IN_FOLDER(a_file_that_is_cut_short_or_longer_is_named),
        IN_FOLDER(a_bit_that_is_flipped_is_found_in_every_region_of_every_file),
        IN_FOLDER(a_manifest_of_a_newer_version_is_named_as_such),
        IN_FOLDER(a_foreign_manifest_is_named_as_such),
        IN_FOLDER(a_manifest_of_another_step_is_named_as_such),
        IN_FOLDER(what_is_no_regular_file_of_ours_is_not_followed),
        IN_FOLDER(a_folder_that_is_a_link_or_belongs_to_others_is_not_followed),
        IN_FOLDER(a_folder_without_a_checkpoint_is_refused_with_what_was_expected),
        IN_FOLDER(a_run_its_folder_of_checkpoints_and_one_of_them_can_be_named),
        IN_FOLDER(parts_of_vectors_can_be_read_and_nothing_beyond_them),
        IN_FOLDER(texts_that_are_too_long_are_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
