/* Rejects options that were given and do nothing in a job. Pure.
 *
 * A user who asks for a momentum of 0.5 with plain SGD would not get what they expect. job_checks
 * looks for contradictions between values. Here it matters that an option was given at all, so the
 * programs that read the command line ask (ringside, and ps when it is started by hand). Where one
 * command line is for several jobs, the option has to act in one of them. */
#ifndef COMMON_JOB_JOB_EFFECTS_H
#define COMMON_JOB_JOB_EFFECTS_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "common/options/options.h"

#include <stddef.h>

/* Resolved jobs: count of them, each `stride` bytes behind the one before. */
struct job_list {
    const struct job *first;
    size_t count, stride;
};

/* The job at an index below `count`, borrowed from the list. */
const struct job *job_list_at(const struct job_list *jobs, size_t index);

/* Checks the options that options_parse was given. `asked` has their values: one that asks for
 * nothing, such as --compress none, is fine anywhere. STATUS_INVALID with a sentence. */
enum status job_check_effects(const struct option_program *program, const struct job *asked,
                              const struct job_list *jobs, char *ret_error, size_t error_size);

/* The same for one option, whatever its values. One without a rule acts in every job. */
enum status job_check_effect(const char *name, const struct job_list *jobs, char *ret_error,
                             size_t error_size);

#endif
