/* What lets transports of tests go without keys over tcp. */
#ifndef TESTS_SUPPORT_COMMON_INSECURE_H
#define TESTS_SUPPORT_COMMON_INSECURE_H

#include "common/security/security.h"

static const struct security test_insecure = {.is_insecure = true};

#endif
