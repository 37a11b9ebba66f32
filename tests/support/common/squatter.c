/* A child that listens. */
#include "tests/support/common/squatter.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HEARD_NOTHING, HEARD_SOMETHING, NOT_THERE };

/* In the child: never returns. */
static void listen_as(const struct squatter *squatter, uid_t user, int ready)
{
    char byte;
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool listens =
        setuid(user) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
        bind(listener, (const struct sockaddr *)&squatter->address, squatter->size) == 0 &&
        listen(listener, 4) == 0 && write(ready, "x", 1) == 1;
    int guest = listens ? accept(listener, NULL, NULL) : -1;
    if (guest < 0) {
        _exit(NOT_THERE);
    }
    _exit(read(guest, &byte, 1) > 0 ? HEARD_SOMETHING : HEARD_NOTHING);
}

void squatter_open(struct squatter *squatter, const char *prefix, uid_t user)
{
    static unsigned serial;
    int ready[2];
    char byte;
    squatter->address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int wrote = snprintf(squatter->address.sun_path + 1, sizeof(squatter->address.sun_path) - 1,
                         "%stest-%ld-%u", prefix, (long)getpid(), serial++);
    squatter->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)wrote);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    squatter->child = fork();
    if (squatter->child == 0) {
        listen_as(squatter, user, ready[1]);
    }
    assert_true(squatter->child > 0);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
}

bool squatter_close(const struct squatter *squatter)
{
    int result;
    assert_int_equal(waitpid(squatter->child, &result, 0), squatter->child);
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) != NOT_THERE);
    return WEXITSTATUS(result) == HEARD_SOMETHING;
}
