/* Tests of the look at both ends of files, by several threads. */
#include "tests/support/common/temp_folder.h"
#include "tests/support/data/image_folder.h"
#include "tests/support/data/jpeg_maker.h"
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

#define FILES 400 // enough for several threads

static struct image_list *scan(const char *folder)
{
    struct image_list *list;
    assert_int_equal(image_list_open(folder, &list), STATUS_OK);
    assert_int_equal(image_list_scan(list), STATUS_OK);
    return list;
}

static void each_of_many_files_is_looked_at_once_and_judged_by_itself(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    for (int i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%d/%03d.jpg", i % 2, i);
        if (i % 7 == 0) {
            image_folder_put(folder, name, "no image", 8);
        } else {
            image_folder_put_grey(folder, name, (uint8_t)i);
        }
    }
    struct image_list *list = scan(folder);
    uint64_t count;
    assert_int_equal(image_check_list(list, &count), STATUS_OK);
    assert_int_equal(count, FILES);
    for (uint64_t i = 0; i < FILES; i++) {
        const struct image_file *file = &list->files[i];
        uint64_t number = 2 * (i % (FILES / 2)) + file->class; // as sorted
        assert_true(file->is_checked);
        assert_int_equal(file->why != NULL, number % 7 == 0);
    }
    assert_int_equal(image_check_list(list, &count), STATUS_OK);
    assert_int_equal(count, 0);
    image_list_close(list);
    temp_folder_destroy(folder);
}

/* Previews and profiles may be as large as the image itself, and hold end markers. */
static void a_long_head_is_read_to_its_end(void **state)
{
    (void)state;
    static uint8_t body[60000];
    char *folder = temp_folder_create();
    size_t size;
    uint8_t *jpeg = jpeg_maker_flat((const uint8_t[3]){1, 2, 3}, 20, 20, &size);
    body[59000] = 0xFF;
    body[59001] = 0xD9;
    for (int i = 0; i < 3; i++) {
        jpeg = jpeg_maker_insert(jpeg, &size, 0xE2, body, sizeof(body));
    }
    image_folder_put_grey(folder, "a/1.jpg", 1);
    image_folder_put(folder, "b/whole.jpg", jpeg, size);
    image_folder_put(folder, "c/cut.jpg", jpeg, size - 2);
    image_folder_put(folder, "c/short.jpg", jpeg, 100000);
    struct image_list *list = scan(folder);
    uint64_t count;
    assert_int_equal(image_check_list(list, &count), STATUS_OK);
    assert_null(list->files[1].why);
    assert_string_equal(list->files[2].why, "it has no end marker: it was cut short");
    assert_string_equal(list->files[3].why, "it ends in its head: it was cut short");
    image_list_close(list);
    free(jpeg);
    temp_folder_destroy(folder);
}

/* As one that is cut while it is looked at. */
static void a_file_that_is_shorter_than_it_was_is_named(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    image_folder_put_grey(folder, "a/1.jpg", 1);
    image_folder_put_grey(folder, "b/1.jpg", 2);
    struct image_list *list = scan(folder);
    uint64_t count;
    image_folder_put(folder, "a/1.jpg", "\xFF\xD8\xFF", 3);
    image_folder_put(folder, "b/1.jpg", "", 0);
    assert_int_equal(image_check_list(list, &count), STATUS_OK);
    for (uint64_t i = 0; i < 2; i++) {
        assert_string_equal(list->files[i].why, "it cannot be read: it became shorter");
    }
    image_list_close(list);
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_of_many_files_is_looked_at_once_and_judged_by_itself),
        cmocka_unit_test(a_long_head_is_read_to_its_end),
        cmocka_unit_test(a_file_that_is_shorter_than_it_was_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
