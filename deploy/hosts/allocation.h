/* Finds out about the Slurm allocation that the launcher runs in: its nodes, and how many workers
 * each takes.
 *
 * Each node takes as many workers as Slurm was asked to run tasks there (--ntasks and the like). If
 * nothing was said about tasks, a node takes one worker for each of its GPUs, or one. */
#ifndef DEPLOY_HOSTS_ALLOCATION_H
#define DEPLOY_HOSTS_ALLOCATION_H

#include "common/base/status.h"
#include "common/options/options.h"
#include "deploy/hosts/hosts.h"

#include <stdbool.h>

/* Zeroed: there is none. */
struct allocation {
    char job[32];              // its id; "": there is none
    char own[HOST_NAME_BYTES]; // the node that the launcher runs on; "": none of them
    char gpus[32];             // what a step must ask for to get all GPUs of a node; "": nothing
    struct hosts hosts;        // its nodes, with the workers that each takes
};

/* Whether this process is in an allocation. `get` is getenv, or a test's own. Pure. */
bool allocation_is_there(char *(*get)(const char *name));

/* Reads what Slurm has put into the environment. `names` has one node to a line, as `scontrol show
 * hostnames` prints them. has_hosts: the user says what each node takes, so Slurm is not asked.
 * Returns STATUS_INVALID with a sentence for contradictions, and for anything but one launcher in
 * one allocation. Pure. */
enum status allocation_make(char *(*get)(const char *name), const char *names, bool has_hosts,
                            struct allocation *ret_allocation, char ret_error[OPTION_ERROR_BYTES]);

/* Reads the allocation that this process is in; asks scontrol. Returns STATUS_INVALID with a
 * sentence. */
enum status allocation_read(bool has_hosts, struct allocation *ret_allocation,
                            char ret_error[OPTION_ERROR_BYTES]);

/* Checks that all hosts are nodes of the allocation. Returns STATUS_INVALID with a sentence if one
 * is not. Pure. */
enum status allocation_check(const struct allocation *allocation, const struct hosts *hosts,
                             char ret_error[OPTION_ERROR_BYTES]);

#endif
