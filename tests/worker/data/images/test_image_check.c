/* Tests of the look at both ends of files, by several threads. */
#include "tests/support/common/temp_folder.h"
#include "tests/support/data/image_folder.h"
#include "tests/support/data/jpeg_maker.h"
#include "worker/data/images/decoder.h"
#include "worker/data/images/image_check.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* What is found against a file; "" if nothing is. */
static const char *check_why(const char *folder, const char *name, char ret_why[DECODER_WHY_BYTES])
{
    char path[512];
    struct stat facts;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_not_equal(descriptor, -1);
    assert_int_equal(fstat(descriptor, &facts), 0);
    ret_why[0] = '\0';
    enum status status =
        image_check_file(descriptor, (uint64_t)facts.st_size, ret_why, DECODER_WHY_BYTES);
    close(descriptor);
    assert_int_equal(status == STATUS_OK, ret_why[0] == '\0');
    return ret_why;
}

/* What it says of itself is judged before any of it is decoded. */
static void sizes_that_cannot_be_decoded_are_found_in_the_head(void **state)
{
    (void)state;
    static const struct {
        const char *name, *head; // PNG's, up to its height
        const char *why;
    } cases[] = {
        {"a/huge.png", "\0\0\xEA\x60\0\0\xEA\x60", "it has 60000 x 60000 pixels; 134217728 are"},
        {"a/none.png", "\0\0\0\0\0\0\0\x0A", "it has 0 x 10 pixels"},
    };
    char *folder = temp_folder_create(), why[DECODER_WHY_BYTES];
    size_t size;
    uint8_t *jpeg = jpeg_maker_flat((const uint8_t[3]){1, 2, 3}, 20, 20, &size);
    uint8_t *frame = memmem(jpeg, size, "\xFF\xC0", 2);
    assert_non_null(frame);
    memcpy(frame + 5, (const uint8_t[4]){0xFF, 0xDC, 0xFF, 0xDC}, 4);
    image_folder_put(folder, "a/huge.jpg", jpeg, size);
    assert_string_equal(check_why(folder, "a/huge.jpg", why),
                        "it has 65500 x 65500 pixels; 134217728 are the limit");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t png[36] = "\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR";
        memcpy(png + 16, cases[i].head, 8);
        memcpy(png + 32, (const uint8_t[4]){'I', 'E', 'N', 'D'}, 4);
        image_folder_put(folder, cases[i].name, png, sizeof(png));
        check_why(folder, cases[i].name, why);
        bool has_no_png = strstr(why, "which this build cannot read") != NULL;
        if (strncmp(why, cases[i].why, strlen(cases[i].why)) != 0 && !has_no_png) {
            fail_msg("%s: %s", cases[i].name, why);
        }
    }
    free(jpeg);
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_of_many_files_is_looked_at_once_and_judged_by_itself),
        cmocka_unit_test(a_long_head_is_read_to_its_end),
        cmocka_unit_test(a_file_that_is_shorter_than_it_was_is_named),
        cmocka_unit_test(sizes_that_cannot_be_decoded_are_found_in_the_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
