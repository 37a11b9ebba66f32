/* Follows from seat to seat whom processes wait for. */
#include "worker/collective/circle.h"

#include <stdio.h>
#include <string.h>

/* Who was reached from the one that asks, and how. */
struct search {
    const struct circle *circle;
    uint32_t reached[CIRCLE_SIZE_MAX]; // in this order
    uint32_t count;
    bool is_reached[CIRCLE_SIZE_MAX];
    uint32_t before[CIRCLE_SIZE_MAX];                                  // by rank: who waits for it
    uint64_t sequences[CIRCLE_SIZE_MAX], needs_steps[CIRCLE_SIZE_MAX]; // by rank, when reached
};

void circle_add(struct circle_lack *lack, uint32_t rank)
{
    lack->ranks[rank / 64] |= (uint64_t)1 << rank % 64;
}

static bool has_rank(uint64_t word, uint32_t rank)
{
    return (word >> rank % 64 & 1) != 0;
}

static bool sits(uint64_t sequence)
{
    return sequence % 2 == 1;
}

void circle_sit(struct circle_seat *seat, const struct circle_lack *lack)
{
    // Others read it when this process is in a circle and sits down again and again.
    if (strncmp(seat->text, lack->text, CIRCLE_TEXT_BYTES - 1) != 0) {
        snprintf(seat->text, sizeof(seat->text), "%s", lack->text);
    }
    atomic_store(&seat->kind, lack->kind);
    for (uint32_t i = 0; i < CIRCLE_WORDS; i++) {
        atomic_store(&seat->lacks[i], lack->ranks[i]);
    }
    atomic_fetch_add(&seat->sequence, 1);
}

void circle_rise(struct circle_seat *seat)
{
    if (sits(atomic_load(&seat->sequence))) {
        atomic_fetch_add(&seat->sequence, 1);
    }
}

/* Whether a process that was reached waits for another one. */
static bool waits_for(const struct search *search, uint32_t rank, uint32_t other)
{
    const struct circle *circle = search->circle;
    struct circle_seat *seat = circle->seat(circle->context, rank),
                       *others = circle->seat(circle->context, other);
    bool lacks = sits(search->sequences[rank]) &&
                 has_rank(atomic_load(&seat->lacks[other / 64]), other) &&
                 !circle->has_bytes(circle->context, atomic_load(&seat->kind), other, rank);
    return lacks || search->needs_steps[rank] > atomic_load(&others->given_steps);
}

static void reach(struct search *search, uint32_t waiter, uint32_t reached)
{
    struct circle_seat *seat = search->circle->seat(search->circle->context, reached);
    search->is_reached[reached] = true;
    search->before[reached] = waiter;
    search->sequences[reached] = atomic_load(&seat->sequence);
    search->needs_steps[reached] = atomic_load(&seat->needs_step);
    search->reached[search->count++] = reached;
}

/* Whether a process has done nothing since it was reached, and still waits for another one. */
static bool is_still_waiting(const struct search *search, uint32_t rank, uint32_t other)
{
    struct circle_seat *seat = search->circle->seat(search->circle->context, rank);
    return waits_for(search, rank, other) &&
           atomic_load(&seat->needs_step) == search->needs_steps[rank] &&
           atomic_load(&seat->sequence) == search->sequences[rank];
}

/* Looks a second time at all on the way from the one that asks to `last`, which waits for it. Those
 * who wait both times as they did have waited in between, all at once. */
static bool confirm(const struct search *search, uint32_t last, uint32_t *ret_next,
                    uint32_t *ret_after)
{
    uint32_t own = search->circle->rank, next = own, after = own;
    for (uint32_t rank = last; rank != own; rank = search->before[rank]) {
        if (!is_still_waiting(search, rank, next)) {
            return false;
        }
        after = next;
        next = rank;
    }
    *ret_next = next;
    *ret_after = after;
    return true;
}

bool circle_find(const struct circle *circle, const struct circle_lack *lack, uint32_t *ret_next,
                 uint32_t *ret_after)
{
    struct search search = {.circle = circle};
    for (uint32_t rank = 0; rank < circle->size; rank++) {
        if (rank != circle->rank && has_rank(lack->ranks[rank / 64], rank) &&
            !circle->has_bytes(circle->context, lack->kind, rank, circle->rank)) {
            reach(&search, circle->rank, rank);
        }
    }
    for (uint32_t i = 0; i < search.count; i++) {
        uint32_t rank = search.reached[i];
        if (waits_for(&search, rank, circle->rank)) {
            return confirm(&search, rank, ret_next, ret_after);
        }
        for (uint32_t other = 0; other < circle->size; other++) {
            if (other != circle->rank && !search.is_reached[other] &&
                waits_for(&search, rank, other)) {
                reach(&search, rank, other);
            }
        }
    }
    return false;
}
