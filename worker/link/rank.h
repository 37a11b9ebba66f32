/* Which worker process this is, from the option and from what launchers put into the environment.
 * Where each carries one rank that is its rank.
 *
 * Two sources that contradict each other are refused: one of them belongs to another job. So is a
 * launcher that started another number of processes than the job has of workers: each of a
 * launcher's worlds of one would take itself for rank 0. --launcher says whose environment counts,
 * where one launcher runs below another. Where one command of a launcher starts ps and workers,
 * --rank-offset says how many processes come before worker 0: nobody but the user knows which of
 * them are which. */
#ifndef WORKER_LINK_RANK_H
#define WORKER_LINK_RANK_H

#include "common/base/status.h"
#include "common/options/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values of --launcher. */
enum rank_launcher {
    RANK_LAUNCHER_AUTO, // all of them
    RANK_LAUNCHER_NONE,
    RANK_LAUNCHER_TORCHRUN,
    RANK_LAUNCHER_OPEN_MPI,
    RANK_LAUNCHER_MPICH,
    RANK_LAUNCHER_SLURM,
    RANK_LAUNCHER_KUBERNETES,
};
extern const struct option_choice rank_launchers[];

/* A variable, and the launcher that sets it. RANK_LAUNCHER_AUTO: Ringside's own, which always
 * counts. */
struct rank_variable {
    enum rank_launcher launcher;
    const char *name;
};

/* The variables that a number is read from, in this order. The list ends with name == NULL. */
extern const struct rank_variable rank_variables[];
extern const struct rank_variable rank_local_variables[];
extern const struct rank_variable rank_local_size_variables[];

/* Where a number may come from. */
struct rank_sources {
    const char *option; // "--rank"; NULL if it was not given
    uint32_t option_value;
    enum rank_launcher launcher;
    uint32_t offset; // processes that come before the first worker in launchers' numbers
    const struct rank_variable *variables;
    char *(*get)(const char *name); // getenv, or a test's own
};

/* *ret_has is false, and *ret_value is 0, if no source says anything. Returns STATUS_INVALID with a
 * sentence for a contradiction, or for a value that is not a number. */
enum status rank_resolve(const struct rank_sources *sources, bool *ret_has, uint32_t *ret_value,
                         char *ret_error, size_t error_size);

/* Checks that the launchers that gave this process a rank started as many processes, after the
 * first `offset` ones, as the job has workers. (Without a rank the number means nothing: every
 * Slurm allocation has one.) Returns STATUS_MISMATCH with a sentence. */
enum status rank_check_size(enum rank_launcher launcher, uint32_t offset, uint32_t workers,
                            char *(*get)(const char *name), char *ret_error, size_t error_size);

#endif
