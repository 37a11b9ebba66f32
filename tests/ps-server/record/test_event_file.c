/* Tests of the numbers that files of TensorBoard's have. */
#include "ps-server/record/event_file.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void make_file(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

static void remove_file(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

static void the_newest_file_is_the_one_with_the_highest_number(void **state)
{
    (void)state;
    static const char *const names[] = {
        "events.out.tfevents.0000000007.ringside",
        "events.out.tfevents.0000000012.another-host.1.0",
        "events.out.tfevents.99999999999999999999.ringside", // is not in the order of names
        "notes.99",
    };
    char folder[] = "/tmp/ringside-events-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(event_file_newest(folder), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        make_file(folder, names[i]);
    }
    assert_int_equal(event_file_newest(folder), 12);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        remove_file(folder, names[i]);
    }
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(event_file_newest(folder), 0);
}

static void a_new_file_is_the_newest(void **state)
{
    (void)state;
    char folder[] = "/tmp/ringside-events-XXXXXX", path[256];
    assert_non_null(mkdtemp(folder));
    for (uint64_t number = 9; number < 12; number++) {
        int fd = event_file_open(folder, number, "", path, sizeof(path));
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(event_file_newest(folder), number);
        assert_int_equal(unlink(path), 0);
    }
    int end = event_file_open(folder, 9, "-end", path, sizeof(path));
    assert_true(end >= 0);
    close(end);
    assert_int_equal(event_file_newest(folder), 9);
    char removed[256];
    assert_true(event_file_remove(folder, 8, "-end", removed, sizeof(removed))); // there is none
    assert_int_equal(access(path, F_OK), 0);
    assert_true(event_file_remove(folder, 9, "-end", removed, sizeof(removed)));
    assert_string_equal(removed, path);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(mkdir(path, 0700), 0); // cannot be removed like a file
    assert_false(event_file_remove(folder, 9, "-end", removed, sizeof(removed)));
    assert_int_equal(rmdir(path), 0);
    assert_false(event_file_remove(folder, 9, "-end", removed, 20)); // nor has the path room
    assert_int_equal(event_file_open(folder, 9, "", path, 20), -1); // there is no room for the path
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_file_is_the_one_with_the_highest_number),
        cmocka_unit_test(a_new_file_is_the_newest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
