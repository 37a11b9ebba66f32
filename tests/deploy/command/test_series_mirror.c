/* Tests of the mirrors of a comparison's or a sweep's runs. */
#include "common/base/folder_lock.h"
#include "deploy/command/series_mirror.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/sample_job.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY "step-000000000007"

static struct job two_workers(const char *mode)
{
    return sample_job_resolved(SAMPLE_JOB(mode, "workers=2"));
}

static struct launcher_options options_with(const char *mirror)
{
    struct launcher_options options = {.out = ""};
    snprintf(options.mirror, sizeof(options.mirror), "%s", mirror);
    return options;
}

static void check_mirror(const char *asked, const struct job *job, const char *expected)
{
    const struct launcher_options options = options_with(asked);
    char mirror[LAUNCH_MIRROR_BYTES];
    series_mirror_of_run(&options, job, "ring-n2", mirror);
    assert_string_equal(mirror, expected);
}

static void each_run_has_a_folder_of_its_own(void **state)
{
    (void)state;
    const struct job ring = two_workers("mode=ring"), local = two_workers("mode=local");
    check_mirror("", &ring, "");
    check_mirror("memory", &ring, "memory");
    check_mirror("/shared/mirrors", &ring, "/shared/mirrors/ring-n2");
    check_mirror("memory", &local, "");
    check_mirror("/shared/mirrors", &local, "");
}

/* Checked with two jobs: what the log says. */
static const char *check(const char *asked, const struct job jobs[2], enum status expected)
{
    const struct launcher_options options = options_with(asked);
    const struct job_list list = {jobs, 2, sizeof(jobs[0])};
    captured_log_begin();
    enum status status = series_mirror_check(&options, &list);
    const char *said = captured_log_end();
    assert_int_equal(status, expected);
    return said;
}

static void a_mirror_needs_one_run_that_can_have_it(void **state)
{
    (void)state;
    const struct job mixed[] = {two_workers("mode=local"), two_workers("mode=ring")};
    const struct job local[] = {mixed[0], mixed[0]};
    check("memory", mixed, STATUS_OK);
    check("/shared/mirrors", mixed, STATUS_OK);
    check("", local, STATUS_OK);
    assert_non_null(strstr(check("memory", local, STATUS_INVALID), "one in mode local has none"));
    assert_non_null(
        strstr(check("mirrors", mixed, STATUS_INVALID), "--mirror mirrors is no absolute path"));
}

static void a_path_that_leaves_no_room_for_names_is_refused(void **state)
{
    (void)state;
    const struct job jobs[] = {two_workers("mode=ring"), two_workers("mode=ps-sync")};
    char folder[sizeof(((struct launcher_options *)0)->mirror)];
    memset(folder, 'a', sizeof(folder) - 1);
    folder[0] = '/';
    folder[sizeof(folder) - 1] = '\0';
    assert_non_null(strstr(check(folder, jobs, STATUS_INVALID), "are left by the names of runs"));
}

/* A run folder and a mirror of these numbers. */
struct series {
    char *folder;
    char run[256], mirror[256];
};

static void make_series(const char *run, const char *owner, struct series *ret_series)
{
    char text[64], path[300];
    struct series *series = ret_series;
    series->folder = temp_folder_create();
    snprintf(series->run, sizeof(series->run), "%s/run", series->folder);
    snprintf(series->mirror, sizeof(series->mirror), "%s/mirror", series->folder);
    snprintf(text, sizeof(text), "{\"run\": \"%s\"}", run);
    temp_folder_write(series->folder, "run/mirror.json", text, strlen(text));
    snprintf(text, sizeof(text), "{\"run\": \"%s\"}", owner);
    temp_folder_write(series->folder, "mirror/mirror.json", text, strlen(text));
    snprintf(path, sizeof(path), "%s/" COPY, series->mirror);
    assert_int_equal(mkdir(path, 0700), 0);
    temp_folder_write(series->mirror, COPY "/manifest.json", "{}", 2);
}

static bool is_there(const char *folder, const char *name)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void what_a_run_has_in_its_mirror_is_removed_with_it(void **state)
{
    (void)state;
    struct series series;
    make_series("17", "17", &series);
    temp_folder_write(series.mirror, FOLDER_LOCK_NAME, "", 0); // of a process that was killed
    assert_int_equal(series_mirror_remove_run(series.run, series.mirror), STATUS_OK);
    assert_int_not_equal(access(series.mirror, F_OK), 0);
    assert_int_not_equal(access(series.run, F_OK), 0);
    temp_folder_destroy(series.folder);
}

static void what_is_of_another_run_or_of_nobody_stays(void **state)
{
    (void)state;
    static const char *const numbers[][2] = {{"17", "18"}, {"", ""}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct series series;
        make_series(numbers[i][0], numbers[i][1], &series);
        assert_int_equal(series_mirror_remove_run(series.run, series.mirror), STATUS_OK);
        assert_true(is_there(series.mirror, COPY "/manifest.json"));
        temp_folder_destroy(series.folder);
    }
}

/* Somebody has copied the run folder: the mirror is that of the one that it names. */
static void what_is_of_the_run_that_a_folder_is_a_copy_of_stays(void **state)
{
    (void)state;
    struct series series;
    char text[600], moved[300];
    make_series("17", "17", &series);
    snprintf(text, sizeof(text), "{\"run\": \"17\", \"other\": \"%s/first\"}", series.folder);
    temp_folder_write(series.folder, "mirror/mirror.json", text, strlen(text));
    temp_folder_write(series.folder, "first/mirror.json", "{\"run\": \"17\"}", 13);
    assert_int_equal(series_mirror_remove_run(series.run, series.mirror), STATUS_OK);
    assert_false(is_there(series.folder, "run"));
    assert_true(is_there(series.mirror, COPY "/manifest.json"));
    // One that was moved has no other.
    snprintf(moved, sizeof(moved), "%s/first", series.folder);
    assert_int_equal(rename(moved, series.run), 0);
    assert_int_equal(series_mirror_remove_run(series.run, series.mirror), STATUS_OK);
    assert_false(is_there(series.folder, "mirror"));
    temp_folder_destroy(series.folder);
}

static void what_no_run_has_written_stays(void **state)
{
    (void)state;
    struct series series;
    make_series("17", "17", &series);
    temp_folder_write(series.mirror, "notes", "", 0);
    assert_int_equal(series_mirror_remove_run(series.run, series.mirror), STATUS_OK);
    assert_true(is_there(series.mirror, "notes"));
    assert_false(is_there(series.mirror, COPY));
    temp_folder_destroy(series.folder);
}

static void a_run_folder_that_stays_keeps_its_mirror(void **state)
{
    (void)state;
    struct series series;
    make_series("17", "17", &series);
    temp_folder_write(series.run, "notes", "", 0);
    captured_log_begin();
    enum status status = series_mirror_remove_run(series.run, series.mirror);
    assert_non_null(strstr(captured_log_end(), "notes, which no run has written"));
    assert_int_equal(status, STATUS_INVALID);
    assert_true(is_there(series.mirror, COPY "/manifest.json"));
    temp_folder_destroy(series.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_run_has_a_folder_of_its_own),
        cmocka_unit_test_teardown(a_mirror_needs_one_run_that_can_have_it, captured_log_drop),
        cmocka_unit_test_teardown(a_path_that_leaves_no_room_for_names_is_refused,
                                  captured_log_drop),
        cmocka_unit_test(what_a_run_has_in_its_mirror_is_removed_with_it),
        cmocka_unit_test(what_is_of_another_run_or_of_nobody_stays),
        cmocka_unit_test(what_is_of_the_run_that_a_folder_is_a_copy_of_stays),
        cmocka_unit_test(what_no_run_has_written_stays),
        cmocka_unit_test_teardown(a_run_folder_that_stays_keeps_its_mirror, captured_log_drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
