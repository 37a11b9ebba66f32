/* Which backends can be used here, and which must be. */
#include "tests/support/model/tested_backends.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BACKENDS_MAX 8

static bool cuda_is_required(void)
{
    const char *value = getenv("RINGSIDE_REQUIRE_CUDA");
    return value != NULL && strcmp(value, "1") == 0;
}

const struct device_ops *const *tested_backends(void)
{
    static const struct device_ops *found[BACKENDS_MAX + 1];
    char why[256], why_not_cuda[256] = "it is not in this build";
    size_t count = 0;
    bool has_cuda = false;
    for (const struct device_ops *const *ops = device_backends(); *ops != NULL; ops++) {
        bool is_cuda = strcmp((*ops)->name, "cuda") == 0;
        if ((*ops)->is_available(why, sizeof(why))) {
            assert_true(count < BACKENDS_MAX);
            found[count++] = *ops;
            has_cuda = has_cuda || is_cuda;
            continue;
        }
        print_message("%s is left out: %s\n", (*ops)->name, why);
        if (is_cuda) {
            memcpy(why_not_cuda, why, sizeof(why));
        }
    }
    found[count] = NULL;
    if (!has_cuda && cuda_is_required()) {
        fail_msg("RINGSIDE_REQUIRE_CUDA=1, but cuda cannot be used: %s", why_not_cuda);
    }
    return found;
}
