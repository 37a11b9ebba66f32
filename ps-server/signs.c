/* Tells the launcher where the coordinator listens, and that it is alive. */
#include "ps-server/signs.h"

#include "common/base/log.h"
#include "common/transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SIGN_MS 500

enum status signs_begin(struct signs *signs, int fd, const char *endpoint, bool goes_on)
{
    char line[TRANSPORT_ENDPOINT_BYTES + 1];
    *signs = (struct signs){.fd = fd};
    int size = snprintf(line, sizeof(line), "%s\n", endpoint);
    if (fd >= 0 && write(fd, line, (size_t)size) != size) {
        log_error("cannot announce the endpoint on file descriptor %d (--announce-fd)", fd);
        return STATUS_IO;
    }
    if (!goes_on) {
        signs_end(signs);
    } else if (fd >= 0) {
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
    return STATUS_OK;
}

/* Lines are short enough to be written whole, or not. */
static void say(struct signs *signs, const char *line)
{
    if (write(signs->fd, line, strlen(line)) < 0 && errno != EAGAIN && errno != EINTR) {
        signs_end(signs);
    }
}

void signs_alive(struct signs *signs, uint64_t now_ms, uint64_t patience_ms)
{
    char line[40];
    if (signs->fd < 0 || (!signs->is_busy && now_ms - signs->said_ms < SIGN_MS)) {
        return;
    }
    signs->said_ms = now_ms;
    signs->is_busy = false;
    snprintf(line, sizeof(line), "alive %llu\n", (unsigned long long)patience_ms);
    say(signs, line);
}

void signs_busy(struct signs *signs)
{
    if (signs->fd >= 0 && !signs->is_busy) {
        signs->is_busy = true;
        say(signs, "busy\n");
    }
}

void signs_end(struct signs *signs)
{
    if (signs->fd >= 0) {
        close(signs->fd);
        signs->fd = -1;
    }
}
