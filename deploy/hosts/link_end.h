/* Explains why a host has no agent, from how the program that reaches the host ended and what it
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
    int own_exit_code;     // exit code by which it says that it failed itself; -1: none
    const char *agent;     // what has ended where it has passed an exit code on

    // The shell there found no program (127), or one that it could not run (126).
    const char *not_found, *not_found_advice;
    const char *not_runnable, *not_runnable_advice;
};

/* Writes a sentence and advice. `result` is what waitpid gave for the program, `said` its last line
 * on standard error. Pure. */
void link_end_explain(const struct link_program *program, const char *host, int result,
                      const char *said, char ret_why[OPTION_ERROR_BYTES],
                      char ret_advice[OPTION_ERROR_BYTES]);

#endif
