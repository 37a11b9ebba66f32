/* Answers probes over HTTP, by libmicrohttpd. */
#include "common/service/health.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/transport/door.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// A probe is one short request: what takes longer is none. All connections are fewer than the
// descriptors that the door keeps for this process.
#define CONNECTIONS_MAX  32
#define CLOSING_MAX      16 // of those that were told to make room, and are not closed yet
#define BACKLOG          512
#define TIMEOUT_S        5
#define CONNECTION_BYTES 4096

/* A connection that is open. */
struct visit {
    int fd; // libmicrohttpd's; -1: none
    struct in6_addr address;
    uint64_t number; // in the order in which they came
};

struct health {
    struct MHD_Daemon *daemon; // has the socket that listens
    _Atomic bool is_ready;
    _Atomic uint64_t alive_ms;

    // Of libmicrohttpd's thread.
    struct visit visits[CONNECTIONS_MAX];
    uint64_t visit_count; // so far
};

static uint32_t count_from(const struct health *health, const struct in6_addr *address)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
        count += health->visits[i].fd >= 0 &&
                 memcmp(&health->visits[i].address, address, sizeof(*address)) == 0;
    }
    return count;
}

/* A place for one more: a free one, or that of the oldest connection from the address that has most
 * of them. So neither many half-open requests nor one address keep out a probe, whose request comes
 * with its connection. */
static struct visit *make_room(struct health *health)
{
    struct visit *found = NULL;
    uint32_t found_count = 0;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
        struct visit *visit = &health->visits[i];
        if (visit->fd < 0) {
            return visit;
        }
        uint32_t count = count_from(health, &visit->address);
        if (found == NULL || count > found_count ||
            (count == found_count && visit->number < found->number)) {
            found = visit;
            found_count = count;
        }
    }
    (void)shutdown(found->fd, SHUT_RDWR); // libmicrohttpd sees its end, and closes it
    return found;
}

static void set_visitor(struct visit *visit, const struct sockaddr *from)
{
    memset(&visit->address, 0, sizeof(visit->address));
    if (from->sa_family == AF_INET) {
        struct sockaddr_in ipv4;
        memcpy(&ipv4, from, sizeof(ipv4));
        memcpy(&visit->address, &ipv4.sin_addr, sizeof(ipv4.sin_addr));
    } else if (from->sa_family == AF_INET6) {
        struct sockaddr_in6 ipv6;
        memcpy(&ipv6, from, sizeof(ipv6));
        visit->address = ipv6.sin6_addr;
    }
}

/* Called by libmicrohttpd's thread when a connection has come, and before it is closed. */
static void note_connection(void *context, struct MHD_Connection *connection, void **state,
                            enum MHD_ConnectionNotificationCode code)
{
    struct health *health = context;
    if (code != MHD_CONNECTION_NOTIFY_STARTED) {
        struct visit *visit = *state;
        const union MHD_ConnectionInfo *own =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (visit != NULL && own != NULL && visit->fd == own->connect_fd) {
            visit->fd = -1; // unless another has its place already
        }
        return;
    }
    const union MHD_ConnectionInfo *own =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    int fd = own != NULL ? own->connect_fd : -1;
    const union MHD_ConnectionInfo *from =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    *state = NULL;
    if (fd < 0 || from == NULL) {
        return;
    }
    struct visit *visit = make_room(health);
    *visit = (struct visit){.fd = fd, .number = health->visit_count++};
    set_visitor(visit, from->client_addr);
    *state = visit;
}

static bool is_good(const struct health *health, const char *path)
{
    if (strcmp(path, "/ready") == 0) {
        return health->is_ready;
    }
    return clock_now_ms() - health->alive_ms < HEALTH_SILENCE_MS;
}

/* Called by libmicrohttpd's thread: at first with the header of a request, *state being NULL, then
 * with its end. */
// NOLINTNEXTLINE(readability-function-size): the library says what its arguments are
static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
    const struct health *health = context;
    (void)version;
    (void)upload;
    if (*state == NULL) {
        *state = connection; // anything but NULL
        return MHD_YES;
    }
    if (*upload_size != 0) {
        return MHD_NO; // a body is nothing to wait for
    }
    bool is_known = strcmp(path, "/ready") == 0 || strcmp(path, "/alive") == 0;
    bool is_get =
        strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    char text[32];
    unsigned code = MHD_HTTP_OK;
    if (!is_known || !is_get) {
        code = is_known ? MHD_HTTP_METHOD_NOT_ALLOWED : MHD_HTTP_NOT_FOUND;
        snprintf(text, sizeof(text), "/ready or /alive\n");
    } else {
        code = is_good(health, path) ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE;
        snprintf(text, sizeof(text), "%s%s\n", code == MHD_HTTP_OK ? "" : "not ", path + 1);
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY);
    if (response == NULL) {
        return MHD_NO;
    }
    enum MHD_Result result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

static enum status set_address(const char *address, uint32_t port,
                               struct sockaddr_storage *ret_storage, socklen_t *ret_size)
{
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, address, &ipv4.sin_addr) == 1) {
        memcpy(ret_storage, &ipv4, sizeof(ipv4));
        *ret_size = sizeof(ipv4);
        return STATUS_OK;
    }
    if (inet_pton(AF_INET6, address, &ipv6.sin6_addr) == 1) {
        memcpy(ret_storage, &ipv6, sizeof(ipv6));
        *ret_size = sizeof(ipv6);
        return STATUS_OK;
    }
    log_error(
        "the health endpoint (--health-port) needs an address for --bind, and '%.60s' is none",
        address);
    return STATUS_INVALID;
}

/* A socket that listens there, or -1. */
static int open_listener(const struct sockaddr_storage *storage, socklen_t size)
{
    const int yes = 1;
    int listener = socket(storage->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener < 0) {
        return -1;
    }
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)); // of one that has ended
    if (bind(listener, (const struct sockaddr *)storage, size) != 0 ||
        listen(listener, BACKLOG) != 0) {
        int error = errno;
        close(listener);
        errno = error;
        return -1;
    }
    return listener;
}

enum status health_create(const char *address, uint32_t port, struct health **ret_health)
{
    struct sockaddr_storage storage = {0};
    socklen_t size;
    enum status status = set_address(address, port, &storage, &size);
    if (status != STATUS_OK) {
        return status;
    }
    struct health *health = calloc(1, sizeof(*health));
    if (health == NULL) {
        return STATUS_NO_MEMORY;
    }
    health->alive_ms = clock_now_ms();
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
        health->visits[i].fd = -1;
    }
    int listener = open_listener(&storage, size);
    if (listener >= 0) {
        door_exempt(listener);
        // Not by select, which knows no descriptors above 1,023.
        health->daemon = MHD_start_daemon(
            MHD_USE_AUTO_INTERNAL_THREAD, 0, NULL, NULL, answer, health, MHD_OPTION_LISTEN_SOCKET,
            listener, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX + CLOSING_MAX,
            MHD_OPTION_NOTIFY_CONNECTION, note_connection, health, MHD_OPTION_CONNECTION_TIMEOUT,
            TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
            MHD_OPTION_END);
    }
    if (health->daemon == NULL) {
        log_error("cannot listen for health probes at %s port %u (--health-port): %m", address,
                  port);
        door_exempt(-1);
        free(health);
        return STATUS_UNREACHABLE;
    }
    *ret_health = health;
    return STATUS_OK;
}

void health_destroy(struct health *health)
{
    if (health != NULL) {
        MHD_stop_daemon(health->daemon);
        door_exempt(-1);
        free(health);
    }
}

void health_ready(struct health *health)
{
    if (health != NULL) {
        health->is_ready = true;
    }
}

void health_alive(struct health *health, uint64_t now_ms)
{
    if (health != NULL) {
        health->alive_ms = now_ms;
    }
}
