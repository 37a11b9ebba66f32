/* The allocation of Slurm that the launcher runs in: its nodes, and how many workers each takes.
 *
 * Each node takes as many workers as Slurm was asked to run tasks there (--ntasks and its like).
 * Where nothing was said of tasks it takes one for each of its GPUs, or one. */
#ifndef DEPLOY_HOSTS_ALLOCATION_H
#define DEPLOY_HOSTS_ALLOCATION_H

#include "common/base/status.h"
#include "common/options/options.h"
#include "deploy/hosts/hosts.h"

#include <stdbool.h>

/* Zeroed: there is none. */
struct allocation {
    char job[32];              // its id; "": there is none
    char own[HOST_NAME_BYTES]; // the node that we run on; "": none of them
    char gpus[32];             // what a step must ask for to get all GPUs of a node; "": nothing
    struct hosts hosts;        // its nodes, with what each takes
};

/* We are in one. `get` is getenv, or a test's own. Pure. */
bool allocation_is_there(char *(*get)(const char *name));

/* From what Slurm has put into the environment; `names` has a node a line, as of `scontrol show
 * hostnames`. Where has_hosts is set, the user says what each node takes, and Slurm is not asked.
 * STATUS_INVALID with a sentence for what contradicts itself, and for what is not one launcher in
 * one allocation. Pure. */
enum status allocation_make(char *(*get)(const char *name), const char *names, bool has_hosts,
                            struct allocation *ret_allocation, char ret_error[OPTION_ERROR_BYTES]);

/* The one that we are in; asks scontrol. STATUS_INVALID with a sentence. */
enum status allocation_read(bool has_hosts, struct allocation *ret_allocation,
                            char ret_error[OPTION_ERROR_BYTES]);

/* All hosts are nodes of it; STATUS_INVALID with a sentence if one is not. Pure. */
enum status allocation_check(const struct allocation *allocation, const struct hosts *hosts,
                             char ret_error[OPTION_ERROR_BYTES]);

#endif
