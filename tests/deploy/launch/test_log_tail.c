/* Tests of reading the end of a log. */
#include "deploy/launch/log_tail.h"
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

struct tail_test {
    char *folder, path[4200];
};

static int set_up(void **state)
{
    static struct tail_test test;
    test.folder = temp_folder_create();
    snprintf(test.path, sizeof(test.path), "%s/log", test.folder);
    *state = &test;
    return 0;
}

static int tear_down(void **state)
{
    struct tail_test *test = *state;
    temp_folder_destroy(test->folder);
    return 0;
}

static void check_sentence(const struct tail_test *test, const char *log, const char *expected)
{
    char text[80];
    temp_folder_write(test->folder, "log", log, strlen(log));
    log_tail_sentence(&(struct log_part){test->path, 0}, text, sizeof(text));
    assert_string_equal(text, expected);
}

static void the_last_error_says_why(void **state)
{
    check_sentence(*state,
                   "2026 error worker 1 host=vm: the first\n"
                   "2026 error worker 1 host=vm: cannot read a: No such file\n"
                   "2026 warn worker 1 host=vm: and another thing\n",
                   "cannot read a: No such file");
}

static void without_an_error_it_is_the_last_line(void **state)
{
    check_sentence(*state, "2026 warn worker 1 host=vm: slow\n", "slow");
    check_sentence(*state, "one\nterminate called\x1B[2J\n", "terminate called?[2J");
    check_sentence(*state, "no line feed", "no line feed");
}

static void a_log_that_is_empty_or_missing_says_nothing(void **state)
{
    const struct tail_test *test = *state;
    char text[80] = "x";
    check_sentence(test, "", "");
    log_tail_sentence(&(struct log_part){"/nowhere/at/all", 0}, text, sizeof(text));
    assert_string_equal(text, "");
}

static void a_long_log_is_read_from_its_end(void **state)
{
    const struct tail_test *test = *state;
    char *log = malloc(100000), *printed = NULL;
    size_t used = 0, size = 0;
    assert_non_null(log);
    for (unsigned i = 0; i < 2000; i++) {
        used += (size_t)snprintf(log + used, 100000 - used, "2026 warn x host=y: line %u\n", i);
    }
    check_sentence(test, log, "line 1999");
    free(log);
    FILE *memory = open_memstream(&printed, &size);
    log_tail_print(&(struct log_part){test->path, 0}, "", memory);
    fclose(memory);
    assert_non_null(strstr(printed, "\n    2026 warn x host=y: line 1995\n"));
    assert_null(strstr(printed, "line 1994"));
    assert_non_null(strstr(printed, "line 1999\n"));
    free(printed);
}

static void what_was_said_is_not_printed_again(void **state)
{
    const struct tail_test *test = *state;
    static const char log[] = "2026 warn ps host=n: one is passed over\n"
                              "2026 error ps host=n: cannot resume: other seed\n";
    static const struct {
        const char *said, *expected; // behind the head
    } cases[] = {
        {"it failed", log},
        {"it ended with exit code 1: cannot resume: other seed",
         "2026 warn ps host=n: one is passed over\n"},
        {"one is passed over, and cannot resume: other seed", NULL},
    };
    temp_folder_write(test->folder, "log", log, strlen(log));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *printed = NULL, expected[512] = "";
        size_t size = 0, used = 0;
        FILE *memory = open_memstream(&printed, &size);
        log_tail_print(&(struct log_part){test->path, 0}, cases[i].said, memory);
        fclose(memory);
        for (const char *line = cases[i].expected; line != NULL && *line != '\0';
             line += strcspn(line, "\n") + 1) {
            used += (size_t)snprintf(expected + used, sizeof(expected) - used, "    %.*s\n",
                                     (int)strcspn(line, "\n"), line);
        }
        const char *behind = strchr(printed, '\n');
        assert_string_equal(behind != NULL ? behind + 1 : "", expected);
        free(printed);
    }
}

static void the_output_of_a_program_is_printed_whole(void **state)
{
    const struct tail_test *test = *state;
    static const char log[] = "Traceback (most recent call last):\nValueError: no data\n";
    char *printed = NULL;
    size_t size = 0;
    temp_folder_write(test->folder, "log", log, strlen(log));
    FILE *memory = open_memstream(&printed, &size);
    log_tail_print(&(struct log_part){test->path, 0}, "exit code 1: ValueError: no data", memory);
    fclose(memory);
    assert_non_null(strstr(printed, "\n    ValueError: no data\n"));
    free(printed);
}

static void a_planned_kill_is_told(void **state)
{
    const struct tail_test *test = *state;
    static const char log[] =
        "2026 warn worker rank=1 host=n: --fault rank=1,step=5,stop=1s: this worker stands still\n"
        "2026 warn worker rank=1 host=n: --fault rank=1,step=7,kill: this worker kills itself\n";
    char fault[64];
    temp_folder_write(test->folder, "log", log, strlen(log));
    assert_true(
        log_tail_fault(&(struct log_part){test->path, 0}, FAULT_KILL, fault, sizeof(fault)));
    assert_string_equal(fault, "rank=1,step=7,kill");
    assert_true(
        log_tail_fault(&(struct log_part){test->path, 0}, FAULT_STOP, fault, sizeof(fault)));
    assert_string_equal(fault, "rank=1,step=5,stop=1s");
    temp_folder_write(test->folder, "log", log, strcspn(log, "\n"));
    assert_false(
        log_tail_fault(&(struct log_part){test->path, 0}, FAULT_KILL, fault, sizeof(fault)));
    assert_false(
        log_tail_fault(&(struct log_part){"/nowhere/at/all", 0}, FAULT_KILL, fault, sizeof(fault)));
}

static void lines_of_processes_before_are_left_out(void **state)
{
    const struct tail_test *test = *state;
    static const char before[] =
        "2026 error ps host=n: cannot resume: other seed\n"
        "2026 warn ps host=n: --fault rank=1,step=7,kill: this kills itself\n";
    static const char now[] = "2026 warn ps host=n: slow\n";
    char log[512], text[80], *printed = NULL;
    size_t size = 0;
    temp_folder_write(test->folder, "log", before, strlen(before));
    const struct log_part part = {test->path, log_tail_end(test->path)};
    log_tail_sentence(&part, text, sizeof(text));
    assert_string_equal(text, "");
    snprintf(log, sizeof(log), "%s%s", before, now);
    temp_folder_write(test->folder, "log", log, strlen(log));
    log_tail_sentence(&part, text, sizeof(text));
    assert_string_equal(text, "slow");
    assert_false(log_tail_fault(&part, FAULT_KILL, text, sizeof(text)));
    FILE *memory = open_memstream(&printed, &size);
    log_tail_print(&part, "", memory);
    fclose(memory);
    assert_non_null(strstr(printed, ":\n    2026 warn ps host=n: slow\n"));
    free(printed);
    assert_int_equal(log_tail_end("/nowhere/at/all"), 0);
}

#define TAIL_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TAIL_TEST(the_last_error_says_why),
        TAIL_TEST(without_an_error_it_is_the_last_line),
        TAIL_TEST(a_log_that_is_empty_or_missing_says_nothing),
        TAIL_TEST(a_long_log_is_read_from_its_end),
        TAIL_TEST(what_was_said_is_not_printed_again),
        TAIL_TEST(the_output_of_a_program_is_printed_whole),
        TAIL_TEST(a_planned_kill_is_told),
        TAIL_TEST(lines_of_processes_before_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
