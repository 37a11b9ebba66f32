/* End to end: a job says how much memory its processes take before it begins, and that is so. */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Over sockets, where nothing of a neighbour's is counted. Of what is said, that of the largest
 * process that was ever waited for is at least and at most so much: allocators and libraries
 * differ, and the sanitizers have memory of their own. */
#define LEAST 0.6
#define MOST  1.5

static double said_mib(const char *const *args)
{
    static const char said[] = "memory: about ";
    struct program_run run = {.announce_fd = -1};
    char folder[PROGRAM_PATH_BYTES], *end;
    programs_make_folder(folder);
    program_start(&run, folder, "deploy/ringside", false, args, NULL);
    assert_int_equal(program_wait(&run), 0);
    const char *line = strstr(program_output(&run), said);
    assert_non_null(line);
    double mib = strtod(line + strlen(said), &end);
    assert_int_equal(strncmp(end, " MiB of its own for each", 24), 0);
    programs_remove_folder(folder);
    return mib;
}

/* Of all descendants: those of later jobs are larger. */
static double largest_mib(void)
{
    struct rusage used;
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &used), 0);
    return (double)used.ru_maxrss / 1024;
}

static void check(const char *const *args)
{
    double said = said_mib(args), largest = largest_mib();
    print_message("%.0f MiB said, %.0f MiB taken\n", said, largest);
    assert_true(largest >= LEAST * said && largest <= MOST * said);
}

static void what_a_worker_takes_is_said_before_the_job(void **state)
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
    check(cnn);
    check(slices);
    check(resnet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_worker_takes_is_said_before_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
