/* Tests of what is kept about files: it counts for the same files alone. */
#include "tests/support/common/captured_log.h"
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
#include <sys/stat.h>

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

#define CLASSES 150

/* Class i has i % 5 + 1 files, of i % 5 + 2 bytes each, named from the last to the first. */
static char *make_many(void)
{
    char *folder = temp_folder_create();
    for (uint32_t i = 0; i < CLASSES; i++) {
        for (uint32_t k = 0; k <= i % 5; k++) {
            char name[64];
            snprintf(name, sizeof(name), "n%08u/%03u.jpg", i, 4 - k);
            image_folder_put(folder, name, "1234567", i % 5 + 2);
        }
    }
    return folder;
}

/* What many threads have found is as if one had, however classes fell to them. */
static void files_of_many_classes_are_in_order(void **state)
{
    (void)state;
    char *folder = make_many();
    for (uint32_t turn = 0; turn < 5; turn++) {
        struct image_list *list = scan(folder);
        assert_int_equal(list->count, CLASSES / 5 * (1 + 2 + 3 + 4 + 5));
        uint64_t at = 0;
        for (uint32_t i = 0; i < CLASSES; i++) {
            for (uint32_t k = 0; k <= i % 5; k++, at++) {
                const struct image_file *file = &list->files[at];
                char name[16];
                snprintf(name, sizeof(name), "%03u.jpg", 4 - i % 5 + k);
                assert_int_equal(file->class, i);
                assert_int_equal(file->size, i % 5 + 2);
                assert_string_equal(list->names + file->name_at, name);
            }
        }
        image_list_close(list);
    }
    temp_folder_destroy(folder);
}

static void a_class_without_files_is_refused_among_many(void **state)
{
    (void)state;
    char *folder = make_many(), path[512];
    struct image_list *list;
    snprintf(path, sizeof(path), "%s/n00000077b", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(image_list_open(folder, &list), STATUS_OK);
    captured_log_begin();
    enum status status = image_list_scan(list);
    assert_non_null(strstr(captured_log_end(), "n00000077b has no images"));
    assert_int_equal(status, STATUS_INVALID);
    image_list_close(list);
    temp_folder_destroy(folder);
}

/* An index as large as this one is read back in a pass over both lists. */
static void an_index_of_many_files_comes_back_whole(void **state)
{
    (void)state;
    enum { COUNT = 200000, NAME = 24 };
    struct image_list list = {
        .class_count = 1000, .count = COUNT, .names_size = (size_t)COUNT * NAME};
    list.classes = calloc(list.class_count, sizeof(char *));
    list.files = calloc(COUNT, sizeof(*list.files));
    list.names = calloc(COUNT, NAME);
    for (uint32_t i = 0; i < list.class_count; i++) {
        list.classes[i] = malloc(NAME);
        snprintf(list.classes[i], NAME, "n%08u", i);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        list.files[i] = (struct image_file){.name_at = (size_t)i * NAME,
                                            .class = i / (COUNT / 1000),
                                            .is_checked = true,
                                            .size = 1000 + i,
                                            .changed_ns = i};
        snprintf(list.names + (size_t)i * NAME, NAME, "%08u.JPEG", i);
    }
    uint8_t *bytes;
    size_t size;
    assert_int_equal(image_cache_encode(&list, NOW_NS, &bytes, &size), STATUS_OK);
    // Twelve bytes, and for each record 20, a class of 9 and a name of 13.
    assert_int_equal(size, 12 + (size_t)COUNT * (20 + 9 + 13));
    for (uint32_t i = 0; i < COUNT; i++) {
        list.files[i].is_checked = false;
        list.files[i].size += i % 10 == 0; // one in ten has changed
    }
    assert_int_equal(image_cache_decode(bytes, size, &list), STATUS_OK);
    uint32_t known = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        known += list.files[i].is_checked;
    }
    assert_int_equal(known, COUNT / 10 * 9);
    for (uint32_t i = 0; i < list.class_count; i++) {
        free(list.classes[i]);
    }
    free(list.classes);
    free(list.files);
    free(list.names);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_many_classes_are_in_order),
        cmocka_unit_test(a_class_without_files_is_refused_among_many),
        cmocka_unit_test(an_index_of_many_files_comes_back_whole),
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
