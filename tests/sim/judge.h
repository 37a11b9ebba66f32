/* Judges how the job of a scenario has ended. */
#ifndef TESTS_SIM_JUDGE_H
#define TESTS_SIM_JUDGE_H

#include "tests/sim/cluster.h"
#include "tests/sim/scenario.h"

#include <stdbool.h>

/* NULL, or which promise was broken. */
const char *judge(const struct scenario *scenario, const struct cluster *cluster, bool has_ended);

/* Whether a worker has ended with what an undisturbed job ends with, bit by bit: its parameters,
 * and where workers make the updates, the state of its optimizer. */
bool judge_values(const struct cluster *cluster, const struct sim_worker *training);

#endif
