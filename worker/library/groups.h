/* Groups of parameters in the handle: what the program has said of them, and what a step uses. */
#ifndef WORKER_LIBRARY_GROUPS_H
#define WORKER_LIBRARY_GROUPS_H

#include "common/base/status.h"

struct ringside;
struct handle_groups;
struct optimizer_groups;

void handle_groups_destroy(struct handle_groups *of); // NULL is fine

/* What the others hear of the groups; NULL: there are none. Borrowed. */
const struct optimizer_groups *handle_groups_start(const struct ringside *ringside);

/* Once the job's optimizer is known and made: it has the groups from here on. STATUS_NO_MEMORY. */
enum status handle_groups_begin(struct ringside *ringside);

/* Before the first gradient of a step, when the last step is over: from here on it has what the
 * program has said by now. */
void handle_groups_begin_step(struct ringside *ringside);

/* At the end of a step, before its updates: its settings go to the optimizer. Returns the learning
 * rate to apply it with, and the rate of the first group. */
double handle_groups_end_step(struct ringside *ringside, double schedule_rate, double *ret_first);

#endif
