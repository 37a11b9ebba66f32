/* Tests of a command's work with its folder, on a disk that hangs. */
#include "common/base/folder_lock.h"
#include "deploy/command/session.h"
#include "deploy/system/process.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct session session;
static atomic_bool hangs;
static atomic_uint asked; // of a disk that hangs
static sem_t thaw;        // nobody posts it: a thread that is given up hangs until the test ends

// NOLINTBEGIN(readability-identifier-naming): the linker's names.
int __real_mkdir(const char *path, mode_t mode);
int __real_unlink(const char *path);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_unlink(const char *path);

static void hang(void)
{
    if (hangs) {
        asked++;
        while (sem_wait(&thaw) != 0) {
        }
    }
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    hang();
    return __real_mkdir(path, mode);
}

int __wrap_unlink(const char *path)
{
    hang();
    return __real_unlink(path);
}
// NOLINTEND(readability-identifier-naming)

static void begin(const char *folder, double fail_s)
{
    memset(&session, 0, sizeof(session));
    session.lock.fd = -1;
    session.disk_warn_s = 1000;
    session.disk_fail_s = fail_s;
    snprintf(session.options.out, sizeof(session.options.out), "%s", folder);
    hangs = false;
    asked = 0;
}

static void a_folder_is_made_and_its_lock_released(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), run[512], path[600];
    snprintf(run, sizeof(run), "%s/a/b", folder);
    begin(run, 60);
    assert_int_equal(folder_lock_take(run, &session.lock), STATUS_OK);
    assert_int_equal(session_make_folder(&session, run, "logs"), STATUS_OK);
    snprintf(path, sizeof(path), "%s/logs", run);
    assert_int_equal(rmdir(path), 0);
    session_close(&session);
    assert_int_equal(access(run, F_OK), -1); // what was made for the lock goes with it
    temp_folder_destroy(folder);
}

static void a_disk_that_makes_no_folder_is_named_once(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), wanted[600];
    begin(folder, 0.5);
    assert_int_equal(folder_lock_take(folder, &session.lock), STATUS_OK);
    hangs = true;
    captured_log_begin();
    assert_int_equal(session_make_folder(&session, folder, "logs"), STATUS_IO);
    const char *log = captured_log_end();
    snprintf(wanted, sizeof(wanted), "the disk hangs: it has not made the run folder %s", folder);
    assert_non_null(strstr(log, wanted));
    assert_int_equal(asked, 1);
    assert_int_equal(session_make_folder(&session, folder, "logs"), STATUS_IO);
    session_close(&session); // nor is it asked to unlock
    assert_int_equal(asked, 1);
    hangs = false;
    temp_folder_destroy(folder);
}

static void ctrl_c_ends_the_wait_for_a_folder(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    sigset_t ending;
    int taken;
    process_ending_signals(&ending);
    assert_int_equal(sigprocmask(SIG_BLOCK, &ending, NULL), 0);
    begin(folder, 1e6);
    hangs = true;
    assert_int_equal(raise(SIGINT), 0);
    assert_int_equal(session_make_folder(&session, folder, "logs"), STATUS_INTERRUPTED);
    assert_int_equal(sigwait(&ending, &taken), 0);
    assert_int_equal(taken, SIGINT);
    session_close(&session);
    hangs = false;
    temp_folder_destroy(folder);
}

static void a_disk_that_does_not_unlock_holds_up_nobody(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), wanted[600];
    begin(folder, 0.5);
    assert_int_equal(folder_lock_take(folder, &session.lock), STATUS_OK);
    hangs = true;
    captured_log_begin();
    session_close(&session);
    snprintf(wanted, sizeof(wanted), "it has not unlocked the run folder %s", folder);
    assert_non_null(strstr(captured_log_end(), wanted));
    assert_int_equal(asked, 1);
    hangs = false;
    temp_folder_destroy(folder);
}

/* The copies go first: what is left of them is known by the run folder alone. */
static void a_disk_that_removes_no_mirror_is_named(void **state)
{
    (void)state;
    static const char owner[] = "{\"run\": \"17\"}";
    char *folder = temp_folder_create(), run[512], mirror[512], wanted[700];
    snprintf(run, sizeof(run), "%s/run", folder);
    snprintf(mirror, sizeof(mirror), "%s/mirror", folder);
    temp_folder_write(folder, "run/mirror.json", owner, strlen(owner));
    temp_folder_write(folder, "mirror/mirror.json", owner, strlen(owner));
    temp_folder_write(mirror, FOLDER_LOCK_NAME, "", 0);
    begin(folder, 0.5);
    hangs = true;
    captured_log_begin();
    assert_int_equal(session_remove_run(&session, run, mirror), STATUS_IO);
    snprintf(wanted, sizeof(wanted),
             "the disk hangs: it has not removed, with its mirror, the run before in %s", run);
    assert_non_null(strstr(captured_log_end(), wanted));
    assert_int_equal(access(run, F_OK), 0);
    begin(folder, 60);
    assert_int_equal(session_remove_run(&session, run, mirror), STATUS_OK);
    assert_int_equal(access(run, F_OK), -1);
    temp_folder_destroy(folder);
}

/* What the kernel holds may hold whoever comes, too. */
static void a_folder_that_the_kernel_holds_is_left_alone(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    begin(folder, 60);
    assert_int_equal(folder_lock_take(folder, &session.lock), STATUS_OK);
    session.launcher.is_folder_held = true;
    hangs = true;
    assert_int_equal(session_make_folder(&session, folder, "logs"), STATUS_IO);
    session_close(&session);
    assert_int_equal(asked, 0);
    hangs = false;
    temp_folder_destroy(folder);
}

static int set_up(void **state)
{
    (void)state;
    return sem_init(&thaw, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_is_made_and_its_lock_released),
        cmocka_unit_test_teardown(a_disk_that_makes_no_folder_is_named_once, captured_log_drop),
        cmocka_unit_test(ctrl_c_ends_the_wait_for_a_folder),
        cmocka_unit_test_teardown(a_disk_that_does_not_unlock_holds_up_nobody, captured_log_drop),
        cmocka_unit_test_teardown(a_disk_that_removes_no_mirror_is_named, captured_log_drop),
        cmocka_unit_test(a_folder_that_the_kernel_holds_is_left_alone),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
