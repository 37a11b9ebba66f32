/* Values on their way over a network: those that the next forward pass needs first travel first.
 *
 * Forward needs the last buckets first, and backward completes them last. So a message is not
 * queued behind all that went before it: only a window of bytes is given to the transport, and of
 * what waits the message of the highest bucket is next, of equals the one that has waited longest.
 * (The idea is that of P3, Jayarajan et al. 2019, and ByteScheduler, Peng et al. 2019.) Nobody
 * waits for another's order of sending, so the orders of workers may differ.
 *
 * Where there are several connections to a peer each has a window. A message takes the one with the
 * fewest bytes, or that of its bucket, where others on that one count on the order.
 *
 * A pacer is of one thread, the one that owns the channel; releases come from any. */
#ifndef COMMON_CHANNEL_PACER_H
#define COMMON_CHANNEL_PACER_H

#include "common/channel/channel.h"
#include "common/transport/lanes.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

// Given to the transport for one connection, beside what the kernel holds; a message may go beyond
// it, so this is one at a time unless they are small.
#define PACER_WINDOW_BYTES (UINT64_C(64) << 10)

// Messages that wait or travel; beyond so many they go in the order in which they come.
#define PACER_SENDS_MAX 512

enum pacer_lane { PACER_QUIETEST_LANE, PACER_LANE_OF_BUCKET };

struct pacer;

struct pacer_send {
    struct pacer *pacer;
    struct message message;
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
    struct pacer_send sends[PACER_SENDS_MAX];
    struct pacer_peer *peers; // (peer_count), owned
    uint32_t peer_count;
    struct pacer_send *unused; // a list; under the mutex
    uint32_t waiting_count;    // in all queues; under the mutex
    pthread_mutex_t mutex;
};

enum status pacer_create(struct channel *channel, uint32_t peer_count, enum pacer_lane lane,
                         struct pacer **ret_pacer);

/* Nothing that it has sent may be read any more. What waits is not sent, nor released. NULL is
 * fine. */
void pacer_destroy(struct pacer *pacer);

/* As channel_send, now or when its turn comes, to the `to`-th peer, by one of its lanes; that of
 * the message's bucket has to be known. The lanes are borrowed until pacer_destroy. The values or
 * the code are read where they are, until release(hint), which also follows a failure. */
enum status pacer_send(struct pacer *pacer, uint32_t to, const struct lanes *lanes,
                       const struct message *message, void (*release)(void *hint), void *hint);

/* Sends what may go now: to be called whenever the transport has been woken. */
enum status pacer_go_on(struct pacer *pacer);

#endif
