/* Tests of a writer that dies: before each of its calls that change a file system, and half way
 * through each that writes bytes.
 *
 * The linker puts our functions in the place of those calls (--wrap). A process that is killed
 * keeps what it wrote in the kernel; what a power failure takes is what was not synced, so the
 * order of syncs and names is tested by itself. */
#include "common/checkpoint/checkpoint_writer.h"
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
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIED_HERE    9
#define UNSYNCED_MAX 64
#define CALLS_MAX    1000

// NOLINTBEGIN(readability-identifier-naming): the linker's names.
int __real_openat64(int folder, const char *name, int flags, ...);
int __real_mkdir(const char *path, mode_t mode);
int __real_mkdirat(int folder, const char *name, mode_t mode);
ssize_t __real_pwrite64(int fd, const void *bytes, size_t size, off_t offset);
int __real_renameat(int from, const char *old, int to, const char *new);
int __real_unlinkat(int folder, const char *name, int flags);

int __wrap_openat64(int folder, const char *name, int flags, ...);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdirat(int folder, const char *name, mode_t mode);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t size, off_t offset);
int __wrap_fsync(int fd);
int __wrap_renameat(int from, const char *old, int to, const char *new);
int __wrap_unlinkat(int folder, const char *name, int flags);
// NOLINTEND(readability-identifier-naming)

/* Calls until the process dies; 0: it does not. */
static uint32_t calls_left;

/* What a power failure would undo: files with bytes, and folders with names. */
static struct {
    bool is_on;
    ino_t unsynced[UNSYNCED_MAX];
    uint32_t unsynced_count;
    bool has_name;           // the checkpoint has got its name
    uint32_t rename_count;   // of all
    uint32_t early_renames;  // before the bytes were on the disk
    uint32_t early_removals; // before the name was
} power;

static bool is_the_last_call(void)
{
    return calls_left > 0 && --calls_left == 0;
}

static void die_if_it_is_time(void)
{
    if (is_the_last_call()) {
        _exit(DIED_HERE);
    }
}

static ino_t inode_of(int fd)
{
    struct stat facts;
    assert_int_equal(fstat(fd, &facts), 0);
    return facts.st_ino;
}

static void note_synced(int fd)
{
    ino_t inode = inode_of(fd);
    for (uint32_t i = 0; i < power.unsynced_count; i++) {
        if (power.unsynced[i] == inode) {
            power.unsynced[i] = power.unsynced[--power.unsynced_count];
            return;
        }
    }
}

static void note_changed(int fd)
{
    if (power.is_on) {
        note_synced(fd); // once is enough
        assert_true(power.unsynced_count < UNSYNCED_MAX);
        power.unsynced[power.unsynced_count++] = inode_of(fd);
    }
}

int __wrap_openat64(int folder, const char *name, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    // NOLINTNEXTLINE(clang-analyzer-valist.*)
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    if ((flags & O_CREAT) != 0) {
        die_if_it_is_time();
        note_changed(folder);
    }
    return __real_openat64(folder, name, flags, mode);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    die_if_it_is_time();
    int result = __real_mkdir(path, mode);
    int folder = open(path, O_RDONLY | O_DIRECTORY);
    int parent = openat(folder, "..", O_RDONLY | O_DIRECTORY);
    note_changed(parent);
    close(parent);
    close(folder);
    return result;
}

int __wrap_mkdirat(int folder, const char *name, mode_t mode)
{
    die_if_it_is_time();
    note_changed(folder);
    return __real_mkdirat(folder, name, mode);
}

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t size, off_t offset)
{
    if (is_the_last_call()) {
        ssize_t half = __real_pwrite64(fd, bytes, size / 2, offset);
        _exit(half >= 0 ? DIED_HERE : EXIT_FAILURE);
    }
    note_changed(fd);
    return __real_pwrite64(fd, bytes, size, offset);
}

int __wrap_fsync(int fd)
{
    die_if_it_is_time();
    note_synced(fd);
    return 0; // nobody cuts the power, and disks are slow
}

int __wrap_renameat(int from, const char *old, int to, const char *new)
{
    die_if_it_is_time();
    if (power.is_on) {
        // The parent's entries may be younger than its last sync; all below must not.
        note_synced(to);
        power.early_renames += power.unsynced_count;
        power.rename_count++;
        power.has_name = true;
        note_changed(to);
    }
    return __real_renameat(from, old, to, new);
}

int __wrap_unlinkat(int folder, const char *name, int flags)
{
    die_if_it_is_time();
    if (power.is_on && power.has_name) {
        power.early_removals += power.unsynced_count;
    }
    return __real_unlinkat(folder, name, flags);
}

/* What is there, what is written then, and what may be the newest whenever that ends early. */
static const struct scenario {
    const char *name;
    uint64_t before[2];
    uint32_t before_count, keep;
    uint64_t step;
    int64_t old;
} scenarios[] = {
    {"the first one", {0}, 0, 1, 100, -1},
    {"the next one", {100, 200}, 2, 2, 300, 200},
    {"the next one, alone", {200}, 1, 1, 300, 200},
    {"the same step", {100}, 1, 1, 100, 100},
    {"the same step and a later one", {100, 300}, 2, 2, 100, 300},
    {"a step back", {100, 300}, 2, 2, 200, 300},
};

#define SCENARIO_COUNT (sizeof(scenarios) / sizeof(scenarios[0]))

static int write_and_die(const struct scenario *scenario, const char *folder, uint32_t call)
{
    struct checkpoint_writer *writer;
    calls_left = call;
    if (checkpoint_writer_open(folder, scenario->keep, &writer) != STATUS_OK ||
        sample_write(writer, scenario->step) != STATUS_OK) {
        return EXIT_FAILURE;
    }
    checkpoint_writer_close(writer);
    return EXIT_SUCCESS;
}

static int run_child(const struct scenario *scenario, const char *folder, uint32_t call)
{
    int result;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(write_and_die(scenario, folder, call));
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    return WEXITSTATUS(result);
}

static uint32_t count_entries(const char *folder)
{
    uint32_t count = 0;
    DIR *stream = opendir(folder);
    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 ? 1 : 0;
    }
    closedir(stream);
    return count;
}

/* True if the writer died, and false if it came to its end before that call. */
static bool check_crash(const struct scenario *scenario, uint32_t call)
{
    char *folder = temp_folder_create();
    sample_write_steps(folder, 2, scenario->before, scenario->before_count);
    int result = run_child(scenario, folder, call);
    assert_true(result == DIED_HERE || result == EXIT_SUCCESS);
    int64_t newest = sample_newest(folder); // asserts that it is whole
    if (newest != scenario->old && newest != (int64_t)scenario->step) {
        fail_msg("%s, call %u: the newest is %lld", scenario->name, call, (long long)newest);
    }
    if (result == EXIT_SUCCESS) {
        assert_int_equal(newest, scenario->step);
    }
    // Whoever goes on finds nothing in the way, and leaves nothing but what is kept.
    sample_write_steps(folder, scenario->keep, (const uint64_t[]){400}, 1);
    assert_int_equal(sample_newest(folder), 400);
    assert_true(count_entries(folder) <= scenario->keep);
    temp_folder_destroy(folder);
    return result == DIED_HERE;
}

static void a_crash_at_any_call_leaves_the_old_or_the_new_one_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < SCENARIO_COUNT; i++) {
        uint32_t call = 1;
        while (call < CALLS_MAX && check_crash(&scenarios[i], call)) {
            call++;
        }
        assert_in_range(call, 20, CALLS_MAX - 1); // it has died, and has come to its end
    }
}

static void a_name_comes_after_the_bytes_and_a_removal_after_the_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < SCENARIO_COUNT; i++) {
        struct checkpoint_writer *writer;
        char *folder = temp_folder_create();
        sample_write_steps(folder, 2, scenarios[i].before, scenarios[i].before_count);
        assert_int_equal(checkpoint_writer_open(folder, 1, &writer), STATUS_OK);
        memset(&power, 0, sizeof(power));
        power.is_on = true;
        enum status status = sample_write(writer, scenarios[i].step);
        power.is_on = false;
        assert_int_equal(status, STATUS_OK);
        assert_true(power.rename_count > 0);
        assert_int_equal(power.early_renames, 0);
        assert_int_equal(power.early_removals, 0);
        checkpoint_writer_close(writer);
        temp_folder_destroy(folder);
    }
}

static void a_folder_that_is_made_lasts_before_what_is_in_it_gets_a_name(void **state)
{
    (void)state;
    char path[PATH_MAX], *folder = temp_folder_create();
    struct checkpoint_writer *writer;
    snprintf(path, sizeof(path), "%s/checkpoint", folder);
    memset(&power, 0, sizeof(power));
    power.is_on = true;
    enum status status = checkpoint_writer_open(path, 1, &writer);
    status = status == STATUS_OK ? sample_write(writer, 100) : status;
    power.is_on = false;
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(power.rename_count, 1);
    assert_int_equal(power.early_renames, 0);
    checkpoint_writer_close(writer);
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crash_at_any_call_leaves_the_old_or_the_new_one_whole),
        cmocka_unit_test(a_name_comes_after_the_bytes_and_a_removal_after_the_name),
        cmocka_unit_test(a_folder_that_is_made_lasts_before_what_is_in_it_gets_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
