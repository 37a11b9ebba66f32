/* Listens and connects, to see whether hosts reach each other. */
#include "deploy/agent/agent_reach.h"

#include "common/transport/port_range.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 1024

static bool make_address(const char *text, uint32_t port, struct sockaddr_in *ret_address)
{
    *ret_address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    return port <= UINT16_MAX && inet_pton(AF_INET, text, &ret_address->sin_addr) == 1;
}

/* A socket that listens, or the error number below zero. */
static int listen_at(const char *text, uint32_t port)
{
    struct sockaddr_in address;
    const int yes = 1;
    if (!make_address(text, port, &address)) {
        return -EADDRNOTAVAIL;
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -errno;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, BACKLOG) != 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

static void describe(int error, char *ret_text, size_t text_size)
{
    char text[128];
    snprintf(ret_text, text_size, "%s", strerror_r(error, text, sizeof(text)));
}

void reach_listen(struct reach *reach, const struct agent_message *command)
{
    struct port_range range = {0, 0}; // port 0: any
    char text[128] = "";
    struct agent_message answer = {.kind = AGENT_LISTENING, .text = text};
    int fd = -EADDRINUSE;
    reach_close(reach);
    if (strcmp(command->ports, "*") != 0 && !port_range_parse(command->ports, &range)) {
        fd = -EINVAL;
    }
    for (uint32_t port = range.first; fd == -EADDRINUSE && port <= range.last; port++) {
        fd = listen_at(command->address, port);
    }
    struct sockaddr_in own = {0};
    socklen_t size = sizeof(own);
    if (fd < 0) {
        describe(-fd, text, sizeof(text));
    } else {
        getsockname(fd, (struct sockaddr *)&own, &size);
        reach->listener = fd;
        answer.port = ntohs(own.sin_port);
    }
    reach->port.say(reach->port.context, &answer);
}

static void say_connected(struct reach *reach, uint32_t id, const char *text)
{
    const struct agent_message answer = {.kind = AGENT_CONNECTED, .id = id, .text = text};
    reach->port.say(reach->port.context, &answer);
}

static void say_failed(struct reach *reach, uint32_t id, int error)
{
    char text[128];
    describe(error, text, sizeof(text));
    say_connected(reach, id, text);
}

void reach_connect(struct reach *reach, const struct agent_message *command, uint64_t now_ms)
{
    struct sockaddr_in address;
    if (!make_address(command->address, command->port, &address)) {
        say_failed(reach, command->id, EADDRNOTAVAIL);
        return;
    }
    int fd = reach->connect_count < AGENT_CONNECTS_MAX
                 ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
                 : -1;
    if (fd < 0) {
        say_failed(reach, command->id, EMFILE);
        return;
    }
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 &&
        errno != EINPROGRESS) {
        say_failed(reach, command->id, errno);
        close(fd);
        return;
    }
    reach->connects[reach->connect_count++] =
        (struct reach_connect){.id = command->id,
                               .fd = fd,
                               .timeout_ms = command->timeout_ms,
                               .deadline_ms = now_ms + command->timeout_ms};
}

void reach_add_polls(const struct reach *reach, struct poll_list *polls)
{
    if (reach->listener >= 0) {
        poll_list_add(polls, reach->listener, POLLIN);
    }
    for (size_t i = 0; i < reach->connect_count; i++) {
        poll_list_add(polls, reach->connects[i].fd, POLLOUT);
    }
}

uint64_t reach_deadline_ms(const struct reach *reach)
{
    uint64_t deadline_ms = UINT64_MAX;
    for (size_t i = 0; i < reach->connect_count; i++) {
        uint64_t its_ms = reach->connects[i].deadline_ms;
        deadline_ms = its_ms < deadline_ms ? its_ms : deadline_ms;
    }
    return deadline_ms;
}

/* Whether the attempt is over, and how: said. */
static bool is_told(struct reach *reach, const struct reach_connect *attempt, uint64_t now_ms)
{
    struct pollfd item = {.fd = attempt->fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof(error);
    if (poll(&item, 1, 0) > 0) {
        getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error == 0) {
            say_connected(reach, attempt->id, "");
        } else {
            say_failed(reach, attempt->id, error);
        }
        return true;
    }
    if (now_ms < attempt->deadline_ms) {
        return false;
    }
    char text[64];
    snprintf(text, sizeof(text), "no answer within %.1f s", attempt->timeout_ms / 1000.0);
    say_connected(reach, attempt->id, text);
    return true;
}

void reach_tell(struct reach *reach, uint64_t now_ms)
{
    int fd;
    while (reach->listener >= 0 && (fd = accept4(reach->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        close(fd);
    }
    for (size_t i = 0; i < reach->connect_count;) {
        if (!is_told(reach, &reach->connects[i], now_ms)) {
            i++;
            continue;
        }
        close(reach->connects[i].fd);
        reach->connects[i] = reach->connects[--reach->connect_count];
    }
}

void reach_close(struct reach *reach)
{
    if (reach->listener >= 0) {
        close(reach->listener);
        reach->listener = -1;
    }
}

void reach_finish(struct reach *reach)
{
    reach_close(reach);
    for (size_t i = 0; i < reach->connect_count; i++) {
        close(reach->connects[i].fd);
    }
    reach->connect_count = 0;
}
