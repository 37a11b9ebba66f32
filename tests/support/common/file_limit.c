/* Limits how long files of this process may become. */
#include "tests/support/common/file_limit.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <signal.h>
#include <sys/resource.h>

static struct rlimit before;
static void (*handler)(int);

void file_limit_begin(size_t bytes)
{
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit less = {bytes, before.rlim_max};
    handler = signal(SIGXFSZ, SIG_IGN); // the write fails instead
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
}

void file_limit_end(void)
{
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
}
