/* Listens, connects, and fails the test where that does not work. */
#include "tests/support/common/listener.h"

#include "tests/support/common/patience.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

void listener_open(struct listener *listener)
{
    socklen_t size = sizeof(listener->address);
    listener->address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listener->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(listener->fd >= 0);
    assert_int_equal(bind(listener->fd, (struct sockaddr *)&listener->address, size), 0);
    assert_int_equal(listen(listener->fd, 1024), 0);
    assert_int_equal(getsockname(listener->fd, (struct sockaddr *)&listener->address, &size), 0);
}

int listener_visit(const struct listener *listener, unsigned char last,
                   char address[DOOR_ADDRESS_BYTES])
{
    struct sockaddr_in own = {.sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + last)};
    socklen_t size = sizeof(own);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&listener->address, sizeof(own)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &size), 0);
    snprintf(address, DOOR_ADDRESS_BYTES, "127.0.0.%u:%u", last, ntohs(own.sin_port));
    return fd;
}

void listener_assert_closed(int fd)
{
    struct pollfd item = {.fd = fd, .events = POLLIN};
    char byte;
    assert_int_equal(poll(&item, 1, patience_ms(10000)), 1);
    assert_true(read(fd, &byte, 1) <= 0);
}

struct rlimit listener_limit_descriptors(rlim_t count)
{
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = count;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return before;
}
