/* Judges how the job of a scenario has ended. */
#ifndef TESTS_SIM_JUDGE_H
#define TESTS_SIM_JUDGE_H

#include "tests/sim/cluster.h"
#include "tests/sim/scenario.h"

#include <stdbool.h>

/* NULL, or which promise was broken. */
const char *judge(const struct scenario *scenario, const struct cluster *cluster, bool has_ended);

#endif
