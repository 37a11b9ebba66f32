/* Finds members that come back only because their connection was closed. */
#include "common/job/carriers.h"
#include "common/job/job_modes.h"
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/coordinator/deadlines.h"
#include "ps-server/returning/returning.h"

#include <stdio.h>

bool returning_is_reconnected(const struct coordinator *coordinator, const struct message *back)
{
    const struct job *job = coordinator->job;
    const struct sender at = membership_same(&coordinator->membership, back->member);
    bool has_begun =
        coordinator->state == COORDINATOR_CONNECTING || coordinator->state == COORDINATOR_TRAINING;
    bool is_there = at.slot != NULL && at.slot->state != SLOT_FREE && at.slot->state != SLOT_GONE;
    bool was_away = (double)back->back->alone_ms >= 1000 * job->lost_after;
    return has_begun && is_there && !was_away && back->back->term == coordinator->term &&
           !job_trains_alone(job) && job_may_go_on(job) && stalls_may_renew(coordinator);
}

void returning_renew(struct coordinator *coordinator, uint64_t peer, const struct message *back,
                     uint64_t now_ms)
{
    char reason[COORDINATOR_REASON_BYTES];
    const struct wire_member *member = back->member;
    (void)coordinator_find_again(coordinator, peer, back, now_ms);
    snprintf(reason, sizeof(reason),
             "%s %u (host %s) did not reach the coordinator: their connection was closed",
             role_name(member->role), member->rank, member->host);
    uint64_t alone_ms = back->back->alone_ms; // it waits since
    generation_renew(coordinator, reason, alone_ms < now_ms ? now_ms - alone_ms : now_ms, now_ms);
}
