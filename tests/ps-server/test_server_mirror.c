/* Tests of a mirror that cannot be used: it is refused before the job, and left by one that is
 * under way. */
#include "common/base/folder_lock.h"
#include "common/base/signals.h"
#include "common/checkpoint/mirror_owner.h"
#include "ps-server/checkpoint/mirror.h"
#include "ps-server/server_state.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/sample_job.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NUMBER   "the number that the launcher knows"
#define COPY     "step-000000000005"
#define GOING_ON "the job goes on without --mirror"

static atomic_bool hangs; // the disk of the mirror
static sem_t go;          // nobody says so: what hangs does so until the process ends

// NOLINTBEGIN(readability-identifier-naming): the linker's names.
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
// NOLINTEND(readability-identifier-naming)

int __wrap_mkdir(const char *path, mode_t mode)
{
    if (hangs && strstr(path, "/mirror") != NULL) {
        sem_wait(&go);
    }
    return __real_mkdir(path, mode);
}

/* A coordinator by hand, as far as these functions need it. */
struct scene {
    char *top, run_folder[512], folder[512];
    struct security security;
    atomic_int is_interrupted;
    struct server_options options;
    struct server server;
};

/* Its job is of a launcher, whose run folder is there. */
static void open_scene(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    scene->top = temp_folder_create();
    snprintf(scene->run_folder, sizeof(scene->run_folder), "%.400s/run", scene->top);
    snprintf(scene->folder, sizeof(scene->folder), "%.400s/mirror", scene->top);
    assert_int_equal(mkdir(scene->run_folder, 0700), 0);
    struct server *server = &scene->server;
    server->job = sample_job_resolved(
        SAMPLE_JOB("mode=ring", "batch=5", "stall-warn=0.25", "stall-fail=1", NULL));
    scene->options = (struct server_options){.job = &server->job,
                                             .security = &scene->security,
                                             .folder = scene->run_folder,
                                             .resume = "",
                                             .mirror = scene->folder,
                                             .run = NUMBER,
                                             .restarted = "",
                                             .announce_fd = -1,
                                             .launcher_fd = -1,
                                             .is_interrupted = &scene->is_interrupted};
    server->options = &scene->options;
    server->signs.fd = -1;
    hangs = false;
}

static void close_scene(struct scene *scene)
{
    hangs = false;
    server_end_mirror(&scene->server, false);
    temp_folder_destroy(scene->top);
}

/* The coordinator of before was lost: this one is started in its place. */
static void restart(struct scene *scene)
{
    server_end_mirror(&scene->server, false);
    scene->server.mirror = NULL;
    scene->server.has_left_mirror = scene->server.has_disk_failed = false;
    scene->options.goes_on = true;
    scene->options.restarted = "it was killed";
}

static void join(const struct scene *scene, const char *name, char ret_path[700])
{
    snprintf(ret_path, 700, "%s/%s", scene->folder, name);
}

/* The mirror has a copy of the run. */
static void leave_copy(struct scene *scene)
{
    char path[700];
    struct mirror_owner owner = {.run = NUMBER};
    assert_int_equal(mkdir(scene->folder, 0700), 0);
    join(scene, COPY, path);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(owner.other, sizeof(owner.other), "%s", scene->run_folder);
    assert_int_equal(mirror_owner_write(scene->folder, &owner), STATUS_OK);
    snprintf(owner.other, sizeof(owner.other), "%s", scene->folder);
    assert_int_equal(mirror_owner_write(scene->run_folder, &owner), STATUS_OK);
    restart(scene);
}

static void check_copy(const struct scene *scene)
{
    char path[700];
    join(scene, COPY, path);
    assert_int_equal(access(path, F_OK), 0);
}

/* Whether the run may be known by the number to the mirror. */
static bool has_number(const char *folder)
{
    struct mirror_owner owner;
    assert_int_equal(mirror_owner_read(folder, &owner), STATUS_OK);
    return strcmp(owner.run, NUMBER) == 0;
}

/* The coordinator goes on without, and has said `why`. */
static void expect_left(struct scene *scene, const char *why)
{
    captured_log_begin();
    enum status status = server_open_mirror(&scene->server);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_OK);
    assert_non_null(strstr(log, why));
    assert_non_null(strstr(log, GOING_ON));
    assert_non_null(strstr(strstr(log, GOING_ON), scene->folder));
    assert_false(server_may_use_mirror(&scene->server));
    assert_false(has_number(scene->run_folder));
    assert_int_equal(server_begin_mirror(&scene->server), STATUS_OK);
    assert_false(has_number(scene->run_folder));
}

static void a_mirror_that_cannot_be_used_is_refused_before_the_job(void **state)
{
    (void)state;
    static struct scene scene;
    open_scene(&scene);
    temp_folder_write(scene.top, "mirror", "x", 1);
    captured_log_begin();
    enum status status = server_open_mirror(&scene.server);
    assert_null(strstr(captured_log_end(), GOING_ON));
    assert_int_not_equal(status, STATUS_OK);
    scene.options.goes_on = true; // by hand, whoever does that can repair the folder first
    captured_log_begin();
    assert_int_not_equal(server_open_mirror(&scene.server), STATUS_OK);
    (void)captured_log_end();
    close_scene(&scene);
}

/* Its launcher starts a coordinator again that was lost (75), and the next one would leave the
 * mirror. */
static void a_mirror_in_use_ends_a_job_that_a_launcher_begins(void **state)
{
    (void)state;
    static struct scene scene;
    struct folder_lock lock;
    open_scene(&scene);
    assert_int_equal(folder_lock_take(scene.folder, &lock), STATUS_OK);
    captured_log_begin();
    enum status by_hand = server_open_mirror(&scene.server);
    scene.options.launcher_fd = STDIN_FILENO;
    enum status launched = server_open_mirror(&scene.server);
    (void)captured_log_end();
    scene.options.launcher_fd = -1;
    assert_int_equal(exit_code_of_member(by_hand), EXIT_LOST);
    assert_int_equal(exit_code_of_member(launched), EXIT_FAILED);
    folder_lock_release(&lock);
    close_scene(&scene);
}

static void a_mirror_that_is_the_run_folder_is_refused_by_name(void **state)
{
    (void)state;
    static struct scene scene;
    struct folder_lock lock;
    open_scene(&scene);
    scene.options.mirror = scene.run_folder;
    assert_int_equal(folder_lock_take(scene.run_folder, &lock), STATUS_OK); // the launcher's
    captured_log_begin();
    enum status status = server_open_mirror(&scene.server);
    assert_non_null(strstr(captured_log_end(), "/run is the run folder: name another folder"));
    assert_int_equal(status, STATUS_INVALID);
    folder_lock_release(&lock);
    close_scene(&scene);
}

static void a_mirror_that_cannot_be_used_any_more_is_left(void **state)
{
    (void)state;
    static struct scene scene;
    open_scene(&scene);
    restart(&scene);
    temp_folder_write(scene.top, "mirror", "x", 1);
    expect_left(&scene, "/mirror/");
    close_scene(&scene);
}

static void a_mirror_whose_disk_hangs_is_left_in_time(void **state)
{
    (void)state;
    static struct scene scene; // of which a thread has nothing
    open_scene(&scene);
    sem_init(&go, 0, 0);
    hangs = true;
    captured_log_begin();
    enum status status = server_open_mirror(&scene.server);
    (void)captured_log_end();
    assert_int_equal(status, STATUS_IO); // a job that begins
    restart(&scene);
    expect_left(&scene, "the disk hangs: it has given nothing of the mirror in");
    assert_false(scene.server.has_disk_failed); // that of the run folder
    close_scene(&scene);
}

/* Which is sooner than a disk has to answer otherwise. */
static void a_mirror_whose_disk_hangs_is_left_before_members_give_up(void **state)
{
    (void)state;
    static struct scene scene; // of which a thread has nothing
    open_scene(&scene);
    sem_init(&go, 0, 0);
    hangs = true;
    scene.server.job.stall_fail = 7200;
    scene.server.job.outlast = 2;
    restart(&scene);
    expect_left(&scene, "the disk hangs: it has given nothing of the mirror in");
    close_scene(&scene);
}

/* Its copies are older than what the run has become meanwhile. */
static void copies_of_one_that_was_left_are_never_taken(void **state)
{
    (void)state;
    static struct scene scene;
    char aside[700];
    open_scene(&scene);
    leave_copy(&scene);
    assert_int_equal(server_open_mirror(&scene.server), STATUS_OK);
    assert_true(server_may_use_mirror(&scene.server)); // so far they are the newest
    restart(&scene);
    snprintf(aside, sizeof(aside), "%s/aside", scene.top);
    assert_int_equal(rename(scene.folder, aside), 0);
    temp_folder_write(scene.top, "mirror", "x", 1);
    expect_left(&scene, "/mirror/");
    assert_int_equal(unlink(scene.folder), 0);
    assert_int_equal(rename(aside, scene.folder), 0);
    for (int i = 0; i < 2; i++) {
        restart(&scene);
        expect_left(&scene, "has old copies");
        check_copy(&scene);
    }
    close_scene(&scene);
}

/* Somebody has removed it, and it is taken anew: not by the number that its copies have. */
static void a_mirror_that_begins_anew_has_another_number(void **state)
{
    (void)state;
    static struct scene scene;
    char aside[700];
    open_scene(&scene);
    leave_copy(&scene);
    snprintf(aside, sizeof(aside), "%s/aside", scene.top);
    assert_int_equal(rename(scene.folder, aside), 0);
    assert_int_equal(server_open_mirror(&scene.server), STATUS_OK);
    assert_false(server_may_use_mirror(&scene.server));
    assert_int_equal(server_begin_mirror(&scene.server), STATUS_OK);
    assert_false(has_number(scene.folder));
    assert_false(has_number(scene.run_folder));
    restart(&scene);
    assert_int_equal(server_open_mirror(&scene.server), STATUS_OK); // its own
    restart(&scene);
    temp_folder_destroy(strdup(scene.folder));
    assert_int_equal(rename(aside, scene.folder), 0);
    expect_left(&scene, "has old copies");
    check_copy(&scene);
    close_scene(&scene);
}

static void a_mirror_that_another_job_uses_stays_that_jobs(void **state)
{
    (void)state;
    static struct scene scene;
    struct folder_lock lock;
    open_scene(&scene);
    leave_copy(&scene);
    assert_int_equal(folder_lock_take(scene.folder, &lock), STATUS_OK);
    expect_left(&scene, "is in use by another job");
    assert_true(folder_lock_is_held(scene.folder));
    assert_true(has_number(scene.folder));
    check_copy(&scene);
    folder_lock_release(&lock);
    close_scene(&scene);
}

static void a_mirror_that_takes_nothing_when_the_job_goes_on_is_left(void **state)
{
    (void)state;
    static struct scene scene;
    char path[700];
    open_scene(&scene);
    restart(&scene);
    assert_int_equal(server_open_mirror(&scene.server), STATUS_OK);
    join(&scene, MIRROR_FILE ".part", path);
    assert_int_equal(mkdir(path, 0700), 0);
    join(&scene, MIRROR_FILE ".part/x", path);
    assert_int_equal(mkdir(path, 0700), 0); // so nothing takes its place
    captured_log_begin();
    enum status status = server_begin_mirror(&scene.server);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_OK);
    assert_non_null(strstr(log, "cannot write"));
    assert_non_null(strstr(log, GOING_ON));
    assert_false(server_may_use_mirror(&scene.server));
    assert_false(has_number(scene.run_folder));
    close_scene(&scene);
}

/* Nobody would know that the copies are old. */
static void a_run_folder_that_cannot_say_so_ends_the_job(void **state)
{
    (void)state;
    static struct scene scene;
    char path[700];
    open_scene(&scene);
    restart(&scene);
    temp_folder_write(scene.top, "mirror", "x", 1);
    snprintf(path, sizeof(path), "%s/" MIRROR_FILE ".part", scene.run_folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/" MIRROR_FILE ".part/x", scene.run_folder);
    assert_int_equal(mkdir(path, 0700), 0);
    captured_log_begin();
    enum status status = server_open_mirror(&scene.server);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_IO);
    assert_non_null(strstr(log, "would be known to be old"));
    assert_null(strstr(log, GOING_ON));
    close_scene(&scene);
}

#define MIRROR_TEST(function) cmocka_unit_test_teardown(function, captured_log_drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MIRROR_TEST(a_mirror_that_cannot_be_used_is_refused_before_the_job),
        MIRROR_TEST(a_mirror_in_use_ends_a_job_that_a_launcher_begins),
        MIRROR_TEST(a_mirror_that_is_the_run_folder_is_refused_by_name),
        MIRROR_TEST(a_mirror_that_cannot_be_used_any_more_is_left),
        MIRROR_TEST(a_mirror_whose_disk_hangs_is_left_in_time),
        MIRROR_TEST(a_mirror_whose_disk_hangs_is_left_before_members_give_up),
        MIRROR_TEST(copies_of_one_that_was_left_are_never_taken),
        MIRROR_TEST(a_mirror_that_begins_anew_has_another_number),
        MIRROR_TEST(a_mirror_that_another_job_uses_stays_that_jobs),
        MIRROR_TEST(a_mirror_that_takes_nothing_when_the_job_goes_on_is_left),
        MIRROR_TEST(a_run_folder_that_cannot_say_so_ends_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
