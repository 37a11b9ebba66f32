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

/* `option_name` with its value if has_option. get is getenv, or a test's own. *ret_has is false if
 * no source says anything. STATUS_INVALID with a sentence for a contradiction, or for what is no
 * number. */
enum status rank_resolve(const char *option_name, bool has_option, uint32_t option_value,
                         const char *const *variables, char *(*get)(const char *name),
                         bool *ret_has, uint32_t *ret_value, char *ret_error, size_t error_size);

#endif
