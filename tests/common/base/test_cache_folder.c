/* Tests of where caches lie, and of what is read there. */
#include "common/base/cache_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void expect(const char *path)
{
    char found[CACHE_FOLDER_BYTES];
    assert_int_equal(cache_folder_find("plans", found), path != NULL);
    if (path != NULL) {
        assert_string_equal(found, path);
    }
}

static void the_first_variable_that_is_set_says_where(void **state)
{
    (void)state;
    setenv("HOME", "/home/me", 1);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("RINGSIDE_CACHE");
    expect("/home/me/.cache/ringside/plans");
    setenv("XDG_CACHE_HOME", "relative", 1); // which the specification has ignored
    expect("/home/me/.cache/ringside/plans");
    setenv("XDG_CACHE_HOME", "/caches", 1);
    expect("/caches/ringside/plans");
    setenv("RINGSIDE_CACHE", "/own", 1);
    expect("/own/plans");
    setenv("RINGSIDE_CACHE", "", 1); // no cache
    expect(NULL);
}

static void a_folder_is_made_with_those_above_it(void **state)
{
    (void)state;
    char root[] = "/tmp/ringside-test-XXXXXX", path[CACHE_FOLDER_BYTES];
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof(path), "%s/a/b", root);
    assert_false(cache_folder_is_safe(path));
    assert_true(cache_folder_make(path));
    assert_true(cache_folder_make(path));
    assert_int_equal(chmod(path, 0777), 0); // anybody could put something there
    assert_false(cache_folder_make(path));
    assert_int_equal(rmdir(path), 0);
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(root), 0);
}

static void a_file_is_read_whole_or_not_at_all(void **state)
{
    (void)state;
    char root[] = "/tmp/ringside-test-XXXXXX", path[CACHE_FOLDER_BYTES], link[CACHE_FOLDER_BYTES];
    size_t size = 0;
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof(path), "%s/file", root);
    snprintf(link, sizeof(link), "%s/link", root);
    assert_null(cache_folder_read(path, 10, &size));
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_null(cache_folder_read(path, 10, &size)); // empty
    file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite("a\0bc", 1, 4, file), 4);
    assert_int_equal(fclose(file), 0);
    assert_null(cache_folder_read(path, 3, &size));
    char *bytes = cache_folder_read(path, 4, &size);
    assert_non_null(bytes);
    assert_int_equal(size, 4);
    assert_memory_equal(bytes, "a\0bc", 5);
    free(bytes);
    assert_int_equal(symlink(path, link), 0);
    assert_null(cache_folder_read(link, 10, &size));
    assert_null(cache_folder_read(root, 1 << 20, &size));
    assert_int_equal(unlink(link), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(root), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_variable_that_is_set_says_where),
        cmocka_unit_test(a_folder_is_made_with_those_above_it),
        cmocka_unit_test(a_file_is_read_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
