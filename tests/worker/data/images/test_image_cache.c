/* Tests of what is kept about files: it counts for the same files alone. */
#include "tests/support/common/temp_folder.h"
#include "tests/support/data/image_folder.h"
#include "worker/data/images/image_cache.h"
#include "worker/data/images/image_check.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOW_NS INT64_MAX // long after all files were written
#define BAD    1         // files that cannot be used

static char *make_folder(void)
{
    char *folder = temp_folder_create();
    image_folder_put_grey(folder, "a/1.jpg", 1);
    image_folder_put_grey(folder, "a/2.jpg", 2);
    image_folder_put(folder, "b/1\n.jpg", "text", 4);
    return folder;
}

static struct image_list *scan(const char *folder)
{
    struct image_list *list;
    assert_int_equal(image_list_open(folder, &list), STATUS_OK);
    assert_int_equal(image_list_scan(list), STATUS_OK);
    return list;
}

static uint64_t check(struct image_list *list)
{
    uint64_t count;
    assert_int_equal(image_check_list(list, &count), STATUS_OK);
    return count;
}

/* Opens the cache, and says how many files had to be looked at. */
static uint64_t check_with_cache(const char *folder, int64_t now_ns)
{
    struct image_list *list = scan(folder);
    struct image_cache *cache = image_cache_open(folder);
    assert_non_null(cache);
    image_cache_read(cache, list);
    uint64_t count = check(list);
    assert_non_null(list->files[list->count - 1].why);
    assert_string_equal(list->files[list->count - 1].why, "it is neither JPEG nor PNG");
    image_cache_write(cache, list, now_ns);
    image_cache_close(cache);
    image_list_close(list);
    return count;
}

static void only_new_changed_and_bad_files_are_looked_at_again(void **state)
{
    (void)state;
    char *folder = make_folder();
    assert_int_equal(check_with_cache(folder, NOW_NS), 3);
    assert_int_equal(check_with_cache(folder, NOW_NS), BAD);
    image_folder_age(folder, "a/2.jpg");
    assert_int_equal(check_with_cache(folder, NOW_NS), BAD + 1);
    image_folder_put_grey(folder, "a/15.jpg", 2);
    image_folder_put_grey(folder, "0/1.jpg", 2);
    assert_int_equal(check_with_cache(folder, NOW_NS), BAD + 2);
    assert_int_equal(check_with_cache(folder, NOW_NS), BAD);
    temp_folder_destroy(folder);
}

static void nothing_is_kept_of_files_that_have_just_changed(void **state)
{
    (void)state;
    char *folder = make_folder();
    struct image_list *list = scan(folder);
    int64_t changed_ns = list->files[1].changed_ns;
    image_list_close(list);
    image_folder_age(folder, "a/1.jpg");
    assert_int_equal(check_with_cache(folder, changed_ns + 1000000), 3);
    assert_int_equal(check_with_cache(folder, NOW_NS), 2);
    temp_folder_destroy(folder);
}

static void what_is_kept_but_broken_is_said_and_made_anew(void **state)
{
    (void)state;
    char *folder = make_folder();
    struct image_list *list = scan(folder);
    check(list);
    uint8_t *bytes;
    size_t size;
    assert_int_equal(image_cache_encode(list, NOW_NS, &bytes, &size), STATUS_OK);
    image_list_close(list);
    for (size_t i = 0; i < size; i++) {
        list = scan(folder);
        bytes[i] ^= 0x10;
        assert_int_equal(image_cache_decode(bytes, size, list), STATUS_MALFORMED);
        bytes[i] ^= 0x10;
        assert_int_equal(image_cache_decode(bytes, i, list), STATUS_MALFORMED);
        assert_int_equal(check(list), 3);
        image_list_close(list);
    }
    list = scan(folder);
    assert_int_equal(image_cache_decode(bytes, size, list), STATUS_OK);
    assert_int_equal(check(list), BAD);
    image_list_close(list);
    free(bytes);
    temp_folder_destroy(folder);
}

static void without_a_folder_for_caches_all_files_are_looked_at(void **state)
{
    (void)state;
    char *folder = make_folder();
    char kept[512];
    // NOLINTBEGIN(concurrency-mt-unsafe): there is one thread
    snprintf(kept, sizeof(kept), "%s", getenv("RINGSIDE_CACHE"));
    setenv("RINGSIDE_CACHE", "no/absolute/path", 1);
    assert_null(image_cache_open(folder));
    setenv("RINGSIDE_CACHE", "/proc/nowhere", 1);
    assert_null(image_cache_open(folder));
    setenv("RINGSIDE_CACHE", kept, 1);
    // NOLINTEND(concurrency-mt-unsafe)
    assert_null(image_cache_open("/nowhere"));
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_new_changed_and_bad_files_are_looked_at_again),
        cmocka_unit_test(nothing_is_kept_of_files_that_have_just_changed),
        cmocka_unit_test(what_is_kept_but_broken_is_said_and_made_anew),
        cmocka_unit_test(without_a_folder_for_caches_all_files_are_looked_at),
    };
    char *cache = temp_folder_create();
    setenv("RINGSIDE_CACHE", cache, 1); // NOLINT(concurrency-mt-unsafe): there is one thread
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    temp_folder_destroy(cache);
    return failed;
}
