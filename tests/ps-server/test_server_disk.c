/* Tests of a disk that hangs while the coordinator does nothing but wait for it. */
#include "ps-server/checkpoint/beginning.h"
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

/* The disk. */
static atomic_bool hangs;
static sem_t go; // nobody says so: what hangs does so until the process ends

// NOLINTBEGIN(readability-identifier-naming): the linker's names.
int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
FILE *__real_new_file_read(const char *path);
FILE *__wrap_new_file_read(const char *path);
// NOLINTEND(readability-identifier-naming)

static void visit_disk(void)
{
    if (hangs) {
        sem_wait(&go);
    }
}

int __wrap_access(const char *path, int mode)
{
    visit_disk();
    return __real_access(path, mode);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    visit_disk();
    return __real_mkdir(path, mode);
}

FILE *__wrap_new_file_read(const char *path)
{
    visit_disk();
    return __real_new_file_read(path);
}

/* A coordinator by hand, as far as these functions need it. */
struct scene {
    char *top, folder[512];
    struct security security;
    atomic_int is_interrupted;
    struct server_options options;
    struct server server;
};

static void open_scene(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    scene->top = temp_folder_create();
    snprintf(scene->folder, sizeof(scene->folder), "%.400s/run", scene->top);
    struct server *server = &scene->server;
    server->job = sample_job_resolved(
        SAMPLE_JOB("mode=ring", "batch=5", "stall-warn=0.25", "stall-fail=1", NULL));
    scene->options = (struct server_options){.job = &server->job,
                                             .security = &scene->security,
                                             .folder = scene->folder,
                                             .resume = "",
                                             .restarted = "",
                                             .announce_fd = -1,
                                             .launcher_fd = -1,
                                             .is_interrupted = &scene->is_interrupted};
    server->options = &scene->options;
    server->signs.fd = -1;
    sem_init(&go, 0, 0);
    hangs = false;
}

static void close_scene(struct scene *scene)
{
    hangs = false;
    server_release_folder(&scene->server);
    temp_folder_destroy(scene->top);
}

static enum status look_at_past(struct server *server)
{
    server->has_looked = false;
    return server_look_at_past(server);
}

static enum status complete_entry(struct server *server)
{
    struct history_entry entry = {.is_whole = true};
    return server_complete_entry(server, server->options->folder, &entry);
}

static enum status read_beginning(struct server *server)
{
    struct job_part part;
    return server_read_beginning(server, 5, &part);
}

static const struct {
    const char *named;
    enum status (*wait)(struct server *server);
} waits[] = {
    {"locked the run folder", server_hold_folder},
    {"opened the run folder", server_open_record},
    {"given nothing of the run in", look_at_past},
    {"given nothing of the run in", complete_entry},
    {BEGINNING_FILE, read_beginning},
};

static void a_disk_that_hangs_is_named_and_not_waited_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        static struct scene scene; // of which a thread has nothing
        open_scene(&scene);
        scene.options.goes_on = true;
        hangs = true;
        captured_log_begin();
        enum status status = waits[i].wait(&scene.server);
        const char *log = captured_log_end();
        assert_int_equal(status, STATUS_IO);
        assert_non_null(strstr(log, "the disk hangs"));
        assert_non_null(strstr(log, waits[i].named));
        assert_non_null(strstr(log, scene.folder));
        assert_non_null(strstr(log, "look whether it is there"));
        close_scene(&scene);
    }
}

/* As by Ctrl-C of a user who sees what is the matter. */
static void a_signal_ends_the_wait(void **state)
{
    (void)state;
    static struct scene scene;
    open_scene(&scene);
    scene.is_interrupted = 2;
    hangs = true;
    captured_log_begin();
    enum status status = server_hold_folder(&scene.server);
    (void)captured_log_end();
    assert_int_equal(status, STATUS_INTERRUPTED);
    close_scene(&scene);
}

static void the_folder_is_locked_until_it_is_released(void **state)
{
    (void)state;
    static struct scene scene;
    open_scene(&scene);
    assert_int_equal(server_hold_folder(&scene.server), STATUS_OK);
    assert_true(folder_lock_is_held(scene.folder));
    server_release_folder(&scene.server);
    assert_false(folder_lock_is_held(scene.folder));
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_folder_is_locked_until_it_is_released),
        cmocka_unit_test(a_signal_ends_the_wait),
        cmocka_unit_test(a_disk_that_hangs_is_named_and_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
