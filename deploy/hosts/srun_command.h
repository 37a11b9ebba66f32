/* Makes the command line that reaches an agent through srun, and knows what srun's failures
 * mean. */
#ifndef DEPLOY_HOSTS_SRUN_COMMAND_H
#define DEPLOY_HOSTS_SRUN_COMMAND_H

#include "deploy/hosts/allocation.h"
#include "deploy/hosts/link_end.h"
#include "deploy/hosts/ssh_command.h"

#include <stdbool.h>

#define SRUN_CONNECT_SECS 30 // a step must have begun by then; Slurm queues such requests

struct srun_command {
    char node[HOST_NAME_BYTES + 16], gpus[48];
    char script[SSH_SCRIPT_BYTES + 8]; // for a shell of the node
    const char *argv[24];              // into the above; ends with NULL
};

/* Makes a step of one task on the node, next to whatever runs there, with everything that the
 * allocation has on that node: cores, memory, GPUs. The command points into itself, so it must not
 * be moved. Pure. */
void srun_command_make(struct srun_command *command, const struct allocation *allocation,
                       const char *node, const char *script);

/* Whether srun must not see a variable, because srun would take it as an option, or because it
 * would tell a process on the node about another place. That is every variable of Slurm except
 * those that say which job of which cluster this is. Pure. */
bool srun_is_dropped(const char *variable);

/* Whether a line on standard error can be ignored: the end of a task is reported in other ways.
 * Pure. */
bool srun_is_noise(const char *line);

/* For link_end_explain. */
extern const struct link_program srun_program;

#endif
