/* Explains why there is no agent on a host: how the program that reaches it ended, and what it
 * said. */
#ifndef DEPLOY_HOSTS_LINK_END_H
#define DEPLOY_HOSTS_LINK_END_H

#include "common/options/options.h"
#include "deploy/system/advice.h"

#include <stddef.h>

/* A program that reaches hosts (ssh, srun). Advice may have the host as %s, once. */
struct link_program {
    const char *name;
    const struct advice *advices; // (advice_count) on what it says
    size_t advice_count;
    const char *otherwise; // advice if none matches
    int own_exit_code;     // with which it says that it has failed itself; -1: none
    const char *agent;     // what has ended where it has passed an exit code on

    // The shell there found no program (127), or one that it could not run (126).
    const char *not_found, *not_found_advice;
    const char *not_runnable, *not_runnable_advice;
};

/* A sentence, and what to do. `result` is of waitpid for the program, `said` the last that it wrote
 * to standard error. Pure. */
void link_end_explain(const struct link_program *program, const char *host, int result,
                      const char *said, char ret_why[OPTION_ERROR_BYTES],
                      char ret_advice[OPTION_ERROR_BYTES]);

#endif
