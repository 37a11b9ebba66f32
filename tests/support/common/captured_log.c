/* Standard error in a file without a name. */
#include "tests/support/common/captured_log.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static char text[64 * 1024];
static int original = -1;

void captured_log_begin(void)
{
    assert_int_equal(original, -1);
    fflush(stderr);
    original = dup(STDERR_FILENO);
    int capture = memfd_create("captured log", MFD_CLOEXEC);
    assert_true(original >= 0 && capture >= 0);
    // As a log that several write to is opened: no line lands on another.
    assert_int_equal(fcntl(capture, F_SETFL, O_APPEND), 0);
    assert_int_equal(dup2(capture, STDERR_FILENO), STDERR_FILENO);
    close(capture);
}

const char *captured_log_end(void)
{
    assert_true(original >= 0);
    fflush(stderr);
    ssize_t size = pread(STDERR_FILENO, text, sizeof(text) - 1, 0);
    assert_int_equal(dup2(original, STDERR_FILENO), STDERR_FILENO);
    close(original);
    original = -1;
    assert_true(size >= 0);
    text[size] = '\0';
    return text;
}

int captured_log_drop(void **state)
{
    (void)state;
    if (original >= 0) {
        fputs(captured_log_end(), stderr);
    }
    return 0;
}
