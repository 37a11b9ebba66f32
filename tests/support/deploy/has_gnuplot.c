/* Asks it for its version. */
#include "tests/support/deploy/has_gnuplot.h"

#include "deploy/system/process_run.h"

bool has_gnuplot(void)
{
    const char *const argv[] = {"gnuplot", "--version", NULL};
    const struct process_run_options options = {.argv = argv, .input = "", .takes_errors = true};
    char output[256];
    int code = -1;
    return process_run(&options, output, sizeof(output), &code) == STATUS_OK && code == 0;
}
