/* Tells the launcher where the coordinator listens, and that it is alive. */
#include "ps-server/launcher/signs.h"

#include "common/base/log.h"
#include "common/transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SIGN_MS     500
#define ALIVE_BYTES 40 // of a line

static void alive_line(uint64_t patience_ms, char ret_line[ALIVE_BYTES])
{
    snprintf(ret_line, ALIVE_BYTES, "alive %llu\n", (unsigned long long)patience_ms);
}

void signs_preparing(struct signs *signs, int fd, uint64_t now_ms, uint64_t patience_ms)
{
    char line[ALIVE_BYTES];
    if (signs->has_begun || fd < 0 || now_ms - signs->said_ms < SIGN_MS) {
        return;
    }
    signs->said_ms = now_ms;
    alive_line(patience_ms, line);
    if (write(fd, line, strlen(line)) < 0) {
        log_debug("nobody hears that the coordinator is alive: %m");
    }
}

enum status signs_begin(struct signs *signs, int fd, const char *endpoint, bool goes_on)
{
    char line[TRANSPORT_ENDPOINT_BYTES + 1];
    *signs = (struct signs){.fd = fd, .has_begun = true};
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

/* Lines are short enough to be written whole, or not. Returns whether this one was. */
static bool say(struct signs *signs, const char *line)
{
    ssize_t written = write(signs->fd, line, strlen(line));
    if (written < 0 && errno != EAGAIN && errno != EINTR) {
        signs_end(signs);
    }
    return written > 0;
}

void signs_alive(struct signs *signs, uint64_t now_ms, uint64_t patience_ms)
{
    char line[ALIVE_BYTES];
    if (signs->fd < 0 || (!signs->is_busy && now_ms - signs->said_ms < SIGN_MS)) {
        return;
    }
    signs->said_ms = now_ms;
    signs->is_busy = false;
    alive_line(patience_ms, line);
    (void)say(signs, line);
}

void signs_busy(struct signs *signs)
{
    if (signs->fd >= 0 && !signs->is_busy) {
        signs->is_busy = true;
        (void)say(signs, "busy\n");
    }
}

void signs_await(struct signs *signs, const char *role, uint32_t number)
{
    char line[48];
    snprintf(line, sizeof(line), "await %s %u\n", role, number);
    if (signs->fd >= 0 && !say(signs, line)) {
        log_error("cannot tell the launcher to start %s %u again (--announce-fd)", role, number);
    }
}

void signs_training(struct signs *signs)
{
    if (signs->fd >= 0 && !signs->trains) {
        signs->trains = say(signs, "training\n");
    }
}

void signs_renewed(struct signs *signs, uint32_t heard)
{
    char line[32];
    snprintf(line, sizeof(line), "renewed %u\n", heard);
    if (signs->fd >= 0 && heard > signs->renewed && say(signs, line)) {
        signs->renewed = heard;
    }
}

void signs_ending(struct signs *signs)
{
    if (signs->fd >= 0 && !signs->ends) {
        signs->ends = say(signs, "ending\n");
    }
}

void signs_recorded(struct signs *signs)
{
    if (signs->fd >= 0) {
        (void)say(signs, "recorded\n");
    }
}

void signs_end(struct signs *signs)
{
    if (signs->fd >= 0) {
        close(signs->fd);
        signs->fd = -1;
    }
}
