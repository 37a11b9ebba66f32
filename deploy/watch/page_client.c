/* Asks a live page for its events. */
#include "deploy/watch/page_client.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/number.h"
#include "common/live/live_json.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SCHEME     "http://"
#define HOST_BYTES 256
#define BUFFER_MAX (LIVE_JSON_BYTES_MAX + 64)

struct page_client {
    int fd;
    bool has_head; // of the answer; events follow
    char *buffer;  // (BUFFER_MAX + 1), owned
    size_t used;
};

struct address {
    char host[HOST_BYTES], port[8];
    const char *query; // from the question mark on; "": none
};

bool page_client_is_url(const char *text)
{
    return strncmp(text, SCHEME, strlen(SCHEME)) == 0;
}

/* "HOST:PORT/?token=T" */
static bool read_url(const char *url, struct address *ret_address)
{
    const char *at = url + strlen(SCHEME);
    size_t size = at[0] == '[' ? strcspn(at, "]") : strcspn(at, ":/?");
    bool is_bracketed = at[0] == '[' && at[size] == ']';
    const char *rest = at + size + is_bracketed;
    size_t port_size = rest[0] == ':' ? strcspn(rest + 1, "/?") : 0;
    uint64_t port;
    if (size == 0 || size >= HOST_BYTES || !number_whole(rest + 1, port_size, 65535, &port)) {
        return false;
    }
    snprintf(ret_address->host, HOST_BYTES, "%.*s", (int)(size - is_bracketed), at + is_bracketed);
    snprintf(ret_address->port, sizeof(ret_address->port), "%u", (unsigned)port);
    ret_address->query = strchr(rest, '?');
    ret_address->query = ret_address->query != NULL ? ret_address->query : "";
    return strpbrk(ret_address->query, " \r\n") == NULL;
}

static int connect_to(const struct address *address)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int fd = -1, error = getaddrinfo(address->host, address->port, &hints, &list);
    if (error != 0) {
        log_error("cannot find %s: %s", address->host, gai_strerror(error));
        return -1;
    }
    for (const struct addrinfo *one = list; one != NULL && fd < 0; one = one->ai_next) {
        fd = socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
        if (fd >= 0 && connect(fd, one->ai_addr, one->ai_addrlen) != 0) {
            int why = errno;
            close(fd);
            errno = why;
            fd = -1;
        }
    }
    if (fd < 0) {
        log_error("cannot connect to %s port %s: %m; has the job ended?", address->host,
                  address->port);
    }
    freeaddrinfo(list);
    return fd;
}

/* HTTP 1.0, whose answers come in one piece. */
static bool send_request(int fd, const struct address *address)
{
    char request[2048];
    bool is_ipv6 = strchr(address->host, ':') != NULL;
    int size = snprintf(request, sizeof(request), "GET /events%s HTTP/1.0\r\nHost: %s%s%s\r\n\r\n",
                        address->query, is_ipv6 ? "[" : "", address->host, is_ipv6 ? "]" : "");
    return size > 0 && (size_t)size < sizeof(request) &&
           send(fd, request, (size_t)size, MSG_NOSIGNAL) == size;
}

enum status page_client_open(const char *url, struct page_client **ret_client)
{
    struct address address;
    if (!read_url(url, &address)) {
        log_error(
            "'%.200s' is not the address of a live page, which is http://HOST:PORT/?token=...",
            url);
        return STATUS_INVALID;
    }
    struct page_client *client = calloc(1, sizeof(*client));
    if (client == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = STATUS_NO_MEMORY;
    client->fd = -1;
    client->buffer = malloc(BUFFER_MAX + 1);
    if (client->buffer == NULL) {
        goto fail;
    }
    status = STATUS_UNREACHABLE;
    client->fd = connect_to(&address);
    if (client->fd < 0) {
        goto fail;
    }
    if (!send_request(client->fd, &address)) {
        log_error("cannot ask %s port %s for events", address.host, address.port);
        goto fail;
    }
    *ret_client = client;
    return STATUS_OK;
fail:
    page_client_close(client);
    return status;
}

void page_client_close(struct page_client *client)
{
    if (client != NULL) {
        if (client->fd >= 0) {
            close(client->fd);
        }
        free(client->buffer);
        free(client);
    }
}

static void drop(struct page_client *client, size_t size)
{
    client->used -= size;
    memmove(client->buffer, client->buffer + size, client->used);
    client->buffer[client->used] = '\0';
}

/* The head of the answer. STATUS_AGAIN if it is not whole yet. */
static enum status take_head(struct page_client *client)
{
    const char *end = strstr(client->buffer, "\r\n\r\n");
    if (end == NULL) {
        return STATUS_AGAIN;
    }
    static const char version[] = "HTTP/1.x ";
    uint64_t code = 0;
    bool is_http = strncmp(client->buffer, version, sizeof("HTTP/1.") - 1) == 0;
    if (!is_http || !number_whole(client->buffer + sizeof(version) - 1, 3, 999, &code) ||
        code != 200) {
        log_error("the page does not answer with events but with %.*s: %s",
                  (int)strcspn(client->buffer, "\r\n"), client->buffer,
                  code == 403 ? "give its whole address, with the token"
                              : "is it a live page of Ringside?");
        return STATUS_DENIED;
    }
    client->has_head = true;
    drop(client, (size_t)(end - client->buffer) + 4);
    return STATUS_OK;
}

/* A whole event in the buffer. STATUS_AGAIN if there is none. */
static enum status take_event(struct page_client *client, struct live_state *ret_state)
{
    static const char data[] = "data: ";
    const char *end = strstr(client->buffer, "\n\n");
    if (end == NULL) {
        return STATUS_AGAIN;
    }
    size_t size = (size_t)(end - client->buffer);
    bool is_data = strncmp(client->buffer, data, sizeof(data) - 1) == 0;
    enum status status = is_data ? live_json_read(client->buffer + sizeof(data) - 1,
                                                  size - (sizeof(data) - 1), ret_state)
                                 : STATUS_MALFORMED;
    drop(client, size + 2);
    if (status == STATUS_MALFORMED) {
        log_error("the page sends what is no state of a job: is it of another version?");
    }
    return status;
}

static enum status take(struct page_client *client, struct live_state *ret_state)
{
    if (!client->has_head) {
        enum status status = take_head(client);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return take_event(client, ret_state);
}

/* Reads more, within the time. */
static enum status receive(struct page_client *client, uint64_t deadline_ms)
{
    struct pollfd ready = {.fd = client->fd, .events = POLLIN};
    uint64_t now_ms = clock_now_ms();
    int wait_ms = deadline_ms > now_ms ? (int)(deadline_ms - now_ms) : 0;
    if (client->used == BUFFER_MAX) {
        log_error("the page sends an event that is longer than any state of a job");
        return STATUS_MALFORMED;
    }
    int count = poll(&ready, 1, wait_ms);
    if (count <= 0) {
        return STATUS_TIMED_OUT; // or a signal, which the caller looks at
    }
    ssize_t got = recv(client->fd, client->buffer + client->used, BUFFER_MAX - client->used, 0);
    if (got <= 0) {
        return STATUS_END_OF_DATA;
    }
    client->used += (size_t)got;
    client->buffer[client->used] = '\0';
    return STATUS_OK;
}

enum status page_client_next(struct page_client *client, int timeout_ms,
                             struct live_state *ret_state)
{
    uint64_t deadline_ms = clock_now_ms() + (uint64_t)timeout_ms;
    for (;;) {
        enum status status = client->used > 0 ? take(client, ret_state) : STATUS_AGAIN;
        if (status != STATUS_AGAIN) {
            return status;
        }
        status = receive(client, deadline_ms);
        if (status != STATUS_OK) {
            return status;
        }
    }
}
