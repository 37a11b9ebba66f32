/* Tests of decoded images that are kept, beside processes that are killed and disks that are full.
 */
#include "tests/support/common/captured_log.h"
#include "tests/support/common/file_limit.h"
#include "tests/support/data/counted.h"
#include "worker/data/cached.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIDE  16
#define PLACE 832 // of an image of that size

// Of which a process can be killed in the middle.
#define LARGE_SIDE  400
#define LARGE_BYTES ((size_t)3 * LARGE_SIDE * LARGE_SIDE)
#define KILLS       12

/* Decodes and keeps images until it is killed, and says each time that it begins one. The last
 * comes first: one that is torn is then not at the end of the file, which would show it by its
 * size. */
static void keep_until_killed(struct counted_bench *bench, const struct cached_options *options,
                              uint8_t salt, int told)
{
    struct dataset *dataset = counted_open(bench, *options, counted_make(bench, LARGE_SIDE, salt));
    uint8_t *bytes = malloc(LARGE_BYTES);
    for (uint64_t i = 0; bytes != NULL; i++) {
        uint32_t label;
        if (write(told, "", 1) != 1 ||
            dataset_read_bytes(dataset, COUNTED_SAMPLES - 1 - i % COUNTED_SAMPLES, bytes, &label) !=
                STATUS_OK) {
            break;
        }
    }
    _exit(1);
}

/* A process is killed while it writes, at another image each time; one that reads meanwhile, and
 * afterwards, has the right pixels. */
static void check_kill(struct counted_bench *bench, enum cached_place place, uint8_t round)
{
    const struct cached_options options = {.place = place, .budget = (uint64_t)64 << 20};
    int told[2], ended;
    char bytes[COUNTED_SAMPLES];
    assert_int_equal(pipe2(told, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        keep_until_killed(bench, &options, round, told[1]);
    }
    close(told[1]);
    struct dataset *other = counted_open(bench, options, counted_make(bench, LARGE_SIDE, round));
    for (ssize_t begun = 0, got = 1; begun <= round % COUNTED_SAMPLES && got > 0; begun += got) {
        got = read(told[0], bytes, 1);
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_true(counted_read_right(other, round));
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL);
    close(told[0]);
    assert_true(counted_read_right(other, round));
    memset(bench->reads, 0, sizeof(bench->reads));
    assert_true(counted_read_right(other, round));
    assert_int_equal(counted_total(bench), 0); // what was torn is whole again
    dataset_close(other);
    char path[512];
    counted_find_file(bench, path);
    assert_true((path[0] == '\0') == (place == CACHED_IN_MEMORY));
    if (path[0] != '\0') {
        assert_int_equal(unlink(path), 0);
    }
}

static void a_process_that_is_killed_while_it_writes_leaves_no_wrong_pixels(void **state)
{
    for (uint8_t round = 0; round < KILLS; round++) {
        check_kill(*state, round % 2 == 0 ? CACHED_IN_MEMORY : CACHED_ON_DISK, round);
    }
}

/* No file may become longer: the write that reaches the limit is cut, and the next one fails. */
static void a_disk_that_is_full_costs_time_alone(void **state)
{
    struct counted_bench *bench = *state;
    const struct cached_options options = {.place = CACHED_ON_DISK, .budget = 1 << 20};
    struct dataset *dataset = counted_open(bench, options, counted_make(bench, SIDE, 0));
    captured_log_begin();
    file_limit_begin(9 * PLACE + 500);
    bool is_right = counted_read_right(dataset, 0);
    bool is_right_again = counted_read_right(dataset, 0);
    file_limit_end();
    const char *log = captured_log_end();
    assert_true(is_right && is_right_again);
    const char *told = strstr(log, "no more images are kept (--cache)");
    assert_non_null(told);
    assert_null(strstr(told + 1, "no more images are kept")); // once
    assert_int_equal(bench->reads[8], 1);
    assert_int_equal(bench->reads[9], 2); // which was cut
    assert_int_equal(bench->reads[19], 2);
    dataset_close(dataset);
}

static bool write_text(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    bool is_written = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    close(file);
    return is_written;
}

/* This process sees a small file system in a folder, which no other does. */
static bool mount_small(const char *folder)
{
    char users[64];
    snprintf(users, sizeof(users), "0 %u 1", (unsigned)getuid());
    bool is_alone = unshare(CLONE_NEWNS) == 0 || (unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
                                                  write_text("/proc/self/uid_map", users));
    return is_alone && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", folder, "tmpfs", 0, "size=256k") == 0;
}

/* In a file system of its own. Returns what the process is to end with. */
static int fill_disk(struct counted_bench *bench)
{
    const struct cached_options options = {.place = CACHED_IN_MEMORY, .tells = true};
    static const char zeros[4096];
    char path[512];
    if (!mount_small(bench->folder)) {
        return 77;
    }
    struct dataset *dataset = counted_open(bench, options, counted_make(bench, SIDE, 0));
    snprintf(path, sizeof(path), "%s/other", bench->folder);
    int other = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    while (write(other, zeros, sizeof(zeros)) > 0) {
    }
    bool is_right = counted_read_right(dataset, 0);
    is_right = counted_read_right(dataset, 0) && is_right;
    struct cached_counts counts;
    dataset_cache_counts(dataset, &counts);
    dataset_close(dataset);
    return is_right && counts.missed > 0 ? 0 : 1;
}

static void a_memory_file_system_that_is_full_costs_time_alone(void **state)
{
    int ended;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(fill_disk(*state));
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended));
    if (WEXITSTATUS(ended) == 77) {
        print_message("a file system of its own cannot be made here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(ended), 0);
}

#define LOSS_TEST(function) \
    cmocka_unit_test_setup_teardown(function, counted_set_up, counted_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOSS_TEST(a_process_that_is_killed_while_it_writes_leaves_no_wrong_pixels),
        LOSS_TEST(a_disk_that_is_full_costs_time_alone),
        LOSS_TEST(a_memory_file_system_that_is_full_costs_time_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
