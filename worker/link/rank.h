/* Which rank this process has, from the option and from what launchers put into the environment.
 *
 * Two sources that contradict each other are refused: one of them belongs to another job. So is a
 * launcher that started another number of processes than the job has workers: each of a launcher's
 * worlds of one would take itself for rank 0. --launcher says whose environment counts, where one
 * launcher runs below another. Where one command of a launcher starts ps and workers, --rank-offset
 * says how many processes come before worker 0: nobody but the user knows which of them are which.
 */
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

/* A variable, and which launcher sets it. RANK_LAUNCHER_AUTO: our own, which always counts. */
struct rank_variable {
    enum rank_launcher launcher;
    const char *name;
};

/* What a number is read from, in this order; the list ends with name == NULL. */
extern const struct rank_variable rank_variables[];
extern const struct rank_variable rank_local_variables[];
extern const struct rank_variable rank_local_size_variables[];

/* Where a number may come from. */
struct rank_sources {
    const char *option; // "--rank"; NULL if it was not given
    uint32_t option_value;
    enum rank_launcher launcher;
    uint32_t offset; // of launchers' numbers: processes before the first that is meant
    const struct rank_variable *variables;
    char *(*get)(const char *name); // getenv, or a test's own
};

/* *ret_has is false if no source says anything; then *ret_value is 0. STATUS_INVALID with a
 * sentence for a contradiction, or for what is no number. */
enum status rank_resolve(const struct rank_sources *sources, bool *ret_has, uint32_t *ret_value,
                         char *ret_error, size_t error_size);

/* Whether the launchers that gave this process a rank have started as many as the job has workers,
 * behind the `offset` others.
 * (The number alone says nothing: an allocation of Slurm has it, too.) STATUS_MISMATCH with a
 * sentence. */
enum status rank_check_size(enum rank_launcher launcher, uint32_t offset, uint32_t workers,
                            char *(*get)(const char *name), char *ret_error, size_t error_size);

#endif
