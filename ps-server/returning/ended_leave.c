/* Gives up members that have ended, where the next generation begins before all are back. */
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/returning/ended.h"
#include "ps-server/returning/ended_places.h"

/* The next number, from this one on, of a process of the launcher that may be a member and has not
 * come. Behind the last one if there is none. */
static uint32_t next_missing(struct ended *ended, const struct job *own,
                             const struct coordinator *coordinator, enum member_role role,
                             uint32_t number)
{
    uint32_t end = ended_end_number(own, role);
    for (; number < end; number++) {
        const struct sender at = membership_called(&coordinator->membership, role, number);
        bool has_come = at.slot != NULL && at.slot->state != SLOT_FREE;
        if (ended_may_be_member(ended, coordinator, role, number) && !has_come) {
            return number;
        }
    }
    return end;
}

/* Where numbers are not certain: those that run and have not come get the free places, by their
 * numbers. The others are of members that have ended, if there are no more of them than that. */
static void leave_by_count(struct ended *ended, const struct job *own,
                           struct coordinator *coordinator, enum member_role role,
                           struct sender *culprit, uint64_t now_ms)
{
    const struct membership *membership = &coordinator->membership;
    uint32_t end = ended_end_number(own, role), count = ended_count_processes(coordinator, role);
    uint32_t first = next_missing(ended, own, coordinator, role, ended_first_number(own, role));
    uint32_t numbers[JOB_WORKERS_MAX], listed = 0, given = 0, free_places = 0;
    for (uint32_t at = first; at < end; at = next_missing(ended, own, coordinator, role, at + 1)) {
        numbers[listed++] = at;
    }
    for (uint32_t i = 0; i < count; i++) {
        free_places += membership_member(membership, role, i).slot->state == SLOT_FREE;
    }
    if (free_places < listed || free_places - listed > ended_count_lost(ended, role)) {
        return; // some are known to others than the launcher
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct sender at = membership_member(membership, role, i);
        if (at.slot->state == SLOT_FREE && given < listed) {
            at.slot->number = numbers[given++];
        } else if (at.slot->state == SLOT_FREE) {
            ended_lose(ended, false, coordinator, &at, now_ms);
            *culprit = culprit->slot != NULL ? *culprit : at;
        }
    }
}

/* The first member of a role that came in the place of a lost one becomes *culprit, unless there is
 * one. */
static void name_replaced(struct ended *ended, const struct coordinator *coordinator,
                          enum member_role role, struct sender *culprit)
{
    uint32_t count = ended_count_processes(coordinator, role);
    for (uint32_t i = 0; i < count && culprit->slot == NULL; i++) {
        const struct sender at = membership_member(&coordinator->membership, role, i);
        const struct ended_place *place = ended_place_of(ended, role, at.slot->number);
        bool is_here = at.slot->state != SLOT_FREE && at.slot->state != SLOT_GONE;
        if (is_here && place != NULL && place->kind == ENDED_AWAITED) {
            *culprit = at;
        }
    }
}

void ended_leave(struct ended *ended, const struct returning *returning, const struct job *own,
                 struct coordinator *coordinator, uint64_t now_ms)
{
    static const enum member_role roles[] = {ROLE_WORKER, ROLE_SERVER};
    struct sender culprit = {.slot = NULL};
    for (uint32_t i = 0; i < 2 && ended->has_any && coordinator->is_returned; i++) {
        if (ended_is_certain(returning, roles[i])) {
            ended_give_up(ended, true, coordinator, roles[i], &culprit, now_ms);
        } else {
            leave_by_count(ended, own, coordinator, roles[i], &culprit, now_ms);
        }
        name_replaced(ended, coordinator, roles[i], &culprit);
    }
    if (culprit.slot != NULL) {
        generation_lose_too(coordinator, ended->sentence, &culprit);
    }
    ended_settle(ended);
}
