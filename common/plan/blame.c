/* Follows the chain of members that wait for each other. */
#include "common/plan/blame.h"

static uint32_t awaited_by(const struct blame_member *members, uint32_t count, uint32_t index)
{
    uint32_t awaited = members[index].awaits;
    return awaited < count && awaited != index ? awaited : BLAME_NOBODY;
}

/* Whether what one has sent to the other has not come, although the other waits for it. */
static bool has_lost(const struct blame_member *from, const struct blame_member *to,
                     uint32_t to_index)
{
    return to_index >= from->given_first && to_index - from->given_first < from->given_count &&
           from->given[to_index - from->given_first] > to->taken;
}

struct blame blame_find(const struct blame_member *members, uint32_t count, uint32_t first)
{
    uint32_t waiter = BLAME_NOBODY, at = first;
    for (uint32_t i = 0; i <= count; i++) { // then the chain goes round
        uint32_t next = awaited_by(members, count, at);
        if (next == BLAME_NOBODY) {
            return (struct blame){waiter, at, false, true};
        }
        bool is_pair =
            awaited_by(members, count, next) == at || has_lost(&members[next], &members[at], at);
        if (is_pair) {
            return (struct blame){at, next, true, true};
        }
        waiter = at;
        at = next;
    }
    return (struct blame){waiter, at, false, false};
}
