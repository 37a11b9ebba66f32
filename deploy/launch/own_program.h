/* A program of the user's own in the place of `worker`: what follows `--` on the command line. It
 * joins the job by libringside, or by what is built on it, such as ringside.torch. */
#ifndef DEPLOY_LAUNCH_OWN_PROGRAM_H
#define DEPLOY_LAUNCH_OWN_PROGRAM_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "deploy/launch/launch_start.h"

#define OWN_PROGRAM_VARIABLES_MAX 16

// What there is to say of a process of it that ended well, but too early.
#define OWN_PROGRAM_LEFT_NOT                                                                      \
    "ended before the job did: its program joins by ringside_join, and leaves by ringside_leave " \
    "(init and shutdown in ringside.torch)"

/* Cuts a command line at its first `--`. Returns what follows, which ends with NULL; NULL if there
 * is no `--`. */
const char *const *own_program_cut(int *argc, char **argv);

/* Makes the job one of that program: its model is "external:" and the program's name, unless a name
 * was given. Fails if there is no such program on this host, unless it is for others. */
enum status own_program_take(const char *const *program, bool is_for_here, struct job *job,
                             char *ret_error, size_t error_size);

/* What a process of the program is told by its environment. */
struct own_program_environment {
    char texts[OWN_PROGRAM_VARIABLES_MAX][LAUNCH_PATH_MAX + 64];
    const char *list[OWN_PROGRAM_VARIABLES_MAX + 1]; // of them, or of environ; ends with NULL
    size_t count;
};

void own_program_describe(const struct launch *launch, uint32_t rank,
                          struct own_program_environment *ret_environment);

#endif
