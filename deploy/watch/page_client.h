/* Reads the events of a live page: see common/live/live_page.h. */
#ifndef DEPLOY_WATCH_PAGE_CLIENT_H
#define DEPLOY_WATCH_PAGE_CLIENT_H

#include "common/base/status.h"
#include "common/live/live_state.h"

#include <stdbool.h>
#include <stddef.h>

struct page_client;

/* Whether a text is the address of a page, rather than a folder. */
bool page_client_is_url(const char *text);

/* Connects to "http://HOST:PORT/?token=T", and asks for events. Logs why not. */
enum status page_client_open(const char *url, struct page_client **ret_client);
void page_client_close(struct page_client *client); // NULL is fine

/* Waits up to a time for the next state, which the caller finishes. STATUS_TIMED_OUT; or
 * STATUS_END_OF_DATA once the page has closed the connection; or another, which is logged. */
enum status page_client_next(struct page_client *client, int timeout_ms,
                             struct live_state *ret_state);

#endif
