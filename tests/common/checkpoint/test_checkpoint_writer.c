/* Tests of the writer: what is kept, what is refused, and disks that fail. */
#include "common/checkpoint/checkpoint_writer.h"
#include "common/checkpoint/step_folders.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/file_limit.h"
#include "tests/support/common/sample_checkpoint.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Names in the folder, sorted, joined by a space. */
static void list(const char *folder, char *ret_names, size_t size)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    size_t at = 0;
    assert_true(count >= 2);
    ret_names[0] = '\0';
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            at += (size_t)snprintf(ret_names + at, size - at, "%s%s", at > 0 ? " " : "", name);
        }
        free(entries[i]);
    }
    free(entries);
}

static void check_names(const char *folder, const char *expected)
{
    char names[1024];
    list(folder, names, sizeof(names));
    assert_string_equal(names, expected);
}

static struct checkpoint_writer *open_writer(const char *folder, uint32_t keep)
{
    struct checkpoint_writer *writer;
    assert_int_equal(checkpoint_writer_open(folder, keep, &writer), STATUS_OK);
    return writer;
}

static void a_checkpoint_comes_back_whole(void **state)
{
    static const uint64_t steps[] = {100};
    char folder[512], names[1024];
    snprintf(folder, sizeof(folder), "%s/checkpoint", (const char *)*state);
    sample_write_steps(folder, 2, steps, 1);
    check_names(folder, "step-000000000100");
    snprintf(folder, sizeof(folder), "%s/checkpoint/step-000000000100", (const char *)*state);
    list(folder, names, sizeof(names));
    assert_string_equal(names, "manifest.jsonl params rank-3.statistics shard-0.residual state-1");
    assert_int_equal(sample_newest(*state), 100);
}

static void the_newest_checkpoints_are_kept_and_no_others(void **state)
{
    static const uint64_t steps[] = {0, 5, 100, 200, 300};
    sample_write_steps(*state, 2, steps, 5);
    check_names(*state, "step-000000000200 step-000000000300");
    sample_write_steps(*state, 1, (const uint64_t[]){301}, 1);
    check_names(*state, "step-000000000301");
}

static void those_of_a_past_that_the_job_left_are_removed(void **state)
{
    static const uint64_t steps[] = {100, 200, 300}, again[] = {150};
    sample_write_steps(*state, 3, steps, 3);
    sample_write_steps(*state, 3, again, 1);
    check_names(*state, "step-000000000100 step-000000000150");
}

static void a_step_is_written_anew_in_the_place_of_the_old_one(void **state)
{
    static const uint64_t steps[] = {100, 100};
    sample_write_steps(*state, 2, steps, 2);
    check_names(*state, "step-000000000100");
    assert_int_equal(sample_newest(*state), 100);
}

static void what_is_begun_has_no_name_and_goes_when_it_is_abandoned(void **state)
{
    struct checkpoint_writer *writer = open_writer(*state, 1);
    assert_int_equal(sample_write(writer, 100), STATUS_OK);
    assert_int_equal(sample_write_pieces(writer, 200), STATUS_OK);
    check_names(*state, ".step-000000000200.new step-000000000100");
    assert_int_equal(sample_newest(*state), 100);
    checkpoint_abandon(writer);
    check_names(*state, "step-000000000100");
    assert_int_equal(sample_write_pieces(writer, 300), STATUS_OK);
    assert_int_equal(checkpoint_begin(writer, 400), STATUS_OK); // instead of it
    check_names(*state, ".step-000000000400.new step-000000000100");
    checkpoint_writer_close(writer);
    check_names(*state, "step-000000000100");
}

static void what_another_process_has_left_unfinished_is_removed(void **state)
{
    temp_folder_write(*state, ".step-000000000700.new/params", "x", 1);
    temp_folder_write(*state, "notes", "x", 1);
    checkpoint_writer_close(open_writer(*state, 1));
    check_names(*state, "notes");
}

static void an_overlap_is_refused_by_name(void **state)
{
    struct checkpoint_writer *writer = open_writer(*state, 1);
    assert_int_equal(sample_write_pieces(writer, 100), STATUS_OK);
    assert_int_equal(checkpoint_write(writer, "params", 2999, "ab", 2), STATUS_MALFORMED);
    assert_non_null(strstr(checkpoint_writer_error(writer), "step 100"));
    assert_non_null(strstr(checkpoint_writer_error(writer), "bytes 2999 .. 3000 of params"));
    assert_int_equal(checkpoint_write(writer, "params", UINT64_MAX, "ab", 2), STATUS_MALFORMED);
    assert_int_equal(checkpoint_write(writer, "../params", 0, "ab", 2), STATUS_MALFORMED);
    // It is as it was, and can become whole.
    json_t *job = json_pack("{s:i}", "phase", 100);
    assert_int_equal(checkpoint_commit(writer, sample_vectors, SAMPLE_VECTORS, job), STATUS_OK);
    json_decref(job);
    checkpoint_writer_close(writer);
    assert_int_equal(sample_newest(*state), 100);
}

static void a_vector_that_is_not_whole_is_refused_by_name(void **state)
{
    static const struct {
        struct checkpoint_vector vectors[2];
        uint32_t count;
        const char *error;
    } cases[] = {
        {{{"params", 8}, {"state-1", 4}}, 2, "params has 8 bytes, and what was written ends at 10"},
        {{{"params", 10}, {"state-1", 4}}, 2, "params has 10 bytes"},
        {{{"state-1", 3}}, 1, "state-1 has 3 bytes, and what was written ends at 4"},
        {{{"state-1", 5}}, 1, "state-1 has 5 bytes, and what was written ends at 4"},
        {{{"state-1", 4}, {"state-2", 4}}, 2, "nothing was written of state-2"},
        {{{"state-1", 4}}, 1, "2 vectors were written, and not 1"},
    };
    struct checkpoint_writer *writer = open_writer(*state, 1);
    json_t *job = json_object();
    assert_int_equal(checkpoint_begin(writer, 100), STATUS_OK);
    assert_int_equal(checkpoint_write(writer, "params", 6, "6789", 4), STATUS_OK); // and a gap
    assert_int_equal(checkpoint_write(writer, "params", 0, "0123", 4), STATUS_OK);
    assert_int_equal(checkpoint_write(writer, "state-1", 0, "0123", 4), STATUS_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(checkpoint_commit(writer, cases[i].vectors, cases[i].count, job),
                         STATUS_MALFORMED);
        assert_non_null(strstr(checkpoint_writer_error(writer), cases[i].error));
    }
    json_decref(job);
    checkpoint_writer_close(writer);
    check_names(*state, "");
}

/* A full disk, or what stands in for it: the one before stays, and the next one may succeed. */
static void a_file_that_cannot_grow_costs_one_checkpoint(void **state)
{
    struct checkpoint_writer *writer = open_writer(*state, 1);
    assert_int_equal(sample_write(writer, 100), STATUS_OK);
    file_limit_begin(2500);
    enum status status = sample_write_pieces(writer, 200);
    enum status later = checkpoint_write(writer, "params", 0, "x", 1);
    json_t *job = json_object();
    enum status last = checkpoint_commit(writer, sample_vectors, SAMPLE_VECTORS, job);
    file_limit_end();
    json_decref(job);
    assert_int_equal(status, STATUS_IO);
    assert_int_equal(later, STATUS_IO);
    assert_int_equal(last, STATUS_IO);
    const char *error = checkpoint_writer_error(writer);
    assert_non_null(strstr(error, "step 200"));
    assert_non_null(strstr(error, ".step-000000000200.new/params"));
    assert_non_null(strstr(error, "ulimit -f"));
    check_names(*state, "step-000000000100");
    assert_int_equal(sample_write(writer, 300), STATUS_OK);
    checkpoint_writer_close(writer);
    check_names(*state, "step-000000000300");
}

static void a_full_disk_costs_one_checkpoint(void **state)
{
    const char *folder = *state;
    char filler[512];
    if (mount("none", folder, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=0700") != 0) {
        print_message("no file system can be mounted here: %s\n", strerrordesc_np(errno));
        skip();
    }
    struct checkpoint_writer *writer = open_writer(folder, 1);
    enum status first = sample_write(writer, 100);
    snprintf(filler, sizeof(filler), "%s/filler", folder);
    int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    static const char zeros[4096];
    while (write(fd, zeros, sizeof(zeros)) > 0) {
    }
    int full = errno;
    close(fd);
    enum status second = sample_write(writer, 200);
    char error[1024];
    snprintf(error, sizeof(error), "%s", checkpoint_writer_error(writer));
    int64_t kept = sample_newest(folder);
    unlink(filler);
    enum status third = sample_write(writer, 300);
    checkpoint_writer_close(writer);
    int64_t newest = sample_newest(folder);
    assert_int_equal(umount(folder), 0);
    assert_int_equal(first, STATUS_OK);
    assert_int_equal(full, ENOSPC);
    assert_int_equal(second, STATUS_IO);
    assert_non_null(strstr(error, "the disk or the quota is full"));
    assert_int_equal(kept, 100);
    assert_int_equal(third, STATUS_OK);
    assert_int_equal(newest, 300);
}

static void a_disk_that_is_read_only_is_named_as_such(void **state)
{
    const char *folder = *state;
    if (mount("none", folder, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=0700") != 0) {
        print_message("no file system can be mounted here: %s\n", strerrordesc_np(errno));
        skip();
    }
    struct checkpoint_writer *writer = open_writer(folder, 1);
    int remounted = mount("none", folder, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL);
    enum status status = checkpoint_begin(writer, 100);
    char error[1024];
    snprintf(error, sizeof(error), "%s", checkpoint_writer_error(writer));
    checkpoint_writer_close(writer);
    assert_int_equal(umount(folder), 0);
    assert_int_equal(remounted, 0);
    assert_int_equal(status, STATUS_IO);
    assert_non_null(strstr(error, "mounted read-only"));
}

static void a_folder_that_is_moved_meanwhile_is_made_again(void **state)
{
    char folder[512], aside[512];
    snprintf(folder, sizeof(folder), "%s/checkpoint", (const char *)*state);
    snprintf(aside, sizeof(aside), "%s/aside", (const char *)*state);
    struct checkpoint_writer *writer = open_writer(folder, 2);
    assert_int_equal(sample_write(writer, 100), STATUS_OK);
    assert_false(checkpoint_writer_take_news(writer));
    assert_int_equal(rename(folder, aside), 0);
    assert_int_equal(sample_write(writer, 200), STATUS_OK);
    assert_true(checkpoint_writer_take_news(writer));
    assert_false(checkpoint_writer_take_news(writer)); // it was taken
    check_names(folder, "step-000000000200");
    check_names(aside, "step-000000000100");
    assert_int_equal(rename(aside, folder), -1); // it is not empty
    checkpoint_writer_close(writer);
}

/* Otherwise it would be named as the last good one. */
static void that_the_last_one_was_removed_is_told_when_the_next_one_fails(void **state)
{
    char folder[512];
    snprintf(folder, sizeof(folder), "%s/checkpoint", (const char *)*state);
    struct checkpoint_writer *writer = open_writer(folder, 1);
    for (uint64_t step = 100; step <= 200; step += 100) {
        assert_int_equal(sample_write(writer, step), STATUS_OK);
        bool is_removed = step == 200;
        if (is_removed) {
            int parent = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            assert_true(step_folder_remove(parent, "step-000000000200"));
            close(parent);
        }
        file_limit_begin(1);
        enum status status = sample_write(writer, step + 50);
        file_limit_end();
        assert_int_equal(status, STATUS_IO);
        assert_int_equal(checkpoint_writer_take_news(writer), is_removed);
    }
    assert_int_equal(sample_write(writer, 300), STATUS_OK);
    assert_false(checkpoint_writer_take_news(writer));
    checkpoint_writer_close(writer);
}

/* Its checkpoints would be removed as older ones. */
static void another_folder_with_checkpoints_in_its_place_stays_as_it_is(void **state)
{
    char folder[512], aside[512], theirs[512];
    snprintf(folder, sizeof(folder), "%s/checkpoint", (const char *)*state);
    snprintf(aside, sizeof(aside), "%s/aside", (const char *)*state);
    snprintf(theirs, sizeof(theirs), "%s/theirs", (const char *)*state);
    struct checkpoint_writer *writer = open_writer(theirs, 2);
    assert_int_equal(sample_write(writer, 10), STATUS_OK);
    checkpoint_writer_close(writer);
    writer = open_writer(folder, 1);
    assert_int_equal(sample_write(writer, 100), STATUS_OK);
    assert_int_equal(rename(folder, aside), 0);
    assert_int_equal(rename(theirs, folder), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(checkpoint_begin(writer, 200), STATUS_IO);
        assert_non_null(strstr(checkpoint_writer_error(writer), "has not written"));
    }
    check_names(folder, "step-000000000010");
    assert_int_equal(rename(folder, theirs), 0);
    assert_int_equal(rename(aside, folder), 0);
    assert_int_equal(sample_write(writer, 200), STATUS_OK); // its own is back
    check_names(folder, "step-000000000200");
    checkpoint_writer_close(writer);
}

/* Those who read checkpoints refuse links. */
static void a_link_to_the_folder_that_was_moved_is_not_in_its_place(void **state)
{
    char folder[512], aside[512];
    snprintf(folder, sizeof(folder), "%s/checkpoint", (const char *)*state);
    snprintf(aside, sizeof(aside), "%s/aside", (const char *)*state);
    struct checkpoint_writer *writer = open_writer(folder, 2);
    assert_int_equal(rename(folder, aside), 0);
    assert_int_equal(symlink(aside, folder), 0);
    assert_int_equal(checkpoint_begin(writer, 100), STATUS_IO);
    assert_true(checkpoint_writer_take_news(writer));
    assert_non_null(strstr(checkpoint_writer_error(writer), "Not a directory"));
    checkpoint_writer_close(writer);
}

static void a_folder_whose_own_folder_is_gone_is_awaited(void **state)
{
    char run[512], folder[600], aside[512];
    snprintf(run, sizeof(run), "%s/run", (const char *)*state);
    snprintf(folder, sizeof(folder), "%s/checkpoint", run);
    snprintf(aside, sizeof(aside), "%s/aside", (const char *)*state);
    assert_int_equal(mkdir(run, 0700), 0);
    struct checkpoint_writer *writer = open_writer(folder, 2);
    assert_int_equal(rename(run, aside), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(checkpoint_begin(writer, 100), STATUS_IO);
        assert_non_null(strstr(checkpoint_writer_error(writer), folder));
        assert_non_null(strstr(checkpoint_writer_error(writer), "make that again"));
    }
    assert_int_equal(mkdir(run, 0700), 0);
    assert_int_equal(sample_write(writer, 100), STATUS_OK);
    check_names(folder, "step-000000000100");
    checkpoint_writer_close(writer);
}

static void a_planted_link_is_replaced_and_what_it_leads_to_stays(void **state)
{
    char path[512];
    struct stat facts;
    temp_folder_write(*state, "precious/params", "precious", 8);
    snprintf(path, sizeof(path), "%s/checkpoint", (const char *)*state);
    struct checkpoint_writer *writer = open_writer(path, 1);
    for (int i = 0; i < 2; i++) {
        static const char *const names[] = {".step-000000000100.new", "step-000000000100"};
        snprintf(path, sizeof(path), "%s/checkpoint/%s", (const char *)*state, names[i]);
        assert_int_equal(symlink("../precious", path), 0);
        assert_int_equal(sample_write(writer, 100), STATUS_OK);
        assert_int_equal(lstat(path, &facts), i == 0 ? -1 : 0);
        assert_int_equal(sample_newest(*state), 100);
        snprintf(path, sizeof(path), "%s/checkpoint/step-000000000100", (const char *)*state);
        if (i == 0) {
            // Away with it, for the next link to take its place.
            char aside[512];
            snprintf(aside, sizeof(aside), "%s/aside", (const char *)*state);
            assert_int_equal(rename(path, aside), 0);
        }
    }
    checkpoint_writer_close(writer);
    snprintf(path, sizeof(path), "%s/precious/params", (const char *)*state);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_size, 8);
}

static void check_refused(const char *folder, const char *reason)
{
    struct checkpoint_writer *writer;
    captured_log_begin();
    enum status status = checkpoint_writer_open(folder, 1, &writer);
    const char *log = captured_log_end();
    assert_int_not_equal(status, STATUS_OK);
    assert_non_null(strstr(log, folder));
    assert_non_null(strstr(log, reason));
}

static void a_folder_that_is_a_link_or_belongs_to_others_is_refused(void **state)
{
    char path[512], missing[600];
    snprintf(path, sizeof(path), "%s/checkpoint", (const char *)*state);
    snprintf(missing, sizeof(missing), "%s/missing", path);
    check_refused(missing, "No such file");
    assert_int_equal(symlink("/tmp", path), 0);
    check_refused(path, "link");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, 0777), 0);
    check_refused(path, "chmod o-w");
    if (chown(path, 4711, 4711) == 0) {
        check_refused(path, "belongs to another user");
    }
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
        IN_FOLDER(a_checkpoint_comes_back_whole),
        IN_FOLDER(the_newest_checkpoints_are_kept_and_no_others),
        IN_FOLDER(those_of_a_past_that_the_job_left_are_removed),
        IN_FOLDER(a_step_is_written_anew_in_the_place_of_the_old_one),
        IN_FOLDER(what_is_begun_has_no_name_and_goes_when_it_is_abandoned),
        IN_FOLDER(what_another_process_has_left_unfinished_is_removed),
        IN_FOLDER(an_overlap_is_refused_by_name),
        IN_FOLDER(a_vector_that_is_not_whole_is_refused_by_name),
        IN_FOLDER(a_file_that_cannot_grow_costs_one_checkpoint),
        IN_FOLDER(a_full_disk_costs_one_checkpoint),
        IN_FOLDER(a_disk_that_is_read_only_is_named_as_such),
        IN_FOLDER(a_folder_that_is_moved_meanwhile_is_made_again),
        IN_FOLDER(that_the_last_one_was_removed_is_told_when_the_next_one_fails),
        IN_FOLDER(another_folder_with_checkpoints_in_its_place_stays_as_it_is),
        IN_FOLDER(a_link_to_the_folder_that_was_moved_is_not_in_its_place),
        IN_FOLDER(a_folder_whose_own_folder_is_gone_is_awaited),
        IN_FOLDER(a_planted_link_is_replaced_and_what_it_leads_to_stays),
        IN_FOLDER(a_folder_that_is_a_link_or_belongs_to_others_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
