/* Tests of the folders of checkpoints: names, order, and what is removed without being followed. */
#include "common/checkpoint/step_folders.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void a_name_is_read_as_it_was_made(void **state)
{
    (void)state;
    static const struct {
        struct step_folder folder;
        const char *name;
    } cases[] = {
        {{0, STEP_FOLDER_WHOLE}, "step-000000000000"},
        {{100, STEP_FOLDER_OLD}, "step-000000000100.old"},
        {{999999999999, STEP_FOLDER_NEW}, ".step-999999999999.new"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char name[STEP_FOLDER_BYTES];
        struct step_folder folder;
        step_folder_name(cases[i].folder, name);
        assert_string_equal(name, cases[i].name);
        assert_true(step_folder_parse(name, &folder));
        assert_int_equal(folder.step, cases[i].folder.step);
        assert_int_equal(folder.kind, cases[i].folder.kind);
    }
}

static void other_names_are_no_checkpoints(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",
        ".",
        "step-",
        "step-100",
        "step-0000000000100",
        "step-00000000010a",
        "step-000000000100.new",
        "step-000000000100.old2",
        ".step-000000000100",
        "xstep-000000000100",
        "step-+00000000100",
    };
    struct step_folder folder;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_false(step_folder_parse(names[i], &folder));
    }
}

static int open_path(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void folders_are_listed_from_the_newest_on(void **state)
{
    static const char *const names[] = {"step-000000000100.old", "step-000000000090",
                                        ".step-000000000200.new", "notes", "step-000000000100"};
    static const struct step_folder expected[] = {{200, STEP_FOLDER_NEW},
                                                  {100, STEP_FOLDER_WHOLE},
                                                  {100, STEP_FOLDER_OLD},
                                                  {90, STEP_FOLDER_WHOLE}};
    int parent = open_path(*state);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(mkdirat(parent, names[i], 0700), 0);
    }
    // Twice: a list leaves nothing behind in the open folder.
    for (int time = 0; time < 2; time++) {
        struct step_folder *folders;
        size_t count;
        assert_int_equal(step_folders_list(parent, &folders, &count), STATUS_OK);
        assert_int_equal(count, 4);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(folders[i].step, expected[i].step);
            assert_int_equal(folders[i].kind, expected[i].kind);
        }
        free(folders);
    }
    close(parent);
}

static void a_removed_link_leaves_what_it_leads_to(void **state)
{
    const char *folder = *state;
    struct stat facts;
    char path[512];
    temp_folder_write(folder, "precious/manifest.jsonl", "x", 1);
    int parent = open_path(folder);
    assert_int_equal(symlinkat("precious", parent, "planted"), 0);
    assert_true(step_folder_remove(parent, "planted"));
    snprintf(path, sizeof(path), "%s/precious/manifest.jsonl", folder);
    assert_int_equal(stat(path, &facts), 0);
    // One in a folder that is removed.
    temp_folder_write(folder, "doomed/file", "x", 1);
    assert_int_equal(symlinkat("../precious", parent, "doomed/planted"), 0);
    assert_true(step_folder_remove(parent, "doomed"));
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(fstatat(parent, "doomed", &facts, AT_SYMLINK_NOFOLLOW), -1);
    close(parent);
}

static void what_is_gone_already_counts_as_removed(void **state)
{
    int parent = open_path(*state);
    assert_true(step_folder_remove(parent, "step-000000000100"));
    close(parent);
}

static void a_folder_of_another_user_is_not_opened(void **state)
{
    int parent = open_path(*state);
    assert_int_equal(mkdirat(parent, "theirs", 0755), 0);
    if (fchownat(parent, "theirs", 4711, 4711, 0) != 0) {
        close(parent);
        skip(); // not root
    }
    assert_int_equal(step_folder_open(parent, "theirs"), -1);
    assert_int_equal(errno, EPERM);
    assert_false(step_folder_remove(parent, "theirs"));
    close(parent);
}

static void a_file_is_opened_only_if_it_is_a_regular_one(void **state)
{
    const char *folder = *state;
    uint64_t size = 0;
    temp_folder_write(folder, "file", "12345", 5);
    int parent = open_path(folder);
    int fd = step_file_open(parent, "file", &size);
    assert_true(fd >= 0);
    assert_int_equal(size, 5);
    close(fd);
    assert_int_equal(symlinkat("file", parent, "link"), 0);
    assert_int_equal(step_file_open(parent, "link", &size), -1);
    assert_int_equal(errno, ELOOP);
    assert_int_equal(mkfifoat(parent, "pipe", 0600), 0);
    assert_int_equal(step_file_open(parent, "pipe", &size), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(mkdirat(parent, "folder", 0700), 0);
    assert_int_equal(step_file_open(parent, "folder", &size), -1);
    assert_int_equal(errno, EISDIR);
    close(parent);
}

static void all_checkpoints_are_removed_and_nothing_else(void **state)
{
    static const char *const names[] = {"step-000000000100.old", "step-000000000090",
                                        ".step-000000000200.new"};
    int parent = open_path(*state);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(mkdirat(parent, names[i], 0700), 0);
    }
    assert_int_equal(mkdirat(parent, "notes", 0700), 0);
    step_folders_remove_all(parent);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_not_equal(faccessat(parent, names[i], F_OK, 0), 0);
    }
    assert_int_equal(faccessat(parent, "notes", F_OK, 0), 0);
    close(parent);
}

static void errors_of_disks_are_told_apart(void **state)
{
    (void)state;
    static const int errors[] = {ENOSPC, EROFS, EIO, EFBIG, EPERM, ELOOP, ENOENT, EMFILE};
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(step_folder_advice(errors[i]), step_folder_advice(errors[j]));
        }
    }
}

static int open_folder(void **state)
{
    *state = temp_folder_create();
    return 0;
}

static int close_folder(void **state)
{
    temp_folder_destroy(*state);
    return 0;
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, open_folder, close_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_read_as_it_was_made),
        cmocka_unit_test(other_names_are_no_checkpoints),
        IN_FOLDER(folders_are_listed_from_the_newest_on),
        IN_FOLDER(a_removed_link_leaves_what_it_leads_to),
        IN_FOLDER(what_is_gone_already_counts_as_removed),
        IN_FOLDER(all_checkpoints_are_removed_and_nothing_else),
        IN_FOLDER(a_folder_of_another_user_is_not_opened),
        IN_FOLDER(a_file_is_opened_only_if_it_is_a_regular_one),
        cmocka_unit_test(errors_of_disks_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
