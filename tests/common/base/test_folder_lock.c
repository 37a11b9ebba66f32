/* Tests of the lock of a folder. */
#include "common/base/folder_lock.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int set_up(void **state)
{
    *state = temp_folder_create();
    return 0;
}

static int tear_down(void **state)
{
    temp_folder_destroy(*state);
    return 0;
}

static void take(const char *folder, struct folder_lock *lock)
{
    assert_int_equal(folder_lock_take(folder, lock), STATUS_OK);
}

static void a_folder_that_is_held_is_refused_and_its_holder_named(void **state)
{
    struct folder_lock lock, other;
    char host[65] = "", expected[160];
    take(*state, &lock);
    captured_log_begin();
    assert_int_equal(folder_lock_take(*state, &other), STATUS_TIMED_OUT);
    const char *said = captured_log_end();
    gethostname(host, sizeof(host) - 1);
    snprintf(expected, sizeof(expected), "(host %s, pid %ld, since 20", host, (long)getpid());
    if (strstr(said, expected) == NULL || strstr(said, "--out") == NULL) {
        fail_msg("'%s' is not in: %s", expected, said);
    }
    folder_lock_release(&lock);
    take(*state, &lock);
    folder_lock_release(&lock);
}

static void a_lock_leaves_nothing_behind(void **state)
{
    struct folder_lock lock;
    char folder[4096], above[4096];
    snprintf(above, sizeof(above), "%.1000s/a", (const char *)*state);
    snprintf(folder, sizeof(folder), "%.1010s/b/c", above);
    take(folder, &lock);
    assert_int_equal(access(folder, F_OK), 0);
    folder_lock_release(&lock);
    assert_int_not_equal(access(above, F_OK), 0);
    assert_int_equal(access(*state, F_OK), 0);
}

/* What the agent does for a launcher that was killed. */
static void what_a_killed_holder_has_made_is_removed(void **state)
{
    struct folder_lock lock;
    char folder[4096], above[4096], path[4200];
    snprintf(above, sizeof(above), "%.1000s/a", (const char *)*state);
    snprintf(folder, sizeof(folder), "%.1010s/b", above);
    for (unsigned is_ours = 0; is_ours < 2; is_ours++) {
        if (is_ours == 0) {
            assert_int_equal(mkdir(above, 0700), 0); // by somebody else
        }
        take(folder, &lock);
        folder_lock_path(folder, path, sizeof(path));
        folder_lock_remove_left(path);
        close(lock.fd);
        assert_int_not_equal(access(folder, F_OK), 0);
        assert_int_equal(access(above, F_OK) == 0, is_ours == 0);
        rmdir(above);
    }
}

static void a_folder_with_something_in_it_stays(void **state)
{
    struct folder_lock lock;
    char folder[4096], path[4200];
    snprintf(folder, sizeof(folder), "%.1000s/out/", (const char *)*state);
    take(folder, &lock);
    temp_folder_write(folder, "summary.json", "{}", 2);
    folder_lock_release(&lock);
    snprintf(path, sizeof(path), "%s/summary.json", folder);
    assert_int_equal(access(path, F_OK), 0);
    snprintf(path, sizeof(path), "%s/" FOLDER_LOCK_NAME, folder);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void the_lock_of_a_process_that_was_killed_is_free(void **state)
{
    struct folder_lock lock;
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(folder_lock_take(*state, &lock) != STATUS_OK || write(ready[1], "", 1) != 1 ||
              pause() != 0);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    captured_log_begin();
    assert_int_equal(folder_lock_take(*state, &lock), STATUS_TIMED_OUT);
    captured_log_end();
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    take(*state, &lock);
    folder_lock_release(&lock);
}

#define LOCK_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCK_TEST(a_folder_that_is_held_is_refused_and_its_holder_named),
        LOCK_TEST(a_lock_leaves_nothing_behind),
        LOCK_TEST(what_a_killed_holder_has_made_is_removed),
        LOCK_TEST(a_folder_with_something_in_it_stays),
        LOCK_TEST(the_lock_of_a_process_that_was_killed_is_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
