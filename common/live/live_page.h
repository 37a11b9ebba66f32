/* The live page: what a board holds, in a browser.
 *
 *     GET /?token=T          the page, which is whole: it loads nothing
 *     GET /events?token=T    server-sent events, whose data is a state as JSON (live_json.h)
 *     GET /metrics?token=T   measurements for Prometheus, which may send the token as a header
 *
 * An event has the whole state, so a client that is slow gets fewer of them and misses nothing, and
 * nothing is kept for it but the event that it is reading. */
#ifndef COMMON_LIVE_LIVE_PAGE_H
#define COMMON_LIVE_LIVE_PAGE_H

#include "common/base/status.h"
#include "common/live/live_board.h"

#include <stdint.h>

#define LIVE_URL_BYTES 160

struct live_page;

struct live_page_options {
    const char *address;      // IPv4 or IPv6
    uint32_t port;            // 0: any free one
    struct live_board *board; // borrowed until live_page_destroy
    uint32_t workers;         // ranks of its states
};

/* Listens, with a token that nobody can guess. Logs why not. */
enum status live_page_create(const struct live_page_options *options, struct live_page **ret_page);

/* Closes all connections. The last state goes to those who take it within a short time. */
void live_page_destroy(struct live_page *page); // NULL is fine

/* The board has a new state. From any thread; does not wait for a client. */
void live_page_wake(struct live_page *page);

/* The address for a browser, with the token. */
void live_page_url(const struct live_page *page, char ret_url[LIVE_URL_BYTES]);

#endif
