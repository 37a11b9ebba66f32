/* Tests of how a critical path is printed. */
#include "deploy/trace/critical_file.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *print_file(const char *json)
{
    char *folder = temp_folder_create(), *text = NULL;
    size_t size = 0;
    temp_folder_write(folder, CRITICAL_FILE_NAME, json, strlen(json));
    FILE *stream = open_memstream(&text, &size);
    critical_file_print(stream, folder);
    fclose(stream);
    temp_folder_destroy(folder);
    return text;
}

static void the_limiter_the_shares_and_what_would_change_are_printed(void **state)
{
    (void)state;
    char *text = print_file("{\"limiter\": \"worker 1's backward limits 61 % of steps\","
                            " \"shares\": [{\"name\": \"worker 1's backward\", \"share\": 0.5,"
                            " \"ms_per_step\": 12.25}],"
                            " \"what_if\": [{\"change\": \"no straggler\", \"percent\": -31}]}");
    assert_string_equal(text, "worker 1's backward limits 61 % of steps\n"
                              "   50.0 %    12.250 ms a step  worker 1's backward\n"
                              "  -31.0 %  with no straggler\n");
    free(text);
}

static void texts_of_a_file_do_not_reach_the_terminal_as_commands(void **state)
{
    (void)state;
    char *text =
        print_file("{\"limiter\": \"a\\u001b[2Jb\", \"shares\": [{\"name\": \"\\u001bc\"}, 7],"
                   " \"what_if\": [{\"change\": \"\\u009b1m\"}, null]}");
    assert_null(strchr(text, '\033'));
    assert_null(strstr(text, "\xc2\x9b"));
    assert_non_null(strstr(text, "a?[2Jb\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limiter_the_shares_and_what_would_change_are_printed),
        cmocka_unit_test(texts_of_a_file_do_not_reach_the_terminal_as_commands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
