/* End to end: a job says how much memory its processes take before it begins, and that is so. */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Over sockets, where nothing of a neighbour's is counted. Of what is said, that of the largest
 * process that was ever waited for is at least and at most so much: allocators and libraries
 * differ, and the sanitizers have memory of their own. */
#define LEAST 0.6
#define MOST  1.5

/* The number behind the words, in a text that has them. */
static double mib_behind(const char *text, const char *words)
{
    const char *found = strstr(text, words);
    char *end;
    assert_non_null(found);
    double mib = strtod(found + strlen(words), &end);
    assert_int_equal(strncmp(end, " MiB ", 5), 0);
    return mib;
}

/* Of a worker; or, where servers take more, of the one with the coordinator. */
static double said_mib(const char *const *args, bool has_servers)
{
    struct program_run run = {.announce_fd = -1};
    char folder[PROGRAM_PATH_BYTES];
    programs_make_folder(folder);
    program_start(&run, folder, "deploy/ringside", false, args, NULL);
    assert_int_equal(program_wait(&run), 0);
    const char *line = strstr(program_output(&run), "memory: ");
    assert_non_null(line);
    double worker = mib_behind(line, "memory: about "), server = 0;
    assert_non_null(strstr(line, " MiB of its own for each worker process"));
    if (has_servers) {
        assert_non_null(strstr(line, " MiB for each server process, and up to "));
        server = mib_behind(line, "process, up to ") + mib_behind(line, "process, and up to ");
    }
    programs_remove_folder(folder);
    return server > worker ? server : worker;
}

/* Of all descendants: those of later jobs are larger. */
static double largest_mib(void)
{
    struct rusage used;
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &used), 0);
    return (double)used.ru_maxrss / 1024;
}

static void check(const char *const *args, bool has_servers)
{
    double said = said_mib(args, has_servers), largest = largest_mib();
    print_message("%.0f MiB said, %.0f MiB taken\n", said, largest);
    assert_true(largest >= LEAST * said && largest <= MOST * said);
}

static void what_a_process_takes_is_said_before_the_job(void **state)
{
    (void)state;
    static const char *const cnn[] = {
        "run", "--model",   "cnn", "--data",      "shapes", "--mode", "ring", "-n",
        "2",   "--batch",   "16",  "--steps",     "6",      "--eval", "none", "--device",
        "cpu", "--threads", "1",   "--transport", "ipc",    NULL};
    static const char *const slices[] = {
        "run",  "--model",     "cnn", "--data",    "shapes", "--mode",      "ring", "-n",
        "8",    "--processes", "2",   "--batch",   "64",     "--steps",     "6",    "--eval",
        "none", "--device",    "cpu", "--threads", "1",      "--transport", "ipc",  NULL};
    static const char *const resnet[] = {
        "run",  "--model",     "resnet50v2", "--data",    "shapes", "--mode",      "ring", "-n",
        "4",    "--processes", "2",          "--batch",   "2",      "--steps",     "2",    "--eval",
        "none", "--device",    "cpu",        "--threads", "1",      "--transport", "ipc",  NULL};
    static const char *const servers[] = {
        "run",  "--model",  "cnn", "--data",    "shapes", "--mode",      "ps-sync", "-n",
        "2",    "--batch",  "16",  "--steps",   "40",     "--optimizer", "adam",    "--eval",
        "none", "--device", "cpu", "--threads", "1",      "--transport", "ipc",     NULL};
    check(cnn, false);
    check(servers, true);
    check(slices, false);
    check(resnet, false);
}

/* Nothing is known of a program of the user's own. */
static void nothing_is_said_of_a_program_of_its_own(void **state)
{
    (void)state;
    struct program_run run = {.announce_fd = -1};
    char folder[PROGRAM_PATH_BYTES];
    static const char *const args[] = {"run", "--mode", "ps-sync", "-n", "1", "--", "true", NULL};
    programs_make_folder(folder);
    program_start(&run, folder, "deploy/ringside", false, args, NULL);
    (void)program_wait(&run); // it takes no part in the job
    assert_null(strstr(program_output(&run), "memory"));
    programs_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_process_takes_is_said_before_the_job),
        cmocka_unit_test(nothing_is_said_of_a_program_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
