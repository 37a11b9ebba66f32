/* Descriptors to wait for, collected anew before each wait. */
#ifndef DEPLOY_SYSTEM_POLL_LIST_H
#define DEPLOY_SYSTEM_POLL_LIST_H

#include <poll.h>
#include <stddef.h>

struct poll_list {
    struct pollfd *items; // owned
    size_t count, size;
};

void poll_list_finish(struct poll_list *list);

void poll_list_clear(struct poll_list *list);

/* Without memory the descriptor is left out, and looked at after the next timeout. */
void poll_list_add(struct poll_list *list, int fd, short events);

/* Waits at most timeout_ms. Which descriptors are ready is found by trying: all are non-blocking.
 */
void poll_list_wait(struct poll_list *list, int timeout_ms);

#endif
