/* What comes after a job that writes checkpoints: the disk goes through what its plan says, and the
 * job is resumed. scenario.h has what is promised. */
#ifndef TESTS_SIM_AFTERMATH_H
#define TESTS_SIM_AFTERMATH_H

#include "tests/sim/cluster.h"
#include "tests/sim/scenario.h"

/* Of a job that has ended, in its world, which another one follows. NULL, or which promise was
 * broken. */
const char *aftermath_judge(const struct scenario *scenario, const struct cluster *cluster);

#endif
