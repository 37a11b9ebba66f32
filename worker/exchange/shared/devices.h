/* Lets the workers of a group agree on whether their devices sum the gradients: all of them, or
 * none.
 *
 * Each worker has a seat on the board. There it says how its device is reached, or that it has no
 * such device. Once all have, it lets its device reach the others, and says whether that succeeded.
 * A seat changes at most once in each of the two turns, so all workers see the same. */
#ifndef WORKER_EXCHANGE_SHARED_DEVICES_H
#define WORKER_EXCHANGE_SHARED_DEVICES_H

#include "common/vector/layout.h"
#include "worker/exchange/exchange_device.h"

#include <stdatomic.h>
#include <stdbool.h>

struct board;

enum seat_state {
    SEAT_EMPTY,
    SEAT_OFFERS,
    SEAT_DECLINES,
    SEAT_REACHES, // all others
    SEAT_FAILS,
};

/* In shared memory. */
struct seat {
    _Alignas(64) _Atomic uint32_t state; // enum seat_state
    unsigned char share[EXCHANGE_SHARE_BYTES];
};

/* One worker's view of the seats. */
struct devices {
    struct board *board;
    uint32_t rank, world, bucket_count;
    struct seat *seats; // (world)
    void *flag_memory;
    _Atomic uint32_t *flags; // in it
    size_t flag_bytes;
    bool is_settled; // whether they sum has been asked
    bool has_met;    // they do
    const struct exchange_device *device;
};

/* The bytes at the end of a board: a multiple of DEVICES_PAGE, which begins at such a multiple. */
#define DEVICES_PAGE ((size_t)4096)
size_t devices_bytes(const struct layout *layout, uint32_t world);

void devices_init(struct devices *devices, struct board *board, unsigned char *start, uint32_t rank,
                  uint32_t world, const struct layout *layout);

/* See group_meet and group_release. */
enum status devices_meet(struct devices *devices, const struct exchange_device *device,
                         bool (*is_stopped)(void *context), void *context);
void devices_release(struct devices *devices);
void devices_part(struct devices *devices);

#endif
