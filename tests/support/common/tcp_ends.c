/* One listens, the other connects. */
#include "tests/support/common/tcp_ends.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

void tcp_ends_open(int ret_ends[2])
{
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    ret_ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(ret_ends[0], (const struct sockaddr *)&address, size), 0);
    ret_ends[1] = accept(listener, NULL, NULL);
    assert_true(ret_ends[1] >= 0);
    close(listener);
}
