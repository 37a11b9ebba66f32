/* Which rank this process has, from the option and from what launchers put into the environment.
 *
 * Two sources that contradict each other are refused: one of them belongs to another job. */
#ifndef WORKER_RANK_H
#define WORKER_RANK_H

#include "common/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a number is read from, in this order; the list ends with NULL. */
extern const char *const rank_variables[];
extern const char *const local_rank_variables[];
extern const char *const local_size_variables[];

/* Where a number may come from. */
struct rank_sources {
    const char *option; // "--rank"; NULL if it was not given
    uint32_t option_value;
    const char *const *variables;
    char *(*get)(const char *name); // getenv, or a test's own
};

/* *ret_has is false if no source says anything; then *ret_value is 0. STATUS_INVALID with a
 * sentence for a contradiction, or for what is no number. */
enum status rank_resolve(const struct rank_sources *sources, bool *ret_has, uint32_t *ret_value,
                         char *ret_error, size_t error_size);

#endif
