/* Tests of opening a dataset's files. */
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/data/packed.h"
#include "worker/data/data_file.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static const char *const names[] = {"first", "second/name", NULL};

static struct data_file *open_any(const char *folder)
{
    struct data_file *file = NULL;
    assert_int_equal(data_file_open(folder, names, "do this", &file), STATUS_OK);
    return file;
}

static void check_refused(const char *folder, const char *text)
{
    struct data_file *file = NULL;
    captured_log_begin();
    enum status status = data_file_open(folder, names, "do this", &file);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_IO);
    assert_null(file);
    assert_non_null(strstr(log, text));
    assert_non_null(strstr(log, "do this"));
}

static void the_first_name_that_exists_is_opened(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    temp_folder_write(folder, "second/name", "two", 3);
    struct data_file *file = open_any(folder);
    assert_int_equal(file->size, 3);
    assert_memory_equal(file->bytes, "two", 3);
    assert_non_null(strstr(file->path, "/second/name"));
    data_file_close(file);

    temp_folder_write(folder, "first", "one", 3);
    file = open_any(folder);
    assert_memory_equal(file->bytes, "one", 3);
    data_file_close(file);
    temp_folder_destroy(folder);
}

static void an_empty_file_has_no_bytes(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    temp_folder_write(folder, "first", "", 0);
    struct data_file *file = open_any(folder);
    assert_int_equal(file->size, 0);
    assert_null(file->bytes);
    data_file_close(file);
    temp_folder_destroy(folder);
    data_file_close(NULL);
}

static void what_is_not_there_is_asked_for_by_its_first_name(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    check_refused(folder, "/first: No such file");
    temp_folder_destroy(folder);
    char longest[DATA_FILE_PATH_BYTES + 1];
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    check_refused(longest, "File name too long");
}

static void a_packed_file_takes_the_place_of_itself(void **state)
{
    (void)state;
    static const char text[] = "the same words over and over, the same words over and over";
    uint8_t packed[1000];
    char why[DATA_FILE_WHY_BYTES];
    char *folder = temp_folder_create();
    size_t size = packed_write(text, sizeof(text), packed, sizeof(packed));
    temp_folder_write(folder, "first", packed, size);
    struct data_file *file = open_any(folder);
    assert_int_equal(data_file_unpack(file, sizeof(text) + 1, why, sizeof(why)), STATUS_MALFORMED);
    assert_memory_equal(file->bytes, packed, size);
    assert_int_equal(data_file_unpack(file, sizeof(text), why, sizeof(why)), STATUS_OK);
    assert_int_equal(file->size, sizeof(text));
    assert_memory_equal(file->bytes, text, sizeof(text));
    data_file_close(file);
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_name_that_exists_is_opened),
        cmocka_unit_test(an_empty_file_has_no_bytes),
        cmocka_unit_test(what_is_not_there_is_asked_for_by_its_first_name),
        cmocka_unit_test(a_packed_file_takes_the_place_of_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
