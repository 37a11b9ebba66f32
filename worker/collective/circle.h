/* Finds out that processes which share memory wait for each other in a circle.
 *
 * Each has a seat in memory that all read. One that has found nothing to do says there whose bytes
 * it lacks, and sits until it looks again: while it sits it moves nothing. A sitting process waits
 * for another if it lacks its bytes and none are on the way. One that trains waits for all that
 * have not given the gradients it needs.
 *
 * A process that is about to sleep follows from seat to seat whom the others wait for. If that
 * leads back to itself, and all of them sat meanwhile, then none of them had anything to do at one
 * and the same time, and each waits for what the next would do after its wait: none ever goes on.
 */
#ifndef WORKER_COLLECTIVE_CIRCLE_H
#define WORKER_COLLECTIVE_CIRCLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CIRCLE_SIZE_MAX   128
#define CIRCLE_WORDS      (CIRCLE_SIZE_MAX / 64)
#define CIRCLE_TEXT_BYTES 112

/* In shared memory, zeroed before anybody uses it. One process writes it. */
struct circle_seat {
    _Atomic uint64_t sequence;            // odd while the process sits
    _Atomic uint64_t lacks[CIRCLE_WORDS]; // a bit for each rank whose bytes it lacks
    _Atomic uint32_t kind;                // of the bytes
    _Atomic uint64_t given_steps;         // whose gradients it has given
    _Atomic uint64_t needs_step;          // of all others, before it goes on; 0: of none
    char text[CIRCLE_TEXT_BYTES];         // what it waits in; valid in a circle
};

/* Whose bytes a process lacks. */
struct circle_lack {
    uint64_t ranks[CIRCLE_WORDS];
    uint32_t kind;
    const char *text; // what it waits in
};

void circle_add(struct circle_lack *lack, uint32_t rank);

/* Between the two the process moves nothing. */
void circle_sit(struct circle_seat *seat, const struct circle_lack *lack);
void circle_rise(struct circle_seat *seat); // does nothing if it does not sit

/* The processes among whom a circle is looked for. */
struct circle {
    uint32_t rank, size; // the one that asks; size at most CIRCLE_SIZE_MAX
    struct circle_seat *(*seat)(void *context, uint32_t rank);
    // Whether bytes of a kind, which may be anything, are on the way from one process to another.
    bool (*has_bytes)(void *context, uint32_t kind, uint32_t from, uint32_t to);
    void *context;
};

/* Looks for a circle that the one that asks is part of; it lacks `lack`. It waits for *ret_next,
 * which waits for *ret_after. */
bool circle_find(const struct circle *circle, const struct circle_lack *lack, uint32_t *ret_next,
                 uint32_t *ret_after);

#endif
