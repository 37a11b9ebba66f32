/* Orders values that travel over a network: those that the next forward pass needs first go first.
 *
 * Forward needs the last buckets first, and backward completes them last. So a message does not
 * queue behind all earlier ones: the transport gets only a window of bytes, and the waiting message
 * of the highest bucket is next; among equals, the one that has waited longest. (The idea is that
 * of P3, Jayarajan et al. 2019, and ByteScheduler, Peng et al. 2019.) No worker depends on
 * another's order of sending, so the orders may differ.
 *
 * Each of several connections to a peer has a window. A message takes the connection with the
 * fewest bytes, or that of its bucket where the order of a bucket's messages counts.
 *
 * A pacer belongs to the thread that owns the channel. Releases come from any thread. */
#ifndef COMMON_CHANNEL_PACER_H
#define COMMON_CHANNEL_PACER_H

#include "common/channel/channel.h"
#include "common/transport/lanes.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

// Bytes given to the transport for one connection, besides what the kernel holds. A message may
// exceed it, so it is one message at a time unless they are small.
#define PACER_WINDOW_BYTES (UINT64_C(64) << 10)

// Messages that wait or travel. Beyond this number they go in the order in which they come.
#define PACER_SENDS_MAX 512

enum pacer_lane { PACER_QUIETEST_LANE, PACER_LANE_OF_BUCKET };

struct pacer;

struct pacer_send {
    struct pacer *pacer;
    struct message message;
    struct wire_outcome outcome; // that the message points to, if it has one
    uint64_t bytes;
    uint32_t to, lane;
    void (*release)(void *hint);
    void *hint;
    struct pacer_send *next;
};

/* The queue of one peer, from the longest wait to the shortest, and what travels to it. */
struct pacer_peer {
    struct pacer_send *first, **end;
    const struct lanes *lanes;      // borrowed; NULL: nothing was sent yet
    uint64_t bytes_sent[LANES_MAX]; // by lane: that may still be read; under the mutex
};

struct pacer {
    struct channel *channel; // borrowed
    enum pacer_lane lane;
    struct pacer_peer *peers; // (peer_count), owned
    uint32_t peer_count;
    struct pacer_send *unused; // a list, of those that were used before; under the mutex
    uint32_t used_count;       // of sends, from the first on; under the mutex
    uint32_t waiting_count;    // in all queues; under the mutex
    uint64_t waiting_bytes;    // of those; only the channel's thread has them
    pthread_mutex_t mutex;
    struct pacer_send sends[PACER_SENDS_MAX]; // not touched before they are used
};

enum status pacer_create(struct channel *channel, uint32_t peer_count, enum pacer_lane lane,
                         struct pacer **ret_pacer);

/* Call it when nothing that it sent is read any more. Waiting messages are neither sent nor
 * released. NULL is fine. */
void pacer_destroy(struct pacer *pacer);

/* Sends as channel_send does, now or when the message's turn comes, to the `to`-th peer, by one of
 * its lanes. The lane of the message's bucket has to be known. The lanes are borrowed until
 * pacer_destroy. Values or encoded bytes are read in place until release(hint), which also follows
 * a failure, and so is all else that the message points to but its outcome. */
enum status pacer_send(struct pacer *pacer, uint32_t to, const struct lanes *lanes,
                       const struct message *message, void (*release)(void *hint), void *hint);

/* Sends what may go now. Call it whenever the transport was woken. */
enum status pacer_go_on(struct pacer *pacer);

#endif
