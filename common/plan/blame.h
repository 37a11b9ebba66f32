/* Finds who holds up others that wait for each other. Pure.
 *
 * Each member says which one it waits for. A member that waits for another is innocent, so the
 * chain of waiting members leads to the one that waits for none, and that one is to blame. Where
 * it leads to two that wait for each other, the two do not reach each other. In a circle, such as a
 * ring of workers, each of which waits for the one before it, what they have sent and what has come
 * shows where something was lost: the chain ends where a member has sent more than has come.
 *
 *     0 waits for 1, 1 for 2, 2 computes                       2
 *     0 waits for 1, 1 for 2, 2 for 1                          the pair 1 and 2
 *     0 waits for 2, 1 for 0, 2 for 1; 1 has sent 7 to 2,      the pair 1 and 2
 *     of which 5 have come; all others have come
 *
 * Messages that are on their way look like lost ones. So this is asked only when nothing has moved
 * for long. */
#ifndef COMMON_PLAN_BLAME_H
#define COMMON_PLAN_BLAME_H

#include <stdbool.h>
#include <stdint.h>

#define BLAME_NOBODY UINT32_MAX

/* A member, by its index in an array of them. */
struct blame_member {
    uint32_t awaits;       // whom it waits for; BLAME_NOBODY: it has something to do
    uint64_t taken;        // messages that have come from the one that it waits for
    const uint64_t *given; // (given_count) those that it has sent to members from given_first on
    uint32_t given_first, given_count;
};

struct blame {
    uint32_t waiter;  // the last one of the chain that waits; BLAME_NOBODY: the first one does not
    uint32_t awaited; // the member that it waits for, or the first one
    bool is_pair;     // the two do not reach each other
    bool is_known;    // otherwise the chain goes round, and nothing shows where it is broken
};

/* Follows the chain from a member. What members say of indexes that do not exist is ignored. */
struct blame blame_find(const struct blame_member *members, uint32_t count, uint32_t first);

#endif
