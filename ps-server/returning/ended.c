/* Finds members that have ended, so that nobody waits for them. */
#include "ps-server/returning/ended.h"

#include "common/job/carriers.h"
#include "common/job/job_modes.h"
#include "common/service/launch_number.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/returning/ended_places.h"

#include <stdio.h>
#include <string.h>

#define TURN_MS 1000 // of the loop, at most

/* The places of a role. */
struct places {
    struct ended_place *list; // (count)
    uint32_t count;
};

static struct places places_of(struct ended *ended, enum member_role role)
{
    return role == ROLE_WORKER ? (struct places){ended->workers, JOB_WORKERS_MAX}
                               : (struct places){ended->servers, JOB_SERVERS_MAX + 1};
}

struct ended_place *ended_place_of(struct ended *ended, enum member_role role, uint32_t number)
{
    struct places places = places_of(ended, role);
    return number < places.count ? &places.list[number] : NULL;
}

/* Whether the job counted on one that has ended. */
static bool is_loss(enum ended_kind kind)
{
    return kind == ENDED_LOST || kind == ENDED_AWAITED;
}

/* Whether one before it in its place was lost while members come back: that counts once. */
static bool is_known_loss(struct ended *ended, const struct launcher_news *news)
{
    const struct ended_place *place = ended_place_of(ended, news->role, news->index);
    return place != NULL && is_loss(place->kind);
}

static void note(struct ended *ended, const struct launcher_news *news, enum ended_kind kind)
{
    struct ended_place *place = ended_place_of(ended, news->role, news->index);
    if (place == NULL || launch_number_follows(place->launch, news->launch)) {
        return;
    }
    bool is_lost = is_loss(kind), was_lost = is_loss(place->kind);
    bool is_counted = news->is_counted || (was_lost && place->is_counted);
    *place = (struct ended_place){kind, news->launch, is_counted};
    ended->has_any = true;
    if (ended->sentence[0] == '\0' || (is_lost && !ended->says_lost)) {
        snprintf(ended->sentence, sizeof(ended->sentence), "%s", news->sentence);
        ended->says_lost = is_lost;
    } else if (is_lost && !was_lost) {
        (void)generation_join(ended->sentence, news->sentence);
    }
}

bool ended_is_certain(const struct returning *returning, enum member_role role)
{
    return role == ROLE_WORKER ? returning->has_workers : returning->has_servers;
}

uint32_t ended_count_processes(const struct coordinator *coordinator, enum member_role role)
{
    return role == ROLE_WORKER ? coordinator->membership.worker_count : coordinator->job->servers;
}

/* Whether a process is back, with all its slots. */
static bool is_back(const struct coordinator *coordinator, struct sender first)
{
    for (struct sender at = first; at.slot != NULL;
         at = membership_next_of(&coordinator->membership, &at, coordinator->job->servers)) {
        if (at.slot->state == SLOT_FREE || at.slot->is_asked_back) {
            return false;
        }
    }
    return true;
}

/* Takes news while members come back to the coordinator. False: this member was back already. */
static bool take_while_back(struct ended *ended, const struct returning *returning,
                            struct coordinator *coordinator, const struct launcher_news *news)
{
    struct sender called;
    if (!launcher_news_find(news, coordinator, &called)) {
        return true; // another process is back with this number
    }
    if (called.slot != NULL && called.slot->state != SLOT_FREE) {
        return false; // it was back
    }
    bool is_awaited = news->kind == LAUNCHER_AGAIN && ended_is_certain(returning, news->role) &&
                      called.slot != NULL;
    if (is_awaited) {
        coordinator->workers_lost += news->role == ROLE_WORKER && !is_known_loss(ended, news);
        called.slot->was_lost = true;
        coordinator_port_await_again(&coordinator->port, news->role, news->index);
    }
    // One that has asked for a place had no part in the job.
    bool is_over =
        news->kind == LAUNCHER_OVER || newcomers_have_launch(&coordinator->newcomers, news->launch);
    newcomers_note_ended(&coordinator->newcomers, news->launch);
    note(ended, news, is_over ? ENDED_OVER : is_awaited ? ENDED_AWAITED : ENDED_LOST);
    return true;
}

/* Keeps for later what the job hears of, and goes on without: nobody says it again to a coordinator
 * that has been away. */
static void keep(struct ended *ended, const struct launcher_news *news)
{
    bool is_end = news->kind == LAUNCHER_ENDED || news->kind == LAUNCHER_KILLED ||
                  news->kind == LAUNCHER_LOST || news->kind == LAUNCHER_OVER ||
                  news->kind == LAUNCHER_NEWCOMER;
    struct ended_place *place = ended_place_of(ended, news->role, news->index);
    if (is_end && place != NULL && !launch_number_follows(place->launch, news->launch)) {
        *place = (struct ended_place){ENDED_OVER, news->launch, news->is_counted};
    }
}

bool ended_take(struct ended *ended, const struct returning *returning,
                struct coordinator *coordinator, const struct launcher_news *news)
{
    bool is_of_member = news->kind == LAUNCHER_KILLED || news->kind == LAUNCHER_AGAIN ||
                        news->kind == LAUNCHER_LOST || news->kind == LAUNCHER_OVER;
    if (is_of_member && coordinator_takes_back(coordinator)) {
        return take_while_back(ended, returning, coordinator, news);
    }
    if (!returning_may_begin(coordinator)) {
        keep(ended, news);
        return false;
    }
    if (news->kind == LAUNCHER_AGAIN) {
        note(ended, news, ENDED_AWAITED);
    } else if (news->kind == LAUNCHER_LOST || news->kind == LAUNCHER_OVER) {
        note(ended, news, news->kind == LAUNCHER_LOST ? ENDED_LOST : ENDED_OVER);
        return true;
    }
    return false;
}

void ended_note_counted(struct ended *ended, const struct launcher_news *news)
{
    struct ended_place *place = ended_place_of(ended, news->role, news->index);
    if (place != NULL && place->launch == news->launch) {
        place->is_counted = true;
    }
}

/* Whether the member that has this number is back. */
static bool is_number_back(const struct coordinator *coordinator, enum member_role role,
                           uint32_t number)
{
    const struct membership *membership = &coordinator->membership;
    uint32_t count = ended_count_processes(coordinator, role);
    for (uint32_t i = 0; i < count; i++) {
        const struct sender at = membership_member(membership, role, i);
        if (at.slot != NULL && at.slot->number == number && is_back(coordinator, at)) {
            return true;
        }
    }
    return false;
}

/* One has not come that was started again. */
static void expire(struct ended *ended, const struct sender *awaited, struct ended_place *place,
                   double waited_s)
{
    char late[128];
    snprintf(late, sizeof(late),
             "%s %u was started again, and did not come within %.0f s "
             "(--start-timeout)",
             role_name(awaited->role), awaited->slot->number, waited_s);
    (void)generation_join(ended->sentence, late);
    place->kind = ENDED_LOST;
    place->is_counted = true;
}

/* Those that are started again have --start-timeout. Until then no other deadline is theirs. */
static void await_started(struct ended *ended, const struct coordinator *coordinator,
                          enum member_role role, uint64_t now_ms)
{
    const struct membership *membership = &coordinator->membership;
    double most_s = coordinator->job->start_timeout * membership_crowding_max(membership);
    uint64_t idle_ms = ended->judged_ms > 0 ? now_ms - ended->judged_ms : 0;
    uint64_t unseen_ms = (uint64_t)(750 * coordinator->job->lost_after);
    struct sender at = membership_member(membership, role, 0);
    for (; at.slot != NULL; at = membership_member(membership, role, at.index + 1)) {
        bool is_thread = role == ROLE_SERVER && at.slot->number >= JOB_SERVERS_MAX;
        struct ended_place *place = ended_place_of(
            ended, role, is_thread ? at.slot->number % JOB_SERVERS_MAX : at.slot->number);
        if (at.slot->state != SLOT_FREE || place == NULL || place->kind != ENDED_AWAITED) {
            continue;
        }
        at.slot->was_lost = true;
        if (place->since_ms == 0) {
            place->since_ms = now_ms;
        } else if (idle_ms > TURN_MS && !is_thread) { // this process stood still
            place->since_ms += idle_ms;
        }
        double waited_s = (double)(now_ms - place->since_ms) / 1000;
        if (waited_s >= most_s) {
            expire(ended, &at, place, waited_s);
        } else { // not late, and not seen either: see deadlines_hears_nobody
            at.slot->heard_ms = now_ms > unseen_ms ? now_ms - unseen_ms : 0;
            at.slot->step_since_ms = now_ms;
        }
    }
}

uint32_t ended_first_number(const struct job *own, enum member_role role)
{
    return role == ROLE_WORKER ? 0 : job_first_server(own);
}

uint32_t ended_end_number(const struct job *own, enum member_role role)
{
    return ended_first_number(own, role) +
           (role == ROLE_WORKER ? job_carriers(own).processes : own->servers);
}

bool ended_may_be_member(struct ended *ended, const struct coordinator *coordinator,
                         enum member_role role, uint32_t number)
{
    const struct ended_place *place = ended_place_of(ended, role, number);
    bool is_newcomer =
        role == ROLE_WORKER && newcomers_have_number(&coordinator->newcomers, number);
    return (place == NULL || place->kind == ENDED_NOT) && !is_newcomer;
}

/* Whether all processes of the launcher that run are back, but for those that have no part in the
 * job yet. */
static bool are_running_back(struct ended *ended, const struct job *own,
                             const struct coordinator *coordinator, enum member_role role)
{
    uint32_t end = ended_end_number(own, role);
    for (uint32_t number = ended_first_number(own, role); number < end; number++) {
        if (ended_may_be_member(ended, coordinator, role, number) &&
            !is_number_back(coordinator, role, number)) {
            return false;
        }
    }
    return true;
}

uint32_t ended_count_lost(struct ended *ended, enum member_role role)
{
    struct places places = places_of(ended, role);
    uint32_t lost = 0;
    for (uint32_t i = 0; i < places.count; i++) {
        lost += is_loss(places.list[i].kind);
    }
    return lost;
}

/* Whether the member of a slot has ended. Its BACK may have waited here since before it did. */
static bool has_ended(struct ended *ended, enum member_role role, const struct slot *slot)
{
    const struct ended_place *place = ended_place_of(ended, role, slot->number);
    bool is_it = place != NULL &&
                 (slot->state == SLOT_FREE || place->launch == 0 || place->launch == slot->launch);
    return is_it && (place->kind == ENDED_LOST || place->kind == ENDED_OVER);
}

/* Whether all members of a role that may come are back. One whose answer is due is not back yet. */
static bool is_all_known(struct ended *ended, const struct job *own,
                         const struct coordinator *coordinator, enum member_role role)
{
    const struct membership *membership = &coordinator->membership;
    uint32_t count = ended_count_processes(coordinator, role);
    uint32_t missing = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct sender at = membership_member(membership, role, i);
        if (at.slot != NULL && at.slot->is_asked_back && !has_ended(ended, role, at.slot)) {
            return false;
        }
        missing += at.slot != NULL && !is_back(coordinator, at);
    }
    return missing <= ended_count_lost(ended, role) &&
           are_running_back(ended, own, coordinator, role);
}

/* Takes one of the lost whose loss was counted before; it is not found again. False: none is left.
 */
static bool take_counted(struct ended *ended, enum member_role role)
{
    struct places places = places_of(ended, role);
    for (uint32_t i = 0; i < places.count; i++) {
        if (is_loss(places.list[i].kind) && places.list[i].is_counted) {
            places.list[i].is_counted = false;
            return true;
        }
    }
    return false;
}

void ended_lose(struct ended *ended, bool are_certain, struct coordinator *coordinator,
                const struct sender *lost, uint64_t now_ms)
{
    const struct ended_place *place = ended_place_of(ended, lost->role, lost->slot->number);
    lost->slot->was_lost |=
        are_certain ? place != NULL && place->is_counted : take_counted(ended, lost->role);
    generation_note_lost(coordinator, lost, now_ms);
}

void ended_give_up(struct ended *ended, bool are_certain, struct coordinator *coordinator,
                   enum member_role role, struct sender *culprit, uint64_t now_ms)
{
    const struct membership *membership = &coordinator->membership;
    uint32_t count = ended_count_processes(coordinator, role);
    for (uint32_t i = 0; i < count; i++) {
        const struct sender at = membership_member(membership, role, i);
        bool is_here = at.slot != NULL && at.slot->state != SLOT_FREE && !at.slot->is_asked_back;
        if (at.slot != NULL && !is_here &&
            (has_ended(ended, role, at.slot) || (!are_certain && at.slot->state == SLOT_FREE))) {
            ended_lose(ended, are_certain, coordinator, &at, now_ms);
            *culprit = culprit->slot != NULL ? *culprit : at;
        }
    }
}

/* Whether a process is still to come in the place of one that has ended. */
static bool awaits_any(struct ended *ended, const struct coordinator *coordinator,
                       enum member_role role)
{
    struct sender at = membership_member(&coordinator->membership, role, 0);
    for (; at.slot != NULL; at = membership_member(&coordinator->membership, role, at.index + 1)) {
        const struct ended_place *place = ended_place_of(ended, role, at.slot->number);
        if (at.slot->state == SLOT_FREE && place != NULL && place->kind == ENDED_AWAITED) {
            return true;
        }
    }
    return false;
}

/* The job has gone on without those that are over: the coordinator that went on counted them. */
static void note_counted_before(struct ended *ended)
{
    const struct places places = places_of(ended, ROLE_WORKER); // servers are not counted
    for (uint32_t i = 0; i < places.count; i++) {
        places.list[i].is_counted |= places.list[i].kind == ENDED_OVER;
    }
}

/* Judges for a coordinator to which nobody has come back: its members join. */
static void judge_joined(struct ended *ended, const struct job *own,
                         struct coordinator *coordinator, uint64_t now_ms)
{
    static const enum member_role roles[] = {ROLE_WORKER, ROLE_SERVER};
    struct sender culprit = {.slot = NULL};
    if (!job_may_go_on(own) || job_may_commit(own)) { // a program knows itself who has its commit
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (!are_running_back(ended, own, coordinator, roles[i]) ||
            awaits_any(ended, coordinator, roles[i])) {
            return;
        }
    }
    note_counted_before(ended);
    ended_give_up(ended, true, coordinator, ROLE_WORKER, &culprit, now_ms);
    ended_give_up(ended, true, coordinator, ROLE_SERVER, &culprit, now_ms);
    if (culprit.slot != NULL) {
        coordinator_close(coordinator, STATUS_AGAIN, ended->sentence, &culprit, now_ms);
    }
}

void ended_settle(struct ended *ended)
{
    struct places all[] = {places_of(ended, ROLE_WORKER), places_of(ended, ROLE_SERVER)};
    for (uint32_t i = 0; i < all[0].count + all[1].count; i++) {
        struct ended_place *place =
            i < all[0].count ? &all[0].list[i] : &all[1].list[i - all[0].count];
        if (is_loss(place->kind)) {
            place->kind = place->kind == ENDED_LOST ? ENDED_OVER : ENDED_NOT;
        }
    }
    ended->has_any = ended->says_lost = false;
    ended->sentence[0] = '\0';
}

/* Forgets the ends of processes whose numbers members of the job have that were started later. */
static void forget_those_of_now(struct ended *ended, const struct coordinator *coordinator,
                                enum member_role role)
{
    uint32_t count = ended_count_processes(coordinator, role);
    for (uint32_t i = 0; i < count; i++) {
        const struct slot *slot = membership_member(&coordinator->membership, role, i).slot;
        struct ended_place *place = ended_place_of(ended, role, slot->number);
        if (place != NULL && slot->state != SLOT_FREE && slot->state != SLOT_GONE) {
            place->kind = ENDED_NOT;
        }
    }
}

/* The job is under way: what is known of its ends is of processes that it does without. */
static void keep_over(struct ended *ended, const struct coordinator *coordinator)
{
    static const enum member_role roles[] = {ROLE_WORKER, ROLE_SERVER};
    if (ended->has_any) {
        ended_settle(ended);
    }
    for (uint32_t i = 0; i < 2; i++) {
        forget_those_of_now(ended, coordinator, roles[i]);
    }
}

static void await_all_started(struct ended *ended, const struct returning *returning,
                              const struct coordinator *coordinator, uint64_t now_ms)
{
    static const enum member_role roles[] = {ROLE_WORKER, ROLE_SERVER};
    for (uint32_t i = 0; i < 2; i++) {
        if (ended_is_certain(returning, roles[i])) {
            await_started(ended, coordinator, roles[i], now_ms);
        }
    }
}

void ended_judge(struct ended *ended, const struct returning *returning, const struct job *own,
                 struct coordinator *coordinator, uint64_t now_ms)
{
    struct sender culprit = {.slot = NULL};
    if (coordinator->state == COORDINATOR_RENEWING) { // see ended_leave
        return;
    }
    bool is_deaf = coordinator->deaf_ms != 0; // and judges nobody: the time does not count
    if (ended->has_any && !is_deaf && coordinator_takes_back(coordinator)) {
        await_all_started(ended, returning, coordinator, now_ms);
    }
    ended->judged_ms = is_deaf ? ended->judged_ms : now_ms;
    if (returning_may_begin(coordinator)) {
        if (ended->has_any) {
            judge_joined(ended, own, coordinator, now_ms);
        }
        return;
    }
    if (!coordinator_takes_back(coordinator)) {
        keep_over(ended, coordinator);
        return;
    }
    if (!ended->has_any || !is_all_known(ended, own, coordinator, ROLE_WORKER) ||
        !is_all_known(ended, own, coordinator, ROLE_SERVER)) {
        return;
    }
    ended_give_up(ended, ended_is_certain(returning, ROLE_WORKER), coordinator, ROLE_WORKER,
                  &culprit, now_ms);
    ended_give_up(ended, ended_is_certain(returning, ROLE_SERVER), coordinator, ROLE_SERVER,
                  &culprit, now_ms);
    if (culprit.slot != NULL) {
        generation_lose(coordinator, STATUS_UNREACHABLE, ended->sentence, &culprit, now_ms);
    }
}
