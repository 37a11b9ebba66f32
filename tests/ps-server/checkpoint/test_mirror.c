/* Tests of the copy of the newest checkpoint in memory that a folder has. */
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/mirror_owner.h"
#include "ps-server/checkpoint/mirror.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/file_limit.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define PATIENCE_MS 600000 // that no test needs
#define FLOATS      4096

static atomic_bool hangs;    // the disk
static sem_t begun, goes_on; // it has something to do; it does it

// NOLINTBEGIN(readability-identifier-naming): the linker's names.
ssize_t __real_pwrite64(int fd, const void *bytes, size_t size, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t size, off_t offset);
// NOLINTEND(readability-identifier-naming)

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t size, off_t offset)
{
    if (hangs) {
        sem_post(&begun);
        sem_wait(&goes_on);
    }
    return __real_pwrite64(fd, bytes, size, offset);
}

/* A run with a mirror, and what was said. */
struct scene {
    char *top, folder[600], run_folder[600];
    struct mirror *mirror;
    struct vault *vault;
    struct coordinator coordinator;
    char said[2048];
    unsigned said_count;
};

static void note_said(void *context, bool is_error, const char *sentence)
{
    struct scene *scene = context;
    (void)is_error;
    snprintf(scene->said, sizeof(scene->said), "%s", sentence);
    scene->said_count++;
}

static void open_scene(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    hangs = false;
    scene->top = temp_folder_create();
    snprintf(scene->folder, sizeof(scene->folder), "%s/mirror", scene->top);
    snprintf(scene->run_folder, sizeof(scene->run_folder), "%s/run", scene->top);
    assert_int_equal(mkdir(scene->run_folder, 0700), 0);
    scene->coordinator.port.context = scene;
    scene->coordinator.port.log = note_said;
    assert_int_equal(vault_create(&scene->vault), STATUS_OK);
}

static void close_scene(struct scene *scene)
{
    assert_true(mirror_destroy(scene->mirror, false, PATIENCE_MS));
    vault_destroy(scene->vault);
    temp_folder_destroy(scene->top);
}

static enum status open_it(struct scene *scene, bool goes_on_there, const char *run)
{
    const struct mirror_options options = {.folder = scene->folder,
                                           .run_folder = scene->run_folder,
                                           .run = run,
                                           .goes_on = goes_on_there,
                                           .wait = {.warn_s = 1, .fail_s = 2}};
    scene->mirror = NULL;
    return mirror_open(&options, &scene->mirror);
}

static void begin(struct scene *scene)
{
    assert_int_equal(open_it(scene, false, ""), STATUS_OK);
    assert_int_equal(mirror_begin(scene->mirror), STATUS_OK);
}

/* The vault has a newer one, each of whose values is `value`. */
static void keep(struct scene *scene, uint64_t step, float value)
{
    static float values[FLOATS];
    const struct wire_piece piece = {.vector = "params", .total = FLOATS};
    const struct message message = {
        .kind = MESSAGE_PIECE, .piece = &piece, .span = {0, FLOATS}, .values = values};
    for (size_t i = 0; i < FLOATS; i++) {
        values[i] = value;
    }
    vault_begin(scene->vault, step);
    assert_int_equal(vault_store(scene->vault, &message), STATUS_OK);
    assert_int_equal(vault_commit(scene->vault, json_pack("{s:I}", "of", (json_int_t)step)),
                     STATUS_OK);
}

/* Until what is being written is done. */
static void settle(struct scene *scene)
{
    do {
        sched_yield();
        mirror_look(scene->mirror, scene->vault, &scene->coordinator, 1);
    } while (scene->coordinator.checkpointing.is_mirroring);
}

static void check_newest(const struct scene *scene, uint64_t step, float value)
{
    char error[512], notes[512];
    float read[FLOATS];
    struct checkpoint_reader *reader;
    assert_int_equal(
        checkpoint_open(scene->folder, &reader, error, sizeof(error), notes, sizeof(notes)),
        STATUS_OK);
    assert_int_equal(checkpoint_step(reader), step);
    assert_int_equal(json_integer_value(json_object_get(checkpoint_job_part(reader), "of")), step);
    assert_int_equal(checkpoint_read(reader, "params", 0, read, sizeof(read)), STATUS_OK);
    assert_true(read[0] == value && read[FLOATS - 1] == value);
    checkpoint_reader_close(reader);
}

static bool is_there(const char *folder)
{
    return access(folder, F_OK) == 0;
}

static void what_memory_has_is_in_the_folder_for_nobody_else(void **state)
{
    (void)state;
    static struct scene scene;
    struct stat facts;
    open_scene(&scene);
    begin(&scene);
    mirror_take(scene.mirror, scene.vault); // nothing is there
    for (uint64_t step = 3; step <= 9; step += 3) {
        keep(&scene, step, (float)step);
        mirror_take(scene.mirror, scene.vault);
        settle(&scene);
        check_newest(&scene, step, (float)step);
    }
    assert_int_equal(stat(scene.folder, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0700);
    assert_int_equal(scene.said_count, 0);
    close_scene(&scene);
}

/* The vault goes on, and has three. */
static void what_is_being_written_is_not_overwritten(void **state)
{
    (void)state;
    static struct scene scene;
    open_scene(&scene);
    begin(&scene);
    sem_init(&begun, 0, 0);
    sem_init(&goes_on, 0, 0);
    hangs = true;
    keep(&scene, 3, 3);
    mirror_take(scene.mirror, scene.vault);
    sem_wait(&begun);
    mirror_look(scene.mirror, scene.vault, &scene.coordinator, 1);
    assert_true(scene.coordinator.checkpointing.is_mirroring);
    for (uint64_t step = 4; step <= 8; step++) {
        keep(&scene, step, (float)step);
        mirror_take(scene.mirror, scene.vault);
    }
    hangs = false;
    sem_post(&goes_on);
    settle(&scene);
    check_newest(&scene, 3, 3);
    assert_int_equal(vault_step(scene.vault), 8);
    mirror_take(scene.mirror, scene.vault);
    settle(&scene);
    check_newest(&scene, 8, 8);
    close_scene(&scene);
}

static void a_disk_that_hangs_is_named_once_and_nobody_waits_for_it(void **state)
{
    (void)state;
    static struct scene scene;
    open_scene(&scene);
    begin(&scene);
    sem_init(&begun, 0, 0);
    sem_init(&goes_on, 0, 0);
    hangs = true;
    keep(&scene, 3, 3);
    mirror_take(scene.mirror, scene.vault);
    sem_wait(&begun);
    for (uint64_t now_ms = 100; now_ms <= 1100; now_ms += 100) {
        mirror_look(scene.mirror, scene.vault, &scene.coordinator, now_ms);
    }
    assert_int_equal(scene.said_count, 1);
    assert_non_null(strstr(scene.said, "training goes on meanwhile"));
    assert_true(scene.coordinator.checkpointing.is_mirroring);
    for (uint64_t now_ms = 1200; now_ms <= 4000; now_ms += 100) {
        mirror_look(scene.mirror, scene.vault, &scene.coordinator, now_ms);
    }
    assert_int_equal(scene.said_count, 2);
    assert_non_null(strstr(scene.said, "the disk hangs"));
    assert_non_null(strstr(scene.said, scene.folder));
    assert_false(scene.coordinator.checkpointing.is_mirroring); // copies go on in memory
    hangs = false;
    sem_post(&goes_on);
    while (scene.said_count == 2) {
        sched_yield();
        mirror_look(scene.mirror, scene.vault, &scene.coordinator, 4100);
    }
    assert_non_null(strstr(scene.said, "takes copies again: it has step 3"));
    close_scene(&scene);
}

static void a_full_disk_is_named_once_and_that_it_has_room_again(void **state)
{
    (void)state;
    static struct scene scene;
    open_scene(&scene);
    begin(&scene);
    keep(&scene, 3, 3);
    mirror_take(scene.mirror, scene.vault);
    settle(&scene);
    keep(&scene, 4, 4);
    file_limit_begin(FLOATS);
    for (int i = 0; i < 3; i++) {
        mirror_take(scene.mirror, scene.vault);
        settle(&scene);
    }
    file_limit_end();
    assert_int_equal(scene.said_count, 1);
    assert_non_null(strstr(scene.said, "the mirror has no copy of step 4: cannot write"));
    assert_non_null(strstr(scene.said, "training goes on, and the last good one is of step 3"));
    check_newest(&scene, 3, 3);
    keep(&scene, 7, 7);
    mirror_take(scene.mirror, scene.vault);
    settle(&scene);
    assert_int_equal(scene.said_count, 2);
    assert_non_null(strstr(scene.said, "takes copies again: it has step 7"));
    check_newest(&scene, 7, 7);
    close_scene(&scene);
}

/* A mirror of step 5, whose run was lost. */
static void leave_mirror(struct scene *scene)
{
    open_scene(scene);
    begin(scene);
    keep(scene, 5, 5);
    mirror_take(scene->mirror, scene->vault);
    assert_true(mirror_destroy(scene->mirror, false, PATIENCE_MS));
    scene->mirror = NULL;
}

static void the_run_that_goes_on_finds_its_own(void **state)
{
    (void)state;
    static struct scene scene;
    leave_mirror(&scene);
    assert_int_equal(open_it(&scene, true, "another number"), STATUS_OK); // the run knows its own
    assert_true(mirror_is_of_run(scene.mirror));
    assert_int_equal(mirror_begin(scene.mirror), STATUS_OK);
    check_newest(&scene, 5, 5);
    close_scene(&scene);
}

/* Another program may have taken the room since. */
static void the_run_goes_on_from_its_own_where_the_disk_is_full(void **state)
{
    (void)state;
    static struct scene scene;
    leave_mirror(&scene);
    file_limit_begin(1);
    enum status opened = open_it(&scene, true, "");
    enum status begun_status = opened == STATUS_OK ? mirror_begin(scene.mirror) : opened;
    file_limit_end();
    assert_int_equal(opened, STATUS_OK);
    assert_int_equal(begun_status, STATUS_OK);
    assert_true(mirror_is_of_run(scene.mirror));
    check_newest(&scene, 5, 5);
    close_scene(&scene);
}

static void one_of_an_earlier_run_in_the_same_folder_is_refused_and_stays(void **state)
{
    (void)state;
    static struct scene scene;
    char path[700];
    leave_mirror(&scene);
    captured_log_begin();
    assert_int_equal(open_it(&scene, false, ""), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "of this very run, from which --resume auto"));
    snprintf(path, sizeof(path), "%s/" MIRROR_FILE, scene.run_folder);
    assert_int_equal(unlink(path), 0); // the run folder is a new one
    captured_log_begin();
    assert_int_equal(open_it(&scene, false, ""), STATUS_INVALID);
    const char *log = captured_log_end();
    assert_non_null(strstr(log, "has old copies"));
    assert_non_null(strstr(log, scene.run_folder));
    check_newest(&scene, 5, 5);
    close_scene(&scene);
}

static void one_of_another_run_is_refused_and_stays(void **state)
{
    (void)state;
    static struct scene scene;
    leave_mirror(&scene);
    snprintf(scene.run_folder, sizeof(scene.run_folder), "%s/other", scene.top);
    assert_int_equal(mkdir(scene.run_folder, 0700), 0);
    captured_log_begin();
    assert_int_equal(open_it(&scene, true, ""), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "has copies of another run"));
    check_newest(&scene, 5, 5);
    close_scene(&scene);
}

/* Its host was lost, and its run folder with it: the launcher knows the number. */
static void a_launcher_finds_its_own_from_another_run_folder(void **state)
{
    (void)state;
    static struct scene scene;
    open_scene(&scene);
    assert_int_equal(open_it(&scene, false, "abc"), STATUS_OK);
    assert_int_equal(mirror_begin(scene.mirror), STATUS_OK);
    keep(&scene, 5, 5);
    mirror_take(scene.mirror, scene.vault);
    assert_true(mirror_destroy(scene.mirror, false, PATIENCE_MS));
    snprintf(scene.run_folder, sizeof(scene.run_folder), "%s/other", scene.top);
    assert_int_equal(mkdir(scene.run_folder, 0700), 0);
    assert_int_equal(open_it(&scene, true, "abc"), STATUS_OK);
    assert_true(mirror_is_of_run(scene.mirror));
    close_scene(&scene);
}

static void a_run_that_went_on_without_its_mirror_does_not_take_it_later(void **state)
{
    (void)state;
    static struct scene scene;
    leave_mirror(&scene);
    mirror_owner_forget(strdup(scene.run_folder));
    captured_log_begin();
    assert_int_equal(open_it(&scene, true, ""), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "has old copies"));
    close_scene(&scene);
}

/* What the first has is stale by then. */
static void a_run_that_went_on_with_another_mirror_does_not_take_the_first_later(void **state)
{
    (void)state;
    static struct scene scene;
    char first[600];
    leave_mirror(&scene);
    snprintf(first, sizeof(first), "%s", scene.folder);
    snprintf(scene.folder, sizeof(scene.folder), "%s/second", scene.top);
    assert_int_equal(open_it(&scene, true, ""), STATUS_OK);
    assert_false(mirror_is_of_run(scene.mirror));
    assert_int_equal(mirror_begin(scene.mirror), STATUS_OK);
    assert_true(mirror_destroy(scene.mirror, false, PATIENCE_MS));
    snprintf(scene.folder, sizeof(scene.folder), "%s", first);
    captured_log_begin();
    assert_int_equal(open_it(&scene, true, ""), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "has old copies"));
    close_scene(&scene);
}

static void one_that_is_in_use_is_refused(void **state)
{
    (void)state;
    static struct scene scene;
    open_scene(&scene);
    begin(&scene);
    struct mirror *first = scene.mirror;
    captured_log_begin();
    assert_int_equal(open_it(&scene, false, ""), STATUS_TIMED_OUT);
    assert_non_null(strstr(captured_log_end(), "is in use by another job"));
    scene.mirror = first;
    close_scene(&scene);
}

static void that_of_a_completed_job_is_removed(void **state)
{
    (void)state;
    static struct scene scene;
    char path[700];
    leave_mirror(&scene);
    assert_int_equal(open_it(&scene, true, ""), STATUS_OK);
    assert_int_equal(mirror_begin(scene.mirror), STATUS_OK);
    keep(&scene, 9, 9);
    mirror_take(scene.mirror, scene.vault);
    assert_true(mirror_destroy(scene.mirror, true, PATIENCE_MS));
    scene.mirror = NULL;
    assert_false(is_there(scene.folder)); // which was made for it
    snprintf(path, sizeof(path), "%s/" MIRROR_FILE, scene.run_folder);
    assert_false(is_there(path));
    close_scene(&scene);
}

static void a_folder_that_somebody_has_made_stays(void **state)
{
    (void)state;
    static struct scene scene;
    open_scene(&scene);
    assert_int_equal(mkdir(scene.folder, 0700), 0);
    begin(&scene);
    keep(&scene, 9, 9);
    mirror_take(scene.mirror, scene.vault);
    assert_true(mirror_destroy(scene.mirror, true, PATIENCE_MS));
    scene.mirror = NULL;
    assert_int_equal(rmdir(scene.folder), 0); // with nothing in it
    close_scene(&scene);
}

static void a_folder_that_cannot_be_made_is_an_error(void **state)
{
    (void)state;
    static struct scene scene;
    open_scene(&scene);
    temp_folder_write(scene.top, "mirror", "x", 1);
    captured_log_begin();
    assert_int_not_equal(open_it(&scene, false, ""), STATUS_OK);
    assert_non_null(strstr(captured_log_end(), scene.folder));
    close_scene(&scene);
}

/* Whoever may change it would say where copies go. */
static void a_link_to_a_folder_is_refused_by_name(void **state)
{
    (void)state;
    static struct scene scene;
    char path[700];
    open_scene(&scene);
    assert_int_equal(symlink(scene.run_folder, scene.folder), 0);
    captured_log_begin();
    assert_int_equal(open_it(&scene, false, ""), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "is a symbolic link"));
    snprintf(path, sizeof(path), "%s/.ringside.lock", scene.run_folder);
    assert_false(is_there(path)); // nothing is left where it leads to
    close_scene(&scene);
}

static void the_folder_of_the_runs_checkpoints_is_refused(void **state)
{
    (void)state;
    static struct scene scene;
    open_scene(&scene);
    snprintf(scene.folder, sizeof(scene.folder), "%s/run/../run/checkpoint", scene.top);
    captured_log_begin();
    assert_int_equal(open_it(&scene, false, ""), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "is where the run has its checkpoints"));
    assert_false(is_there(scene.folder)); // it was made, and is gone
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_memory_has_is_in_the_folder_for_nobody_else),
        cmocka_unit_test(what_is_being_written_is_not_overwritten),
        cmocka_unit_test(a_disk_that_hangs_is_named_once_and_nobody_waits_for_it),
        cmocka_unit_test(a_full_disk_is_named_once_and_that_it_has_room_again),
        cmocka_unit_test(the_run_that_goes_on_finds_its_own),
        cmocka_unit_test(the_run_goes_on_from_its_own_where_the_disk_is_full),
        cmocka_unit_test_teardown(one_of_an_earlier_run_in_the_same_folder_is_refused_and_stays,
                                  captured_log_drop),
        cmocka_unit_test_teardown(one_of_another_run_is_refused_and_stays, captured_log_drop),
        cmocka_unit_test(a_launcher_finds_its_own_from_another_run_folder),
        cmocka_unit_test_teardown(a_run_that_went_on_without_its_mirror_does_not_take_it_later,
                                  captured_log_drop),
        cmocka_unit_test_teardown(
            a_run_that_went_on_with_another_mirror_does_not_take_the_first_later,
            captured_log_drop),
        cmocka_unit_test_teardown(one_that_is_in_use_is_refused, captured_log_drop),
        cmocka_unit_test(that_of_a_completed_job_is_removed),
        cmocka_unit_test(a_folder_that_somebody_has_made_stays),
        cmocka_unit_test_teardown(a_folder_that_cannot_be_made_is_an_error, captured_log_drop),
        cmocka_unit_test_teardown(the_folder_of_the_runs_checkpoints_is_refused, captured_log_drop),
        cmocka_unit_test_teardown(a_link_to_a_folder_is_refused_by_name, captured_log_drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
