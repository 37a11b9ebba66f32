/* The backends that tests of devices run on. */
#ifndef TESTS_SUPPORT_MODEL_TESTED_BACKENDS_H
#define TESTS_SUPPORT_MODEL_TESTED_BACKENDS_H

#include "worker/device/device.h"

/* Those of this build that can be used here, NULL-terminated, static. Prints which are left out,
 * and why. With RINGSIDE_REQUIRE_CUDA=1 the test fails unless cuda is among them: a machine that is
 * there for its GPU must not pass without it. */
const struct device_ops *const *tested_backends(void);

#endif
