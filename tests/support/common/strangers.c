/* What strangers say. */
#include "tests/support/common/strangers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// A greeting of ZMTP (RFC 23): signature, version, mechanism, whether it is a server, padding.
#define SIGNATURE "\xff\0\0\0\0\0\0\0\1\x7f"
#define ZEROS_15  "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define ZEROS_32  ZEROS_15 ZEROS_15 "\0\0"
#define NULL_3    SIGNATURE "\3\1NULL\0" ZEROS_15 ZEROS_32
#define PLAIN_3   SIGNATURE "\3\1PLAIN" ZEROS_15 ZEROS_32
#define CURVE_3   SIGNATURE "\3\1CURVE" ZEROS_15 ZEROS_32

_Static_assert(sizeof(CURVE_3) - 1 == 64 && sizeof(NULL_3) == sizeof(CURVE_3),
               "size of a greeting");

#define NOISE(text, is_half)            \
    {                                   \
        text, sizeof(text) - 1, is_half \
    }

const struct noise stranger_noises[] = {
    NOISE("GET / HTTP/1.0\r\n\r\n", false),
    NOISE("\0\0\0\0", false),
    NOISE("SSH-2.0-OpenSSH_9.2\r\n", false),
    NOISE("", true),
    NOISE("\xff", true),
    NOISE(SIGNATURE, true),
    NOISE(SIGNATURE "\3", true),
    NOISE(SIGNATURE "\0\5", false), // version 1.0 of ZMTP
    NOISE(SIGNATURE "\1\5", false), // 2.0
    NOISE(NULL_3, false),
    NOISE(PLAIN_3, false),
    NOISE(CURVE_3, true),
    NOISE(CURVE_3 "\4\5READY", false),   // a command that does not come first
    NOISE(CURVE_3 "\4\6\5HELLO", false), // too short
    NOISE(CURVE_3 "\6\xff\xff\xff\xff\xff\xff\xff\xff", false), // 2^64 - 1 bytes are to come
    NOISE(CURVE_3 "\6\0\0\0\1\0\0\0\1", false),                 // 4 GiB and one
    NOISE(CURVE_3 "\0\1x", false),                              // a message, before anything
};
const size_t stranger_noise_count = sizeof(stranger_noises) / sizeof(stranger_noises[0]);

const struct noise stranger_large_command = NOISE(CURVE_3 "\6\0\0\0\0\x19\0\0\0", true);

int stranger_say(const char *endpoint, const struct noise *noise)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons((uint16_t)strtoul(strrchr(endpoint, ':') + 1, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        return -1;
    }
    // Who is turned away at the door may not get to say it.
    ssize_t sent = send(fd, noise->bytes, noise->size, MSG_NOSIGNAL);
    (void)sent;
    return fd;
}
