/* Makes the command lines of srun, and explains its failures. */
#include "deploy/hosts/srun_command.h"

#include <stdio.h>
#include <string.h>

void srun_command_make(struct srun_command *command, const struct allocation *allocation,
                       const char *node, const char *script)
{
    static const char *const own[] = {
        "srun",
        "--nodes=1",
        "--ntasks=1",
        "--overlap", // other steps may run there as well
        "--whole",   // all cores that the job has there, instead of one
        "--mem=0",   // all memory, too
        "--cpu-bind=none",
        "--mpi=none",
        "--export=ALL",
        "--quiet",
        "--job-name=ringside",
    };
    size_t count = 0;
    for (; count < sizeof(own) / sizeof(own[0]); count++) {
        command->argv[count] = own[count];
    }
    snprintf(command->node, sizeof(command->node), "--nodelist=%s", node);
    snprintf(command->script, sizeof(command->script), "exec %s", script);
    command->argv[count++] = command->node;
    if (allocation->gpus[0] != '\0') {
        snprintf(command->gpus, sizeof(command->gpus), "--gres=%s", allocation->gpus);
        command->argv[count++] = command->gpus;
    }
    command->argv[count++] = "sh";
    command->argv[count++] = "-c";
    command->argv[count++] = command->script;
    command->argv[count] = NULL;
}

bool srun_is_dropped(const char *variable)
{
    static const char *const prefixes[] = {"SLURM_", "SLURMD_", "SRUN_", "SSH_CONNECTION"};
    static const char *const kept[] = {"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JOB_ID",
                                       "SLURM_JWT", "SLURM_WORKING_CLUSTER"};
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        if (strcmp(variable, kept[i]) == 0) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

bool srun_is_noise(const char *line)
{
    return strstr(line, "lacks support for cpu binding") != NULL ||
           (strstr(line, ": task 0: ") != NULL && strstr(line, "xit") != NULL);
}

/* Messages of srun, and what helps. */
static const struct advice advices[] = {
    {"generic resource", "ask Slurm for GPUs per node: --gpus-per-node"},
    {"Requested node configuration", "is %s up, and still part of the job? (sinfo, squeue)"},
    {"Invalid job id", "is the job still there? (squeue)"},
    {"CANCELLED", "it was cancelled, or its time is over (sacct)"},
    {"Force Terminated", "it was cancelled, or its time is over (sacct)"},
    {"error while loading shared libraries",
     "%s lacks a library: install what deploy/install-dependencies lists there"},
};

#define NOT_FOUND "srun, or ringside there, cannot run"
#define NOT_FOUND_ADVICE \
    "install ringside in a folder that %s sees as well, or say where it is with --remote-ringside"

const struct link_program srun_program = {
    .name = "srun",
    .advices = advices,
    .advice_count = sizeof(advices) / sizeof(advices[0]),
    .otherwise = "`srun --overlap --nodes=1 --nodelist=%s true` has to work",
    .own_exit_code = -1,
    .agent = "its step of srun",
    .not_found = NOT_FOUND,
    .not_found_advice = NOT_FOUND_ADVICE,
    .not_runnable = NOT_FOUND,
    .not_runnable_advice = NOT_FOUND_ADVICE,
};
