/* Tests of lines on a disk that becomes full. */
#include "ps-server/record/metrics_file.h"
#include "tests/support/common/file_limit.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void a_line_is_there_whole_or_not_at_all(void **state)
{
    (void)state;
    static const char line[] = "{\"rank\": 0, \"step\": 12345}\n";
    char *folder = temp_folder_create(), path[1024], text[256];
    struct metrics_file file = metrics_file_closed;
    json_t *tree = json_pack("{s:i, s:i}", "rank", 0, "step", 12345);
    snprintf(path, sizeof(path), "%.900s/" METRICS_FILE, folder);
    assert_int_equal(metrics_file_open(&file, path, false), STATUS_OK);
    assert_int_equal(metrics_file_add(&file, tree), STATUS_OK);
    file_limit_begin(strlen(line) + 9); // in the midst of the second one
    enum status status = metrics_file_add(&file, tree);
    int error = errno;
    file_limit_end();
    assert_int_equal(status, STATUS_IO);
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(error, EFBIG);
    assert_int_equal(facts.st_size, strlen(line));
    assert_int_equal(metrics_file_add(&file, tree), STATUS_OK);
    metrics_file_close(&file);
    FILE *stream = fopen(path, "re");
    assert_non_null(stream);
    text[fread(text, 1, sizeof(text) - 1, stream)] = '\0';
    fclose(stream);
    char expected[256];
    snprintf(expected, sizeof(expected), "%s%s", line, line);
    assert_string_equal(text, expected);
    json_decref(tree);
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_there_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
