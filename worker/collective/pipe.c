/* Moves bytes through a ring of shared memory. */
#include "worker/collective/pipe.h"

#include <string.h>

#define PUT_MAX ((size_t)32768) // so that the reader has work while more is written

size_t pipe_bytes(size_t capacity)
{
    return sizeof(struct pipe) + capacity;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* What was written and is not taken. No more than fits, whatever the other side has done to its
 * memory. */
static size_t waiting(struct pipe_end end, uint64_t written, uint64_t taken)
{
    uint64_t bytes = written - taken;
    return bytes <= end.capacity ? (size_t)bytes : end.capacity;
}

bool pipe_put(struct pipe_end end, struct transfer *transfer)
{
    size_t left = transfer_left(transfer);
    if (left == 0) {
        return false;
    }
    uint64_t written = atomic_load_explicit(&end.pipe->written, memory_order_relaxed);
    uint64_t taken = atomic_load(&end.pipe->taken);
    size_t count = least(left, end.capacity - waiting(end, written, taken));
    count = least(count, PUT_MAX);
    size_t own =
        transfer->moved < transfer->size ? least(count, transfer->size - transfer->moved) : 0;
    size_t at = (size_t)(written % end.capacity), before_end = least(own, end.capacity - at);
    if (own > 0) {
        memcpy(end.pipe->bytes + at, transfer->source + transfer->moved, before_end);
        memcpy(end.pipe->bytes, transfer->source + transfer->moved + before_end, own - before_end);
    }
    transfer->moved += count;
    if (count > 0) {
        atomic_store(&end.pipe->written, written + count);
    }
    return count > 0;
}

void pipe_drop(struct pipe_end end, struct transfer *transfer, size_t size)
{
    uint64_t taken = atomic_load_explicit(&end.pipe->taken, memory_order_relaxed);
    transfer->moved += size;
    atomic_store(&end.pipe->taken, taken + size);
}

size_t pipe_look(struct pipe_end end, const struct transfer *transfer,
                 const unsigned char **ret_bytes)
{
    uint64_t taken = atomic_load_explicit(&end.pipe->taken, memory_order_relaxed);
    size_t there = waiting(end, atomic_load(&end.pipe->written), taken);
    size_t at = (size_t)(taken % end.capacity);
    size_t left = transfer->moved < transfer->size ? transfer->size - transfer->moved : 0;
    *ret_bytes = end.pipe->bytes + at;
    return least(least(there, end.capacity - at), left);
}

bool pipe_take(struct pipe_end end, struct transfer *transfer)
{
    bool has_moved = false;
    const unsigned char *bytes;
    size_t count;
    while ((count = pipe_look(end, transfer, &bytes)) > 0) {
        if (transfer->bytes != NULL) {
            memcpy(transfer->bytes + transfer->moved, bytes, count);
        }
        pipe_drop(end, transfer, count);
        has_moved = true;
    }
    if (transfer->moved >= transfer->size && transfer_left(transfer) > 0) {
        uint64_t taken = atomic_load_explicit(&end.pipe->taken, memory_order_relaxed);
        size_t there = waiting(end, atomic_load(&end.pipe->written), taken);
        count = least(there, transfer_left(transfer));
        if (count > 0) {
            pipe_drop(end, transfer, count);
            has_moved = true;
        }
    }
    return has_moved;
}

bool pipe_has_bytes(struct pipe_end end)
{
    return atomic_load(&end.pipe->written) != atomic_load(&end.pipe->taken);
}
