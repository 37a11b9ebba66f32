/* Agrees on seats of the board whether devices sum, and ends their waits by flags. */
#include "worker/exchange/shared/devices.h"

#include "worker/exchange/shared/group_state.h"

#include <string.h>

static size_t pages(size_t bytes)
{
    return (bytes + DEVICES_PAGE - 1) / DEVICES_PAGE * DEVICES_PAGE;
}

static size_t seat_bytes(uint32_t world)
{
    return pages(world * sizeof(struct seat));
}

/* Flags to one worker. */
static size_t flag_count(uint32_t bucket_count, uint32_t world)
{
    return world <= EXCHANGE_PEERS_MAX ? (size_t)bucket_count * EXCHANGE_FLAG_COUNT * world : 0;
}

size_t devices_bytes(const struct layout *layout, uint32_t world)
{
    size_t flags = world * flag_count(layout->bucket_count, world);
    return seat_bytes(world) + pages(flags * sizeof(uint32_t));
}

void devices_init(struct devices *devices, struct board *board, unsigned char *start, uint32_t rank,
                  uint32_t world, const struct layout *layout)
{
    devices->board = board;
    devices->rank = rank;
    devices->world = world;
    devices->bucket_count = layout->bucket_count;
    devices->seats = (struct seat *)(void *)start;
    devices->flag_memory = start + seat_bytes(world);
    devices->flags = devices->flag_memory;
    devices->flag_bytes = devices_bytes(layout, world) - seat_bytes(world);
}

/* Whether all workers have reached a turn. */
struct turn {
    const struct devices *devices;
    enum seat_state least; // the least state of any seat then
};

static bool is_over(void *context)
{
    const struct turn *turn = context;
    for (uint32_t rank = 0; rank < turn->devices->world; rank++) {
        uint32_t state = atomic_load(&turn->devices->seats[rank].state);
        if (state < turn->least && state != SEAT_DECLINES) {
            return false;
        }
    }
    return true;
}

static bool any_is(const struct devices *devices, enum seat_state state)
{
    for (uint32_t rank = 0; rank < devices->world; rank++) {
        if (atomic_load(&devices->seats[rank].state) == state) {
            return true;
        }
    }
    return false;
}

/* Sets this worker's seat, and waits until all seats are as far. */
static enum status take_turn(struct devices *devices, enum seat_state state, enum seat_state least,
                             bool (*is_stopped)(void *context), void *context)
{
    struct turn turn = {devices, least};
    atomic_store(&devices->seats[devices->rank].state, state);
    bell_ring(&devices->board->bell);
    while (!is_over(&turn)) {
        if (is_stopped(context)) {
            return STATUS_INTERRUPTED;
        }
        bell_nap(&devices->board->bell, is_over, &turn);
    }
    return STATUS_OK;
}

static enum status reach_others(struct devices *devices)
{
    unsigned char shares[ALL_REDUCE_SHARED_MAX][EXCHANGE_SHARE_BYTES];
    for (uint32_t rank = 0; rank < devices->world; rank++) {
        memcpy(shares[rank], devices->seats[rank].share, EXCHANGE_SHARE_BYTES);
    }
    const struct exchange_meeting meeting = {
        .rank = devices->rank,
        .world = devices->world,
        .bucket_count = devices->bucket_count,
        .shares = shares,
        .flags = devices->flag_memory,
        .flag_bytes = devices->flag_bytes,
    };
    return devices->device->meet(devices->device->context, &meeting);
}

/* Makes both turns. Any status but STATUS_OK ends the job; a device that cannot sum is not an
 * error. */
static enum status settle(struct devices *devices, bool (*is_stopped)(void *context), void *context)
{
    const struct exchange_device *device = devices->device;
    unsigned char *share = devices->seats[devices->rank].share;
    bool offers = device != NULL && device->share(device->context, share) == STATUS_OK;
    enum status status =
        take_turn(devices, offers ? SEAT_OFFERS : SEAT_DECLINES, SEAT_OFFERS, is_stopped, context);
    if (status != STATUS_OK || !offers || any_is(devices, SEAT_DECLINES)) {
        return status;
    }
    status = reach_others(devices);
    if (status != STATUS_OK && status != STATUS_UNSUPPORTED) {
        return status;
    }
    devices->has_met = status == STATUS_OK; // it may have to part from the others
    status = take_turn(devices, devices->has_met ? SEAT_REACHES : SEAT_FAILS, SEAT_REACHES,
                       is_stopped, context);
    if (status == STATUS_OK && any_is(devices, SEAT_FAILS)) {
        devices_part(devices);
    }
    return status;
}

enum status devices_meet(struct devices *devices, const struct exchange_device *device,
                         bool (*is_stopped)(void *context), void *context)
{
    if (devices->is_settled) {
        return STATUS_OK;
    }
    devices->is_settled = true;
    devices->device = device;
    return settle(devices, is_stopped, context);
}

void devices_release(struct devices *devices)
{
    size_t count = flag_count(devices->bucket_count, devices->world);
    _Atomic uint32_t *own = devices->flags + devices->rank * count;
    for (size_t i = 0; i < count; i++) {
        atomic_store(&own[i], 1);
    }
}

void devices_part(struct devices *devices)
{
    if (devices->has_met) {
        devices->device->part(devices->device->context);
        devices->has_met = false;
    }
}
