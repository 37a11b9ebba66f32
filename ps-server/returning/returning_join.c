/* Takes members in that ask to join while others come back. */
#include "common/job/carriers.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/returning/returning.h"
#include "ps-server/returning/returning_places.h"

#include <stddef.h>

/* Whether its number is that of a slot of this job: numbers are, as long as nobody was lost. The
 * coordinator's own server is never lost without it. */
static bool is_certain(const struct returning *returning, const struct job *job,
                       const struct wire_member *member)
{
    return member->role == ROLE_WORKER
               ? returning->has_workers
               : returning->has_servers || (member->rank == 0 && job_first_server(job) == 0);
}

/* Whether it is a further thread of a server, whose first one joins for all. */
static bool is_thread(const struct returning *returning, const struct job *job,
                      const struct wire_member *member)
{
    uint32_t end = returning->has_servers ? job_first_server(job) + job->servers : JOB_SERVERS_MAX;
    return member->role == ROLE_SERVER && member->rank >= end;
}

/* A free slot for a member whose number is not certain: in the order of numbers, as far as they are
 * known. */
static struct sender free_place(const struct coordinator *coordinator, enum member_role role,
                                uint32_t number)
{
    const struct membership *membership = &coordinator->membership;
    bool is_worker = role == ROLE_WORKER;
    uint32_t count = is_worker ? membership->worker_count : coordinator->job->servers;
    uint32_t first = is_worker || job_first_server(coordinator->job) > 0 ? 0 : 1;
    struct sender found = {NULL, role, 0}, before = found;
    for (uint32_t i = first; i < count; i++) {
        const struct sender at = membership_member(membership, role, i);
        if (at.slot->state == SLOT_FREE) {
            found = found.slot == NULL ? at : found;
        } else if (at.slot->number < number) {
            before = before.slot == NULL ? found : before;
            found.slot = NULL;
        }
    }
    return found.slot != NULL ? found : before;
}

/* The slot that one has been given which asks to join, or may be given. NULL: there is none. Who
 * was in the job before has a slot, though it is not certain which. */
static struct sender place_of(const struct returning *returning,
                              const struct coordinator *coordinator, uint64_t peer,
                              const struct message *join)
{
    const struct wire_member *member = join->member;
    const struct sender none = {NULL, member->role, 0};
    const struct membership *membership = &coordinator->membership;
    const struct job *job = coordinator->job;
    struct sender known;
    if (membership_find(membership, peer, &known)) {
        return known;
    }
    bool was_there = member->role == ROLE_SERVER || join->generation > 0;
    if (!member->has_rank || is_thread(returning, job, member)) {
        return none;
    }
    if (!is_certain(returning, job, member)) {
        return was_there ? free_place(coordinator, member->role, member->rank) : none;
    }
    known = membership_called(membership, member->role, member->rank);
    return known.slot != NULL && known.slot->state == SLOT_FREE ? known : none;
}

/* The slot of the same process's next thread: a worker has none. */
static struct sender next_seat(const struct coordinator *coordinator, const struct sender *seat)
{
    return membership_next_of(&coordinator->membership, seat, coordinator->job->servers);
}

/* Notes the numbers of a process that gets slots whose numbers were guesses. */
static void note_numbers(struct generation *generation, struct coordinator *coordinator,
                         const struct sender *first, uint32_t number)
{
    struct sender seat = *first;
    for (; seat.slot != NULL; seat = next_seat(coordinator, &seat)) {
        returning_note_number(generation, &coordinator->membership, &seat, number);
        if (seat.role == ROLE_WORKER) {
            newcomers_leave_number(coordinator, number);
        }
        number += JOB_SERVERS_MAX; // of the next thread: see generation.h
    }
}

/* Gives a process its slots, or hears it once more. */
static void take_seats(struct coordinator *coordinator, uint64_t peer, const struct sender *first,
                       const struct wire_member *joining, uint64_t now_ms)
{
    struct membership *membership = &coordinator->membership;
    bool is_new = first->slot->state == SLOT_FREE;
    struct wire_member member = *joining;
    member.launch = membership_launch(membership, joining);
    struct sender seat = *first;
    for (; seat.slot != NULL; seat = next_seat(coordinator, &seat)) {
        struct membership_refusal refusal;
        uint32_t index;
        member.rank = seat.slot->number;
        if (is_new &&
            membership_join(membership, &member, peer, now_ms, &index, &refusal) == STATUS_OK) {
            slot_enter(membership, seat.slot, SLOT_CONNECTED, now_ms);
            seat.slot->has_commit = false; // nobody knows whether it has the newest
        }
        slot_hear(seat.slot, 0, now_ms);
    }
}

bool returning_take_join(struct returning *returning, struct generation *generation,
                         struct coordinator *coordinator, uint64_t peer, const struct message *join,
                         uint64_t now_ms)
{
    const struct sender at = place_of(returning, coordinator, peer, join);
    if (coordinator->state != COORDINATOR_GATHERING || at.slot == NULL) {
        return false;
    }
    if (at.slot->state == SLOT_FREE && !is_certain(returning, coordinator->job, join->member)) {
        note_numbers(generation, coordinator, &at, join->member->rank);
    }
    take_seats(coordinator, peer, &at, join->member, now_ms);
    returning->is_anew = true;
    const struct message answer = {.kind = MESSAGE_REFUSE,
                                   .reason = STATUS_AGAIN,
                                   .rank = join->member->rank,
                                   .text = "the job goes on soon, and takes this member in then"};
    coordinator_port_send(&coordinator->port, peer, &answer);
    returning_look_for_all(returning, generation, coordinator, now_ms);
    return true;
}
