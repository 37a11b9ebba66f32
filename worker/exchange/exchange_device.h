/* A device that sums its worker's gradients with those of the other workers: values then never come
 * to the host. Workers of one host, whose devices reach each other's memory, share and meet; from
 * then on each device takes the mean of a bucket by itself as soon as it has computed the bucket.
 * Workers anywhere, whose devices have a library for it, join, and the exchange asks for the mean
 * of each bucket. The exchange has the workers agree, and ends waits of a job that is stopped; the
 * device does the rest. */
#ifndef WORKER_EXCHANGE_EXCHANGE_DEVICE_H
#define WORKER_EXCHANGE_EXCHANGE_DEVICE_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXCHANGE_SHARE_BYTES 128
#define EXCHANGE_ID_BYTES    128
#define EXCHANGE_FLAG_COUNT  2  // from each worker to each other one, for each bucket
#define EXCHANGE_PEERS_MAX   16 // workers that meet

struct exchange_meeting {
    uint32_t rank, world, bucket_count;
    unsigned char (*shares)[EXCHANGE_SHARE_BYTES]; // (world) what each device has written

    // (world, bucket_count, EXCHANGE_FLAG_COUNT, world) words of 32 bits, to whom, of what, from
    // whom: the same pages for all workers, zeroed before the first came. A device waits until a
    // word to it is 1, and clears it. The exchange sets all words to it, to end the waits that are
    // queued by then.
    void *flags;
    size_t flag_bytes; // whole pages; 0 for more workers than EXCHANGE_PEERS_MAX
};

struct exchange_joining {
    uint32_t rank, world, bucket_count;
    const unsigned char *id; // (EXCHANGE_ID_BYTES) where rank 0's device waits for the others
    bool (*is_stopped)(void *context);
    void *context;
};

/* What a device does, on the trainer's thread. */
struct exchange_device {
    /* Writes how others reach its gradients. STATUS_UNSUPPORTED: they cannot. */
    enum status (*share)(void *context, unsigned char ret_share[EXCHANGE_SHARE_BYTES]);

    /* Opens the other devices' gradients. STATUS_UNSUPPORTED: it cannot. Keeps the flags until it
     * parts. */
    enum status (*meet)(void *context, const struct exchange_meeting *meeting);

    /* Joins the devices of all workers; again in each phase, where the buckets may be others.
     * Waits. STATUS_INTERRUPTED: it was stopped. NULL, as is stop: it has no library for that. */
    enum status (*join)(void *context, const struct exchange_joining *joining);

    /* Has whatever waits for other devices end, now and later: of those that have joined. Any
     * thread. */
    void (*stop)(void *context);

    /* After a join: queues the mean of a bucket, whose gradients have been computed or are queued
     * to be. The caller's next update of the bucket takes it. */
    enum status (*sum)(void *context, uint32_t bucket);

    /* After a meeting: ends the waits of sums that are still queued, which are void then, waits for
     * these, and forgets the other devices. */
    void (*part)(void *context);
    void *context;
};

#endif
