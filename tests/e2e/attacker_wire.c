/* ZMTP 3 (RFC 23) without keys, by hand. */
#include "tests/e2e/attacker_wire.h"

#include "common/base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define GREETING_BYTES 64
#define PATIENCE_MS    300  // for who does not take what we say
#define HANDSHAKE_MS   2000 // for who does not end it

enum frame_flag { FRAME_MORE = 1, FRAME_LONG = 2, FRAME_COMMAND = 4 };

static const unsigned char greeting[GREETING_BYTES] = "\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL";
static const char ready_dealer[] = "\5READY\xbSocket-Type\0\0\0\6DEALER\x8Identity\0\0\0";
static const char ready_router[] = "\5READY\xbSocket-Type\0\0\0\6ROUTER\x8Identity\0\0\0";

socklen_t attacker_wire_address(const char *endpoint, struct sockaddr_storage *ret_address)
{
    memset(ret_address, 0, sizeof(*ret_address));
    if (strncmp(endpoint, "tcp://", 6) == 0) {
        struct sockaddr_in tcp = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        tcp.sin_port = htons((uint16_t)strtoul(strrchr(endpoint, ':') + 1, NULL, 10));
        memcpy(ret_address, &tcp, sizeof(tcp));
        return sizeof(tcp);
    }
    const char *name = strncmp(endpoint, "ipc://", 6) == 0 ? endpoint + 6 : endpoint;
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    size_t size = strlen(name);
    if (size == 0 || size >= sizeof(un.sun_path)) {
        return 0;
    }
    memcpy(un.sun_path, name, size);
    if (name[0] == '@') {
        un.sun_path[0] = '\0'; // abstract: as many bytes as the name has
    } else {
        size++;
    }
    memcpy(ret_address, &un, sizeof(un));
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
}

static void say_bytes(struct attacker_wire *wire, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    while (wire->fd >= 0 && size > 0) {
        ssize_t sent = send(wire->fd, at, size, MSG_NOSIGNAL);
        if (sent < 0) {
            attacker_wire_close(wire);
            return;
        }
        at += sent;
        size -= (size_t)sent;
    }
}

static void say_frame(struct attacker_wire *wire, int flags, const void *bytes, size_t size)
{
    unsigned char head[9] = {(unsigned char)(flags | FRAME_LONG)};
    for (size_t i = 0; i < 8; i++) {
        head[8 - i] = (unsigned char)((uint64_t)size >> (8 * i));
    }
    if (size < 256) {
        head[0] = (unsigned char)flags;
        head[1] = (unsigned char)size;
    }
    say_bytes(wire, head, size < 256 ? 2 : 9);
    say_bytes(wire, bytes, size);
}

/* Nobody is waited for for ever. */
static void begin(struct attacker_wire *wire, const char *ready, size_t ready_size)
{
    const struct timeval patience = {.tv_usec = 1000L * PATIENCE_MS};
    setsockopt(wire->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    wire->bytes = malloc(HEARD_BYTES);
    if (wire->bytes == NULL) {
        attacker_wire_close(wire);
        return;
    }
    say_bytes(wire, greeting, sizeof(greeting));
    say_frame(wire, FRAME_COMMAND, ready, ready_size);
}

bool attacker_wire_connect(struct attacker_wire *wire, const char *endpoint)
{
    struct sockaddr_storage address;
    socklen_t size = attacker_wire_address(endpoint, &address);
    *wire = (struct attacker_wire){.endpoint = endpoint, .fd = -1};
    if (size == 0) {
        return false;
    }
    wire->fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // Past our own door.
    if (syscall(SYS_connect, wire->fd, &address, size) != 0) {
        attacker_wire_close(wire);
        return false;
    }
    if (strncmp(endpoint, "ipc:///proc/", strlen("ipc:///proc/")) == 0) {
        printf("read reached %s\n", endpoint); // where nobody else is to get
    }
    begin(wire, ready_dealer, sizeof(ready_dealer));
    return wire->fd >= 0;
}

void attacker_wire_accept(struct attacker_wire *wire, int listener)
{
    *wire = (struct attacker_wire){.endpoint = "one who has come to us"};
    wire->fd = (int)syscall(SYS_accept4, listener, NULL, NULL, SOCK_CLOEXEC);
    if (wire->fd >= 0) {
        begin(wire, ready_router, sizeof(ready_router));
    }
}

void attacker_wire_close(struct attacker_wire *wire)
{
    if (wire->fd >= 0) {
        close(wire->fd);
    }
    wire->fd = -1;
    free(wire->bytes);
    wire->bytes = NULL;
    wire->heard = 0;
}

static void hear_bytes(struct attacker_wire *wire)
{
    while (wire->fd >= 0 && wire->heard < HEARD_BYTES) {
        ssize_t got =
            recv(wire->fd, wire->bytes + wire->heard, HEARD_BYTES - wire->heard, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (got <= 0) {
            wire->is_over = true; // what has come before is looked at all the same
            return;
        }
        wire->heard += (size_t)got;
    }
}

static void drop(struct attacker_wire *wire, size_t size)
{
    memmove(wire->bytes, wire->bytes + size, wire->heard - size);
    wire->heard -= size;
}

/* The next whole frame that has come, behind its head; false: there is none. */
static bool find_frame(const struct attacker_wire *wire, size_t *ret_head, size_t *ret_size)
{
    if (wire->bytes == NULL || wire->heard < 2) {
        return false;
    }
    bool is_long = (wire->bytes[0] & FRAME_LONG) != 0;
    uint64_t size = is_long ? 0 : wire->bytes[1];
    if (is_long && wire->heard < 9) {
        return false;
    }
    for (size_t i = 1; is_long && i < 9; i++) {
        size = size << 8 | wire->bytes[i];
    }
    *ret_head = is_long ? 9 : 2;
    *ret_size = (size_t)size;
    return size <= HEARD_BYTES && wire->heard >= *ret_head + *ret_size;
}

/* Decodes a header with the payload behind it, where there is one. */
static bool decode(const struct attacker_wire *wire, const void *payload, size_t size,
                   struct message *ret_message)
{
    static struct wire_scratch scratch;
    static float floats[HEARD_BYTES / sizeof(float)];
    uint32_t version;
    if (size > 0) {
        memcpy(floats, payload, size);
    }
    const struct wire_frames frames = {wire->header, wire->header_size, size > 0 ? floats : NULL,
                                       size};
    return wire_decode(&frames, &scratch, &version, ret_message) == STATUS_OK;
}

bool attacker_wire_hear(struct attacker_wire *wire, struct message *ret_message)
{
    size_t head, size;
    hear_bytes(wire);
    if (!wire->is_greeted && wire->bytes != NULL && wire->heard >= GREETING_BYTES) {
        wire->is_greeted = true;
        drop(wire, GREETING_BYTES);
    }
    bool is_whole = false;
    while (wire->is_greeted && !is_whole && find_frame(wire, &head, &size)) {
        int flags = wire->bytes[0];
        wire->is_open = true; // the first frame is READY
        bool is_header = (flags & FRAME_COMMAND) == 0 && wire->header_size == 0;
        if (is_header && size <= sizeof(wire->header)) {
            memcpy(wire->header, wire->bytes + head, size);
            wire->header_size = size;
        }
        if (wire->header_size > 0 && (flags & (FRAME_COMMAND | FRAME_MORE)) == 0) {
            const unsigned char *payload = wire->bytes + head;
            is_whole = decode(wire, payload, is_header ? 0 : size, ret_message);
            wire->header_size = 0;
        }
        drop(wire, head + size);
    }
    return is_whole;
}

static void await_handshake(struct attacker_wire *wire)
{
    struct message message;
    const uint64_t until_ms = clock_now_ms() + HANDSHAKE_MS;
    while (wire->fd >= 0 && !wire->is_open && !wire->is_over) {
        uint64_t now_ms = clock_now_ms();
        struct pollfd polled = {.fd = wire->fd, .events = POLLIN};
        if (now_ms >= until_ms || poll(&polled, 1, (int)(until_ms - now_ms)) < 0) {
            break;
        }
        (void)attacker_wire_hear(wire, &message); // nobody says anything first
    }
    if (!wire->is_open) {
        attacker_wire_close(wire);
    }
}

void attacker_wire_say(struct attacker_wire *wire, const struct message *message)
{
    static unsigned char header[WIRE_HEADER_BYTES];
    size_t size;
    await_handshake(wire);
    if (wire->fd < 0 || wire_encode(message, header, sizeof(header), &size) != STATUS_OK) {
        return;
    }
    bool has_values = message->values != NULL;
    say_frame(wire, has_values ? FRAME_MORE : 0, header, size);
    if (has_values) {
        say_frame(wire, 0, message->values, message->span.count * sizeof(float));
    }
}
