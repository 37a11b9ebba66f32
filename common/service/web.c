/* Answers over HTTP, by libmicrohttpd. */
#include "common/service/web.h"

#include "common/base/log.h"
#include "common/service/visits.h"
#include "common/transport/door.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// All connections are fewer than the descriptors that the door keeps for this process.
#define CLOSING_MAX      6 // of those that were told to make room, and are not closed yet
#define BACKLOG          512
#define CONNECTION_BYTES 16384 // browsers say much about themselves
#define BLOCK_BYTES      16384 // of a stream, read at a time

#define NOTHING_POLICY "default-src 'none'; frame-ancestors 'none'"

/* An answer that goes on. */
struct open_stream {
    struct web *web;
    struct MHD_Connection *connection; // NULL: the place is free
    struct web_stream stream;
    bool is_suspended; // nothing was there to send
};

struct web {
    struct web_options options;
    struct MHD_Daemon *daemon; // has the socket that listens
    int listener;
    atomic_uint wakes;
    atomic_bool is_closing;

    pthread_mutex_t mutex; // for a moment only, so that web_wake does not wait
    struct open_stream streams[WEB_STREAMS_MAX];

    struct visits visits; // of libmicrohttpd's thread
};

/* Called by libmicrohttpd's thread when a connection has come, and before it is closed. */
static void note_connection(void *context, struct MHD_Connection *connection, void **state,
                            enum MHD_ConnectionNotificationCode code)
{
    struct web *web = context;
    const union MHD_ConnectionInfo *own =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    int fd = own != NULL ? own->connect_fd : -1;
    if (code != MHD_CONNECTION_NOTIFY_STARTED) {
        if (*state != NULL) {
            visits_remove(*state, fd);
        }
        return;
    }
    const union MHD_ConnectionInfo *from =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    *state = NULL;
    if (fd < 0 || from == NULL) {
        return;
    }
    *state = visits_add(&web->visits, fd, from->client_addr);
    if (*state == NULL) {
        (void)shutdown(fd, SHUT_RDWR);
    }
}

/* Called by libmicrohttpd's thread when the client takes more. */
static ssize_t read_stream(void *context, uint64_t position, char *text, size_t size)
{
    struct open_stream *open = context;
    (void)position;
    for (;;) {
        unsigned wakes = open->web->wakes;
        bool is_closing = open->web->is_closing; // then no connection may be suspended
        ssize_t got = is_closing ? -1 : open->stream.read(open->stream.context, text, size);
        if (got != 0) {
            return got > 0 ? got : MHD_CONTENT_READER_END_OF_STREAM;
        }
        pthread_mutex_lock(&open->web->mutex);
        open->is_suspended = wakes == open->web->wakes;
        if (open->is_suspended) {
            MHD_suspend_connection(open->connection);
        }
        bool is_suspended = open->is_suspended;
        pthread_mutex_unlock(&open->web->mutex);
        if (is_suspended) {
            return 0;
        }
    }
}

static void close_stream(void *context)
{
    struct open_stream *open = context;
    open->stream.close(open->stream.context);
    pthread_mutex_lock(&open->web->mutex);
    open->connection = NULL;
    open->is_suspended = false;
    pthread_mutex_unlock(&open->web->mutex);
}

/* Takes the stream. NULL if there are too many. */
static struct MHD_Response *stream_response(struct web *web, struct MHD_Connection *connection,
                                            const struct web_stream *stream)
{
    struct open_stream *free_place = NULL;
    pthread_mutex_lock(&web->mutex);
    for (uint32_t i = 0; i < WEB_STREAMS_MAX && free_place == NULL; i++) {
        free_place = web->streams[i].connection == NULL ? &web->streams[i] : NULL;
    }
    if (free_place != NULL) {
        *free_place = (struct open_stream){.web = web, .connection = connection, .stream = *stream};
    }
    pthread_mutex_unlock(&web->mutex);
    if (free_place == NULL) {
        stream->close(stream->context);
        return NULL;
    }
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_stream, free_place, close_stream);
    if (response == NULL) {
        close_stream(free_place);
    }
    return response;
}

static struct MHD_Response *text_response(const struct web_answer *answer)
{
    if (answer->made_text != NULL) {
        return MHD_create_response_from_buffer(strlen(answer->made_text), answer->made_text,
                                               MHD_RESPMEM_MUST_FREE);
    }
    union {
        const char *text; // which is only read
        void *buffer;
    } static_text = {.text = answer->text};
    return MHD_create_response_from_buffer(strlen(answer->text), static_text.buffer,
                                           MHD_RESPMEM_PERSISTENT);
}

static void add_headers(struct MHD_Response *response, const struct web_answer *answer)
{
    const char *const headers[][2] = {
        {MHD_HTTP_HEADER_CONTENT_TYPE, answer->type},
        {MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
        {"Content-Security-Policy", answer->policy != NULL ? answer->policy : NOTHING_POLICY},
        {"Referrer-Policy", "no-referrer"},
        {"X-Content-Type-Options", "nosniff"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
    };
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        // What fails here is a lack of memory, and makes the connection fail below.
        (void)MHD_add_response_header(response, headers[i][0], headers[i][1]);
    }
}

/* Marks the visit of a client that may be here, so that it does not make room for strangers. */
static void keep(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct visit *visit = info != NULL ? info->socket_context : NULL;
    if (visit != NULL) {
        visit->is_kept = true;
    }
}

static const char *header_of(struct MHD_Connection *connection, enum MHD_ValueKind kind,
                             const char *name)
{
    return MHD_lookup_connection_value(connection, kind, name);
}

static void find_answer(struct web *web, struct MHD_Connection *connection, const char *path,
                        const char *method, struct web_answer *ret_answer)
{
    bool is_get =
        strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    const struct web_request request = {
        .path = path,
        .host = header_of(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST),
        .token = header_of(connection, MHD_GET_ARGUMENT_KIND, "token"),
        .authorization = header_of(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION),
    };
    if (is_get) {
        web->options.answer(web->options.context, &request, ret_answer);
        return;
    }
    ret_answer->code = MHD_HTTP_METHOD_NOT_ALLOWED;
    ret_answer->text = "only GET\n";
}

/* Called by libmicrohttpd's thread: at first with the header of a request, *state being NULL, then
 * with its end. */
// NOLINTNEXTLINE(readability-function-size): the library says what its arguments are
static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
    struct web *web = context;
    struct web_answer found = {.type = "text/plain; charset=utf-8"};
    (void)version;
    (void)upload;
    if (*state == NULL) {
        *state = connection; // anything but NULL
        return MHD_YES;
    }
    if (*upload_size != 0) {
        return MHD_NO; // a body is nothing to wait for
    }
    find_answer(web, connection, path, method, &found);
    struct MHD_Response *response = found.stream.read != NULL
                                        ? stream_response(web, connection, &found.stream)
                                        : text_response(&found);
    if (response == NULL && found.stream.read != NULL) {
        found.code = MHD_HTTP_SERVICE_UNAVAILABLE;
        found.text = "too many viewers: close one of them\n";
        found.type = "text/plain; charset=utf-8";
        response = text_response(&found);
    }
    if (response == NULL) {
        return MHD_NO;
    }
    if (found.is_trusted) {
        keep(connection);
    }
    add_headers(response, &found);
    enum MHD_Result result = MHD_queue_response(connection, found.code, response);
    MHD_destroy_response(response);
    return result;
}

static enum status set_address(const struct web_options *options,
                               struct sockaddr_storage *ret_storage, socklen_t *ret_size)
{
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)options->port)};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6,
                                .sin6_port = htons((uint16_t)options->port)};
    if (inet_pton(AF_INET, options->address, &ipv4.sin_addr) == 1) {
        memcpy(ret_storage, &ipv4, sizeof(ipv4));
        *ret_size = sizeof(ipv4);
        return STATUS_OK;
    }
    if (inet_pton(AF_INET6, options->address, &ipv6.sin6_addr) == 1) {
        memcpy(ret_storage, &ipv6, sizeof(ipv6));
        *ret_size = sizeof(ipv6);
        return STATUS_OK;
    }
    log_error("the server for %s (%s) needs an address to listen on, and '%.60s' is none",
              options->what, options->option, options->address);
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

static struct MHD_Daemon *start(struct web *web)
{
    // Not by select, which knows no descriptors above 1,023.
    return MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, answer, web,
        MHD_OPTION_LISTEN_SOCKET, web->listener, MHD_OPTION_CONNECTION_LIMIT,
        VISITS_MAX + CLOSING_MAX, MHD_OPTION_NOTIFY_CONNECTION, note_connection, web,
        MHD_OPTION_CONNECTION_TIMEOUT, WEB_TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_END);
}

enum status web_create(const struct web_options *options, struct web **ret_web)
{
    struct sockaddr_storage storage = {0};
    socklen_t size;
    enum status status = set_address(options, &storage, &size);
    if (status != STATUS_OK) {
        return status;
    }
    struct web *web = calloc(1, sizeof(*web));
    if (web == NULL) {
        return STATUS_NO_MEMORY;
    }
    web->options = *options;
    pthread_mutex_init(&web->mutex, NULL);
    visits_init(&web->visits);
    web->listener = open_listener(&storage, size);
    if (web->listener >= 0) {
        door_exempt(web->listener);
        web->daemon = start(web);
    }
    if (web->daemon == NULL) {
        log_error("cannot listen for %s at %s port %u (%s): %m", options->what, options->address,
                  options->port, options->option);
        web_destroy(web);
        return STATUS_IO; // nobody else was lost: what comes again would fail again
    }
    *ret_web = web;
    return STATUS_OK;
}

void web_destroy(struct web *web)
{
    if (web == NULL) {
        return;
    }
    if (web->listener >= 0) {
        door_exempt_no_more(web->listener);
    }
    if (web->daemon != NULL) {
        web->is_closing = true;
        web_wake(web); // a suspended connection cannot be closed
        MHD_stop_daemon(web->daemon);
    } else if (web->listener >= 0) {
        close(web->listener);
    }
    pthread_mutex_destroy(&web->mutex);
    free(web);
}

void web_address(const struct web *web, char ret_text[WEB_ADDRESS_BYTES])
{
    struct sockaddr_storage storage = {0};
    socklen_t size = sizeof(storage);
    char text[INET6_ADDRSTRLEN] = "";
    struct sockaddr_in ipv4 = {0};
    struct sockaddr_in6 ipv6 = {0};
    (void)getsockname(web->listener, (struct sockaddr *)&storage, &size);
    if (storage.ss_family == AF_INET) {
        memcpy(&ipv4, &storage, sizeof(ipv4));
        inet_ntop(AF_INET, &ipv4.sin_addr, text, sizeof(text));
        snprintf(ret_text, WEB_ADDRESS_BYTES, "%s:%u", text, ntohs(ipv4.sin_port));
    } else {
        memcpy(&ipv6, &storage, sizeof(ipv6));
        inet_ntop(AF_INET6, &ipv6.sin6_addr, text, sizeof(text));
        snprintf(ret_text, WEB_ADDRESS_BYTES, "[%s]:%u", text, ntohs(ipv6.sin6_port));
    }
}

void web_wake(struct web *web)
{
    pthread_mutex_lock(&web->mutex);
    web->wakes++;
    for (uint32_t i = 0; i < WEB_STREAMS_MAX; i++) {
        struct open_stream *open = &web->streams[i];
        if (open->connection != NULL && open->is_suspended) {
            open->is_suspended = false;
            MHD_resume_connection(open->connection);
        }
    }
    pthread_mutex_unlock(&web->mutex);
}

uint32_t web_stream_count(struct web *web)
{
    uint32_t count = 0;
    pthread_mutex_lock(&web->mutex);
    for (uint32_t i = 0; i < WEB_STREAMS_MAX; i++) {
        count += web->streams[i].connection != NULL;
    }
    pthread_mutex_unlock(&web->mutex);
    return count;
}
