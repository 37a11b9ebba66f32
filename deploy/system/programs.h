/* Where the programs ps and worker are, and whether a job can be run with them. */
#ifndef DEPLOY_SYSTEM_PROGRAMS_H
#define DEPLOY_SYSTEM_PROGRAMS_H

#include "common/base/status.h"
#include "common/job/job.h"

#include <stdbool.h>
#include <stddef.h>

#define PROGRAMS_PATH_MAX 4096

struct programs {
    char ps[PROGRAMS_PATH_MAX], worker[PROGRAMS_PATH_MAX];
};

/* The path of this program; "": it is not known. */
void programs_find_own(char *ret_path, size_t path_size);

/* Whether this host has a program that a command begins with: at its path, or, if it is a name
 * alone, in the folders of PATH, or, without PATH, in those of the system. */
bool programs_have(const char *program);

/* Beside this program (build tree, or installed), or in RINGSIDE_LIBEXEC. Logs. */
enum status programs_find(struct programs *ret_programs);

/* Opens the job's data, model and device in a worker that then ends: what is wrong with them is
 * said before anything is written. ret_line gets what the worker found, as JSON. It has as long as
 * members have to come (--start-timeout). STATUS_MISMATCH: an option asks for what the job does not
 * have with these data. STATUS_INTERRUPTED after Ctrl-C. Logs. */
enum status programs_try(const struct programs *programs, const struct job *job, char *ret_line,
                         size_t line_size);

#endif
