/* A stream of bytes from one process to another, through memory that both have mapped.
 *
 * One process writes and one reads, each from one thread. Nothing here waits: a call moves what
 * there is room for, or what has come. Both count bytes from the beginning. Each transfer
 * takes whole lines of PIPE_ALIGNMENT bytes, so that the next one is aligned. */
#ifndef WORKER_COLLECTIVE_PIPE_H
#define WORKER_COLLECTIVE_PIPE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIPE_ALIGNMENT 64

/* In shared memory, zeroed before anybody uses it. */
struct pipe {
    _Alignas(PIPE_ALIGNMENT) _Atomic uint64_t written;
    _Alignas(PIPE_ALIGNMENT) _Atomic uint64_t taken;
    _Alignas(PIPE_ALIGNMENT) unsigned char bytes[];
};

/* One side's view of a pipe. */
struct pipe_end {
    struct pipe *pipe;
    size_t capacity; // a multiple of PIPE_ALIGNMENT
};

/* Of a pipe in memory: a multiple of PIPE_ALIGNMENT. */
size_t pipe_bytes(size_t capacity);

/* Bytes that move together, and how far they have. */
struct transfer {
    union {
        unsigned char *bytes;        // (size) borrowed: where what comes goes; NULL: it is left out
        const unsigned char *source; // likewise: what is sent
    };
    size_t size;
    size_t moved; // of the size and what fills it up to a multiple of PIPE_ALIGNMENT
};

static inline struct transfer transfer_out(const void *source, size_t size)
{
    return (struct transfer){.source = source, .size = size};
}

static inline struct transfer transfer_in(void *bytes, size_t size)
{
    return (struct transfer){.bytes = bytes, .size = size};
}

/* Of the transfer and of what fills it up. */
static inline size_t transfer_left(const struct transfer *transfer)
{
    size_t lines = transfer->size / PIPE_ALIGNMENT + (transfer->size % PIPE_ALIGNMENT != 0);
    return lines * PIPE_ALIGNMENT - transfer->moved;
}

/* Move what can be moved of a transfer. Return whether that was anything. */
bool pipe_put(struct pipe_end end, struct transfer *transfer);
bool pipe_take(struct pipe_end end, struct transfer *transfer);

/* What can be read of the transfer's own bytes without a move: they lie behind each other at
 * *ret_bytes. */
size_t pipe_look(struct pipe_end end, const struct transfer *transfer,
                 const unsigned char **ret_bytes);

/* Leaves out the next bytes of the transfer, which pipe_look has shown. */
void pipe_drop(struct pipe_end end, struct transfer *transfer, size_t size);

/* Whether something has come that was not taken. */
bool pipe_has_bytes(struct pipe_end end);

#endif
