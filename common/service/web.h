/* A small web server, by libmicrohttpd, for what a process says of itself: probes, measurements, a
 * page. One thread of its own answers; it shares with others what its handler shares.
 *
 * It takes GET and HEAD. All it keeps is bounded: connections (VISITS_MAX, and see there who makes
 * room), the bytes of a request, and answers that do not end (WEB_STREAMS_MAX). A client that does
 * not read holds up nobody but itself, and is sent away after WEB_TIMEOUT_S. */
#ifndef COMMON_SERVICE_WEB_H
#define COMMON_SERVICE_WEB_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WEB_STREAMS_MAX   16
#define WEB_TIMEOUT_S     5
#define WEB_ADDRESS_BYTES 64 // "[2001:db8::7]:40113", terminator included

struct web;

/* What is asked for. Borrowed for the call. */
struct web_request {
    const char *path;          // without what follows a question mark
    const char *host;          // as the client calls this server; NULL: it does not say
    const char *token;         // of "?token="; NULL: none
    const char *authorization; // header; NULL: none
};

/* An answer that goes on. The functions are called by the server's thread, never at once. */
struct web_stream {
    void *context;

    /* Writes up to `size` bytes of what follows. 0: there is nothing now; see web_wake. -1: that
     * was all. */
    ssize_t (*read)(void *context, char *ret_text, size_t size);
    void (*close)(void *context); // frees the context
};

struct web_answer {
    unsigned code;
    const char *type;         // of the content; static
    const char *policy;       // Content-Security-Policy; static, NULL: nothing may be loaded
    const char *text;         // static; or
    char *made_text;          // of malloc, which the server takes; or
    struct web_stream stream; // if its read is not NULL; the server takes it
    bool is_trusted;          // the client has shown that it may ask: its connection is kept
};

struct web_options {
    const char *address; // IPv4 or IPv6
    uint32_t port;       // 0: any free one
    const char *what;    // for messages: "health probes"
    const char *option;  // likewise: "--health-port"

    /* By the server's thread. Zeroed before. */
    void (*answer)(void *context, const struct web_request *request, struct web_answer *ret_answer);
    void *context; // borrowed until web_destroy
};

/* Listens. Logs why not; STATUS_UNSUPPORTED in a build without libmicrohttpd. */
enum status web_create(const struct web_options *options, struct web **ret_web);

/* Ends the thread and closes all connections. NULL is fine. */
void web_destroy(struct web *web);

/* The address and port that it listens on, as they stand in a URL. */
void web_address(const struct web *web, char ret_text[WEB_ADDRESS_BYTES]);

/* There may be more to read for streams. From any thread; does not wait for a client. */
void web_wake(struct web *web);

/* How many streams are open. From any thread. */
uint32_t web_stream_count(struct web *web);

#endif
