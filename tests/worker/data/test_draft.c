/* Tests of drafts: a file is there when it is whole, and what was there stays until then. */
#include "tests/support/common/captured_log.h"
#include "tests/support/common/file_limit.h"
#include "tests/support/common/temp_folder.h"
#include "worker/data/draft.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct draft_test {
    char *folder;
    char path[512], part[520];
};

static int set_up(void **state)
{
    struct draft_test *test = calloc(1, sizeof(*test));
    assert_non_null(test);
    test->folder = temp_folder_create();
    snprintf(test->path, sizeof(test->path), "%s/file", test->folder);
    snprintf(test->part, sizeof(test->part), "%s.part", test->path);
    *state = test;
    return 0;
}

static int tear_down(void **state)
{
    struct draft_test *test = *state;
    temp_folder_destroy(test->folder);
    free(test);
    return 0;
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void check_content(const char *path, const char *expected)
{
    char content[64];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    content[fread(content, 1, sizeof(content) - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(content, expected);
}

static void check_said(const char *log, const char *text)
{
    if (strstr(log, text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, log);
    }
}

static void a_file_is_there_when_it_is_whole_in_any_order(void **state)
{
    const struct draft_test *test = *state;
    struct draft draft;
    assert_int_equal(draft_open(&draft, test->path), STATUS_OK);
    assert_int_equal(draft_write(&draft, "cd", 2, 2), STATUS_OK);
    assert_int_equal(draft_write(&draft, "ab", 2, 0), STATUS_OK);
    assert_false(is_there(test->path));
    assert_int_equal(draft_finish(&draft, STATUS_OK), STATUS_OK);
    check_content(test->path, "abcd");
    assert_false(is_there(test->part));
}

static void a_failure_leaves_what_was_there(void **state)
{
    const struct draft_test *test = *state;
    struct draft draft;
    temp_folder_write(test->folder, "file", "old", 3);
    assert_int_equal(draft_open(&draft, test->path), STATUS_OK);
    assert_int_equal(draft_write(&draft, "new", 3, 0), STATUS_OK);
    assert_int_equal(draft_finish(&draft, STATUS_INTERRUPTED), STATUS_INTERRUPTED);
    check_content(test->path, "old");
    assert_false(is_there(test->part));
}

static void a_full_disk_is_said_and_leaves_nothing(void **state)
{
    const struct draft_test *test = *state;
    static const char bytes[8192];
    struct draft draft;
    assert_int_equal(draft_open(&draft, test->path), STATUS_OK);
    captured_log_begin();
    file_limit_begin(4096);
    enum status status = draft_write(&draft, bytes, sizeof(bytes), 0);
    file_limit_end();
    check_said(captured_log_end(), "cannot write ");
    assert_int_equal(status, STATUS_IO);
    assert_int_equal(draft_finish(&draft, status), STATUS_IO);
    assert_false(is_there(test->path));
    assert_false(is_there(test->part));
}

static void refuse(const char *path, enum status expected, const char *text)
{
    struct draft draft;
    captured_log_begin();
    enum status status = draft_open(&draft, path);
    const char *log = captured_log_end();
    assert_int_equal(status, expected);
    check_said(log, text);
    assert_int_equal(draft_finish(&draft, status), expected);
}

static void what_cannot_be_a_file_is_refused(void **state)
{
    const struct draft_test *test = *state;
    refuse(test->folder, STATUS_INVALID, "is there, and is no file: choose another name");
    refuse("/dev/full", STATUS_INVALID, "is there, and is no file: choose another name");
    refuse("/nowhere/file", STATUS_IO, "cannot write /nowhere/file.part: No such file");
    assert_int_equal(mkdir(test->part, 0777), 0);
    refuse(test->path, STATUS_IO, "cannot write ");
    assert_true(is_there(test->part)); // it is somebody else's
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_there_when_it_is_whole_in_any_order),
        TEST(a_failure_leaves_what_was_there),
        TEST(a_full_disk_is_said_and_leaves_nothing),
        TEST(what_cannot_be_a_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
