/* Limits of waits, from the environment. */
#include "tests/support/common/patience.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <limits.h>
#include <stdlib.h>

#define FACTOR_MAX 100

int patience_ms(int limit_ms)
{
    const char *text = getenv("RINGSIDE_TEST_PATIENCE");
    if (text == NULL || text[0] == '\0') {
        return limit_ms;
    }
    char *end;
    long factor = strtol(text, &end, 10);
    if (*end != '\0' || factor < 1 || factor > FACTOR_MAX) {
        fail_msg("RINGSIDE_TEST_PATIENCE is \"%s\": give a whole number from 1 to %d", text,
                 FACTOR_MAX);
    }
    return limit_ms > INT_MAX / (int)factor ? INT_MAX : limit_ms * (int)factor;
}
