/* Finds peers whose connections were closed: the kernel closes those of a dead process at once.
 *
 * libzmq says which descriptor was closed, and messages say which one they came by. This table
 * connects the two. */
#ifndef COMMON_BASE_DEPARTURES_H
#define COMMON_BASE_DEPARTURES_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: no peers. */
struct departures {
    uint64_t *peers; // (size), by descriptor, 0: none; owned
    uint64_t *gone;  // (size), of which gone_count; owned
    uint32_t size, gone_count;
};

void departures_finish(struct departures *departures);

/* Whether this descriptor is known to be the peer's. */
bool departures_know(const struct departures *departures, int fd, uint64_t peer);

/* Notes that the peer, which is not 0, speaks by this descriptor. Without memory it is not noted:
 * its end is then found later, by its silence. */
void departures_note(struct departures *departures, int fd, uint64_t peer);

/* The descriptor was closed. */
void departures_close(struct departures *departures, int fd);

/* Nothing can be sent to the peer any more. Its connection may have been closed before its first
 * message was received, and then its descriptor is not closed again. */
void departures_lose(struct departures *departures, uint64_t peer);

/* A peer whose connection was closed, once; false: there is none. */
bool departures_take(struct departures *departures, uint64_t *ret_peer);

#endif
