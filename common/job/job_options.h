/* The option rows of a job: one table for command lines, config files and the text of a job. */
#ifndef COMMON_JOB_JOB_OPTIONS_H
#define COMMON_JOB_JOB_OPTIONS_H

#include "common/job/job.h"
#include "common/options/options.h"

#include <stdbool.h>
#include <stddef.h>

extern const struct option job_options[];
extern const size_t job_option_count;

/* The row of a name, which there must be. */
const struct option *job_option_find(const char *name);

/* What a row comes to by default, as text; NULL: it has no default. A model of ours or a program of
 * one's own: the optimizer of the one is momentum, and the other's is its own. */
const char *job_option_default(const struct option *row, bool is_external);

/* The set of `job` for a program's tables. */
struct option_set job_option_set(struct job *job);

#endif
