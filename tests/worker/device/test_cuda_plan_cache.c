/* Tests of kept plans: what was written is read, and nothing else is. */
#include "tests/support/common/temp_folder.h"
#include "worker/device/cuda/host/plan_cache.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY  "cuDNN 91900, GPU, forward pass of 3x3"
#define TEXT "{\"engineId\":41,\n\"more\":[1,2]}"

static int open_folder(void **state)
{
    *state = temp_folder_create();
    return setenv("RINGSIDE_CACHE", *state, 1);
}

static int close_folder(void **state)
{
    temp_folder_destroy(*state);
    return unsetenv("RINGSIDE_CACHE");
}

static void expect(const char *key, const char *text)
{
    char *found = plan_cache_read(key);
    if (text == NULL) {
        assert_null(found);
    } else {
        assert_non_null(found);
        assert_string_equal(found, text);
    }
    free(found);
}

/* The path of the only file that is kept. */
static void find_file(const char *folder, char ret_path[1024])
{
    char plans[512];
    uint32_t count = 0;
    snprintf(plans, sizeof(plans), "%s/plans", folder);
    DIR *entries = opendir(plans);
    assert_non_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (entry->d_name[0] != '.') {
            snprintf(ret_path, 1024, "%s/%s", plans, entry->d_name);
            count++;
        }
    }
    closedir(entries);
    assert_int_equal(count, 1);
}

static void what_is_kept_under_a_key_is_read_under_it_alone(void **state)
{
    (void)state;
    expect(KEY, NULL);
    plan_cache_write(KEY, TEXT);
    expect(KEY, TEXT);
    expect(KEY " ", NULL);
    expect("", NULL);
    plan_cache_write(KEY, "{}");
    expect(KEY, "{}");
}

/* Whatever byte a disk, or an editor, has changed. */
static void a_broken_file_counts_as_missing(void **state)
{
    char path[1024], bytes[1024];
    plan_cache_write(KEY, TEXT);
    find_file(*state, path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ssize_t size = read(fd, bytes, sizeof(bytes));
    assert_in_range(size, sizeof(TEXT), sizeof(bytes) - 1);
    for (ssize_t i = 0; i < size; i++) {
        const char other = (char)(bytes[i] ^ 1);
        assert_int_equal(pwrite(fd, &other, 1, i), 1);
        expect(KEY, NULL);
        assert_int_equal(pwrite(fd, &bytes[i], 1, i), 1);
    }
    expect(KEY, TEXT);
    for (ssize_t i = size - 1; i >= 0; i--) {
        assert_int_equal(ftruncate(fd, i), 0);
        expect(KEY, NULL);
    }
    close(fd);
    plan_cache_write(KEY, TEXT);
    expect(KEY, TEXT);
}

static void a_link_is_not_followed(void **state)
{
    char path[1024], elsewhere[512];
    plan_cache_write(KEY, TEXT);
    find_file(*state, path);
    snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", (const char *)*state);
    assert_int_equal(rename(path, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, path), 0);
    expect(KEY, NULL);
    plan_cache_write(KEY, TEXT "2"); // in the place of the link, and not behind it
    expect(KEY, TEXT "2");
    struct stat facts;
    assert_int_equal(lstat(path, &facts), 0);
    assert_true(S_ISREG(facts.st_mode));
}

static void a_folder_where_others_write_keeps_nothing(void **state)
{
    char plans[512];
    plan_cache_write(KEY, TEXT);
    snprintf(plans, sizeof(plans), "%s/plans", (const char *)*state);
    assert_int_equal(chmod(plans, 0777), 0);
    expect(KEY, NULL);
    plan_cache_write(KEY, "{}");
    assert_int_equal(chmod(plans, 0700), 0);
    expect(KEY, TEXT);
}

static void nothing_is_kept_where_there_is_no_folder(void **state)
{
    (void)state;
    assert_int_equal(setenv("RINGSIDE_CACHE", "", 1), 0);
    plan_cache_write(KEY, TEXT);
    expect(KEY, NULL);
    assert_int_equal(setenv("RINGSIDE_CACHE", "/proc/none", 1), 0);
    plan_cache_write(KEY, TEXT);
    expect(KEY, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_kept_under_a_key_is_read_under_it_alone,
                                        open_folder, close_folder),
        cmocka_unit_test_setup_teardown(a_broken_file_counts_as_missing, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(a_link_is_not_followed, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(a_folder_where_others_write_keeps_nothing, open_folder,
                                        close_folder),
        cmocka_unit_test_setup_teardown(nothing_is_kept_where_there_is_no_folder, open_folder,
                                        close_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
