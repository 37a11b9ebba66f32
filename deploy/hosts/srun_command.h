/* The command line that reaches an agent through srun, and what srun meant when it failed. */
#ifndef DEPLOY_HOSTS_SRUN_COMMAND_H
#define DEPLOY_HOSTS_SRUN_COMMAND_H

#include "deploy/hosts/allocation.h"
#include "deploy/hosts/link_end.h"
#include "deploy/hosts/ssh_command.h"

#include <stdbool.h>

#define SRUN_CONNECT_SECS 30 // until a step must have begun: Slurm queues such requests

struct srun_command {
    char node[HOST_NAME_BYTES + 16], gpus[48];
    char script[SSH_SCRIPT_BYTES + 8]; // for a shell of the node
    const char *argv[24];              // into the above; ends with NULL
};

/* A step of one task on the node, beside whatever runs there, with all that the allocation has on
 * that node: cores, memory, GPUs. The command points into itself: it must not be moved. Pure. */
void srun_command_make(struct srun_command *command, const struct allocation *allocation,
                       const char *node, const char *script);

/* A variable that srun must not see, as it would be an option, or that would tell a process on the
 * node of another place: all of Slurm's but which job of which Slurm this is. Pure. */
bool srun_is_dropped(const char *variable);

/* A line on standard error that says nothing: the end of a task is told otherwise. Pure. */
bool srun_is_noise(const char *line);

/* For link_end_explain. */
extern const struct link_program srun_program;

#endif
