/* Tests of folders: what is not ours to remove stays, and a file is no folder. */
#include "common/base/folder_lock.h"
#include "common/job/job.h"
#include "deploy/system/folder.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/file_limit.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* FOLDER/run with what an interrupted run leaves, and one more file unless it is "". */
static void make_run(const char *folder, const char *more, char ret_run[512])
{
    char logs[600];
    snprintf(ret_run, 512, "%s/run", folder);
    temp_folder_write(folder, "run/job.json", "{}", 2);
    temp_folder_write(folder, "run/metrics.jsonl", "{}", 2);
    temp_folder_write(folder, "run/summary.json.part", "{}", 2);
    snprintf(logs, sizeof(logs), "%s/logs", ret_run);
    assert_int_equal(mkdir(logs, 0700), 0);
    if (more[0] != '\0') {
        char name[64];
        snprintf(name, sizeof(name), "run/%s", more);
        temp_folder_write(folder, name, "mine", 4);
    }
}

static void a_run_without_a_result_is_removed(void **state)
{
    static const char *const left[] = {"",           "timeline.pftrace", "timeline.pftrace.part",
                                       "begin.json", "begin.json.part",  "critical_path.json.part"};
    (void)state;
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        char *folder = temp_folder_create(), run[512];
        make_run(folder, left[i], run);
        assert_int_equal(folder_remove_run(run), STATUS_OK);
        assert_int_equal(access(run, F_OK), -1);
        assert_int_equal(folder_remove_run(run), STATUS_OK); // there is none
        temp_folder_destroy(folder);
    }
}

static void a_folder_with_nothing_but_a_lock_is_empty(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    temp_folder_write(folder, FOLDER_LOCK_NAME, "", 0);
    assert_int_equal(folder_make(folder, "logs"), STATUS_OK);
    temp_folder_destroy(folder);
}

static void a_folder_with_a_file_of_the_users_stays_whole(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), run[512], kept[600];
    make_run(folder, "notes.txt", run);
    captured_log_begin();
    assert_int_equal(folder_remove_run(run), STATUS_INVALID);
    const char *said = captured_log_end();
    assert_non_null(strstr(said, "notes.txt"));
    assert_non_null(strstr(said, run));
    snprintf(kept, sizeof(kept), "%s/metrics.jsonl", run);
    assert_int_equal(access(kept, F_OK), 0);
    temp_folder_destroy(folder);
}

static void what_is_no_folder_is_not_removed(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), path[512];
    temp_folder_write(folder, "run", "mine", 4);
    snprintf(path, sizeof(path), "%s/run", folder);
    captured_log_begin();
    assert_int_equal(folder_remove_run(path), STATUS_INVALID);
    assert_int_equal(folder_make(path, NULL), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "is a file, not a folder"));
    assert_int_equal(access(path, F_OK), 0);
    temp_folder_destroy(folder);
}

static void a_folder_that_every_user_can_change_is_not_written_to(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), path[512];
    snprintf(path, sizeof(path), "%s/open", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, 0777), 0);
    captured_log_begin();
    assert_int_equal(folder_make(path, "logs"), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "every user of this host"));
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(folder_make(path, "logs"), STATUS_OK);
    temp_folder_destroy(folder);
}

/* What the agent does for a launcher that was killed before it started anybody. */
static void nothing_is_left_of_a_run_that_did_not_begin(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), run[512], path[600];
    struct folder_lock lock;
    snprintf(run, sizeof(run), "%s/run", folder);
    assert_int_equal(folder_lock_take(run, &lock), STATUS_OK);
    assert_int_equal(folder_make(run, "logs"), STATUS_OK);
    snprintf(path, sizeof(path), "%s/" JOB_RESERVE_NAME, run);
    assert_int_equal(mknod(path, S_IFREG | 0600, 0), 0);
    assert_int_equal(folder_make(run, "logs"), STATUS_OK); // another may begin there
    snprintf(path, sizeof(path), "%s/logs/ps-0.log", run); // of one that was killed at once
    assert_int_equal(mknod(path, S_IFREG | 0600, 0), 0);
    folder_lock_path(run, path, sizeof(path));
    folder_remove_lock(path);
    close(lock.fd);
    assert_int_not_equal(access(run, F_OK), 0);
    temp_folder_destroy(folder);
}

static void a_log_with_a_line_in_it_stays(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), path[600];
    assert_int_equal(folder_make(folder, "logs"), STATUS_OK);
    temp_folder_write(folder, "logs/ps-0.log", "no memory\n", 10);
    folder_lock_path(folder, path, sizeof(path));
    folder_remove_lock(path);
    snprintf(path, sizeof(path), "%s/logs/ps-0.log", folder);
    assert_int_equal(access(path, F_OK), 0);
    temp_folder_destroy(folder);
}

static void a_disk_without_room_is_refused(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), path[512], room[600];
    snprintf(path, sizeof(path), "%s/run", folder);
    snprintf(room, sizeof(room), "%s/.room", path);
    captured_log_begin();
    file_limit_begin(16384);
    enum status status = folder_make(path, "logs");
    file_limit_end();
    const char *said = captured_log_end();
    assert_int_equal(status, STATUS_IO);
    assert_non_null(strstr(said, path));
    assert_int_equal(rmdir(path), 0); // nothing is in it
    assert_non_null(strstr(said, "has no room for the files of a run (64 KiB): File too large"));
    assert_int_equal(access(room, F_OK), -1);
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_without_a_result_is_removed),
        cmocka_unit_test(a_folder_with_nothing_but_a_lock_is_empty),
        cmocka_unit_test(a_folder_with_a_file_of_the_users_stays_whole),
        cmocka_unit_test(what_is_no_folder_is_not_removed),
        cmocka_unit_test(a_folder_that_every_user_can_change_is_not_written_to),
        cmocka_unit_test(nothing_is_left_of_a_run_that_did_not_begin),
        cmocka_unit_test(a_log_with_a_line_in_it_stays),
        cmocka_unit_test(a_disk_without_room_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
