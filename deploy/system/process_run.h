/* A child that is run to its end: a probe, gnuplot. */
#ifndef DEPLOY_SYSTEM_PROCESS_RUN_H
#define DEPLOY_SYSTEM_PROCESS_RUN_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct process_run_options {
    const char *const *argv; // NULL-terminated; argv[0] is looked for in PATH
    const char *input;       // on its standard input; fits into a pipe (64 KiB)
    int input_fd;            // its standard input in the place of `input`, borrowed; 0: none
    unsigned timeout_ms;     // 0: none
    int error_fd;            // its standard error, borrowed; 0: ours
    bool takes_errors;       // its standard error goes where its output goes
};

/* Its standard output goes to ret_output, cut at output_size. *ret_code is its exit code, 127 if
 * there is no such program; if a signal has killed it, minus the signal's number. STATUS_IO: it was
 * killed, or could not be started; STATUS_TIMED_OUT;
 * STATUS_INTERRUPTED: we got SIGINT or SIGTERM, which must be blocked for that (where they are
 * not, they end us, and the child with us). In all these cases it is over, with everything that it
 * has started. */
enum status process_run(const struct process_run_options *options, char *ret_output,
                        size_t output_size, int *ret_code);

#endif
