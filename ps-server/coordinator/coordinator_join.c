/* Lets members join, and frees the places of those that are lost before the job begins. */
#include "common/job/job_modes.h"
#include "common/service/launch_number.h"
#include "ps-server/coordinator/checkpoint_ranks.h"
#include "ps-server/coordinator/coordinator_handshake.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/coordinator/generation.h"
#include "ps-server/coordinator/newcomers.h"

#include <stdio.h>
#include <string.h>

static void refuse(const struct coordinator_port *port, uint64_t peer,
                   const struct wire_member *member, enum status reason, const char *sentence)
{
    coordinator_port_refuse(port, peer, member->host, member->process_id, reason, sentence);
}

static void refuse_version(const struct coordinator_port *port, uint64_t peer,
                           const struct message *join)
{
    char sentence[COORDINATOR_REASON_BYTES];
    snprintf(sentence, sizeof(sentence),
             "it has ringside %.32s and the coordinator has %s: use the same version everywhere",
             join->text, RINGSIDE_VERSION);
    refuse(port, peer, join->member, STATUS_MISMATCH, sentence);
}

static void welcome(const struct coordinator *coordinator, uint64_t peer, enum member_role role,
                    uint32_t index)
{
    const struct coordinator_resume *resume = coordinator->resume;
    struct wire_report report;
    struct wire_slices slices;
    struct message message = {
        .kind = MESSAGE_WELCOME,
        .rank = index,
        .text = coordinator->job_text,
        .seal_key = coordinator->seal_key,
        .step = resume != NULL ? resume->step : 0,
        .generation = coordinator->generation != NULL ? coordinator->generation->number : 0,
        .reason = generation_is_in_place(coordinator) ? STATUS_AGAIN : STATUS_OK,
    };
    if (resume != NULL && role == ROLE_WORKER) {
        checkpoint_ranks_give(resume, carriers_block(coordinator->carriers, index), &report,
                              &slices);
        message.report = &report;
        message.slices = &slices;
    }
    coordinator_port_send(&coordinator->port, peer, &message);
}

/* Whether the place is that of a process of the launcher, and this is another one. */
static bool is_of_another(const struct slot *place, const struct wire_member *member)
{
    return place->launch != 0 && place->launch != member->launch;
}

/* Whether it has come by hand, and asks for no place, where a launcher starts a process for each.
 * Whoever got its place would be refused, and the job would fail. */
static bool is_spare(const struct coordinator *coordinator, const struct wire_member *member)
{
    return coordinator->is_launched && member->role == ROLE_WORKER && member->launch == 0 &&
           !member->has_rank;
}

/* Whether a member has no place in this generation. The places of all but the first are kept for
 * the processes that come back to them. */
static bool is_newcomer(const struct coordinator *coordinator, uint64_t peer,
                        const struct wire_member *member)
{
    if (newcomers_have(&coordinator->newcomers, peer)) {
        return true; // it asks again, with the number that it was told
    }
    if (coordinator->state != COORDINATOR_GATHERING || coordinator->is_returned) {
        return true; // those who are to come back train
    }
    if (is_spare(coordinator, member)) {
        return true;
    }
    const struct slot *place =
        membership_called(&coordinator->membership, ROLE_WORKER, member->rank).slot;
    bool has_place = member->has_rank && place != NULL && !is_of_another(place, member);
    return coordinator->generation != NULL && member->role == ROLE_WORKER && !has_place;
}

bool handshake_may_vacate(const struct coordinator *coordinator, const struct sender *lost,
                          char *ret_why, size_t why_size)
{
    const struct job *job = coordinator->job;
    bool is_own =
        lost->role == ROLE_SERVER && job_first_server(job) == 0 && lost->index % job->servers == 0;
    ret_why[0] = '\0';
    if (coordinator->state != COORDINATOR_GATHERING || coordinator->generation != NULL ||
        coordinator->is_returned || lost->slot == NULL || is_own) {
        return false;
    }
    if (coordinator->sums.round > 0 && coordinator->membership.worker_count > 1) {
        snprintf(ret_why, why_size,
                 "the others have results of collectives that its program called before the start, "
                 "so no other process can take its place");
        return false;
    }
    return true;
}

/* Frees a member's place for another process, which gives to sums in its place. */
static void free_place(struct coordinator *coordinator, const struct sender *old, uint64_t now_ms)
{
    if (old->role == ROLE_WORKER) {
        struct rank_block ranks = carriers_block(coordinator->carriers, old->index);
        for (uint32_t i = 0; i < ranks.count; i++) {
            sums_withdraw(&coordinator->sums, ranks.first + i);
        }
    }
    membership_vacate(&coordinator->membership, old, coordinator->job->servers, now_ms);
}

bool handshake_vacate(struct coordinator *coordinator, const struct sender *lost,
                      const char *sentence, uint64_t now_ms)
{
    char why[COORDINATOR_REASON_BYTES];
    if (!handshake_may_vacate(coordinator, lost, why, sizeof(why))) {
        return false;
    }
    if (lost->slot->was_lost) {
        return true; // the place is free already
    }
    coordinator->workers_lost += lost->role == ROLE_WORKER && lost->slot->state != SLOT_GONE;
    snprintf(coordinator->vacated, sizeof(coordinator->vacated), "%s", sentence);
    // A coordinator that was started again does not know whether the job had begun until somebody
    // comes back.
    coordinator_port_say(&coordinator->port, true,
                         "%s; the %s, and waits for another process in its place", sentence,
                         coordinator->restarts_before > 0
                             ? "coordinator has just been started again"
                             : "job has not begun");
    free_place(coordinator, lost, now_ms);
    return true;
}

/* The place of which one that asks for none would get the next: where none is free, one whose
 * connection is closed. */
static struct sender find_closed(const struct membership *membership, enum member_role role)
{
    struct sender closed = {NULL, role, 0}, at = membership_member(membership, role, 0);
    for (; at.slot != NULL; at = membership_member(membership, role, at.index + 1)) {
        if (at.slot->state == SLOT_FREE) {
            return (struct sender){NULL, role, 0};
        }
        closed = closed.slot == NULL && at.slot->closed_ms != 0 ? at : closed;
    }
    return closed;
}

/* Takes the place from whoever has it, for the process that the launcher has started. Most often
 * that is the killed one, which has been counted; somebody may have started another by hand. */
static void evict(struct coordinator *coordinator, const struct sender *old, uint64_t now_ms)
{
    const struct message stop = {.kind = MESSAGE_STOP,
                                 .reason = STATUS_UNREACHABLE,
                                 .text = "another process has come for this rank"};
    coordinator_port_say(&coordinator->port, true,
                         "%s %u (host %s, pid %llu) loses its place to another process that has "
                         "come for it",
                         role_name(old->role), old->slot->number, old->slot->host,
                         (unsigned long long)old->slot->process_id);
    coordinator_port_send(&coordinator->port, old->slot->peer, &stop);
    free_place(coordinator, old, now_ms);
}

/* Whether the launcher has started it in the place of this one. It does that when the one before
 * has ended: so the job has lost that one, though nothing else has told of it yet. */
static bool is_replaced(const struct sender *old, const struct wire_member *joining)
{
    return old->slot != NULL && launch_number_follows(joining->launch, old->slot->launch) &&
           old->slot->state != SLOT_GONE;
}

static void explain_lost(const struct sender *lost, const char *how,
                         char ret_sentence[COORDINATOR_REASON_BYTES])
{
    if (lost->slot->state == SLOT_FREE) { // it was to come back
        snprintf(ret_sentence, COORDINATOR_REASON_BYTES, "%s %u was lost: %s",
                 role_name(lost->role), lost->slot->number, how);
        return;
    }
    snprintf(ret_sentence, COORDINATOR_REASON_BYTES, "%s %u (host %s, pid %llu) was lost: %s",
             role_name(lost->role), lost->slot->number, lost->slot->host,
             (unsigned long long)lost->slot->process_id, how);
}

/* Frees the place that a process asks for, if the connection of the one that has it is closed:
 * whoever is started again soon need not wait until that counts as lost. One that the launcher has
 * started need not wait for that either. */
static void make_room(struct coordinator *coordinator, const struct wire_member *member,
                      uint64_t now_ms)
{
    char sentence[COORDINATOR_REASON_BYTES];
    const struct membership *membership = &coordinator->membership;
    struct sender old = member->has_rank ? membership_called(membership, member->role, member->rank)
                                         : find_closed(membership, member->role);
    if (old.slot != NULL && launch_number_follows(old.slot->launch, member->launch)) {
        return; // it was started before the one that has the place, and ended before that one began
    }
    if (member->has_rank && old.slot != NULL && old.slot->is_awaited &&
        old.slot->state != SLOT_FREE) {
        evict(coordinator, &old, now_ms);
        return;
    }
    bool is_later = is_replaced(&old, member);
    if (is_later || (old.slot != NULL && old.slot->closed_ms != 0)) {
        explain_lost(
            &old, is_later ? "another one was started in its place" : "its connection was closed",
            sentence);
        (void)handshake_vacate(coordinator, &old, sentence, now_ms);
    }
}

/* Whether it and the others could connect to each other where they have to. Refuses it if not. A
 * job that has begun does not give up members for one that cannot connect to them. */
static bool may_connect(const struct coordinator *coordinator, uint64_t peer,
                        const struct wire_member *member)
{
    char why[COORDINATOR_REASON_BYTES];
    const struct membership *membership = &coordinator->membership;
    const struct sender hidden = topology_hidden(coordinator->job, membership, member);
    if (topology_hides(coordinator->job, membership, member)) {
        topology_explain_hidden(member->loopback, why, sizeof(why));
    } else if (coordinator->generation != NULL && hidden.slot != NULL) {
        topology_explain_unreached(&hidden, why, sizeof(why));
    } else {
        return true;
    }
    refuse(&coordinator->port, peer, member, STATUS_UNREACHABLE, why);
    return false;
}

/* Before the job begins, those go to whom one that has joined cannot connect: whoever comes in
 * their place may listen elsewhere. */
static void drop_hidden(struct coordinator *coordinator, const struct wire_member *joined,
                        uint64_t now_ms)
{
    char why[COORDINATOR_REASON_BYTES];
    struct membership *membership = &coordinator->membership;
    struct sender hidden = topology_hidden(coordinator->job, membership, joined);
    for (; hidden.slot != NULL; hidden = topology_hidden(coordinator->job, membership, joined)) {
        topology_explain_hidden(hidden.slot->loopback, why, sizeof(why));
        coordinator_port_refuse(&coordinator->port, hidden.slot->peer, hidden.slot->host,
                                hidden.slot->process_id, STATUS_UNREACHABLE, why);
        free_place(coordinator, &hidden, now_ms);
    }
}

/* Whether the job has ended that a member was told to join: it hears how. */
static bool tell_verdict(struct coordinator *coordinator, uint64_t peer,
                         const struct wire_member *member, uint64_t now_ms)
{
    struct membership *membership = &coordinator->membership;
    const struct sender called = membership_called(membership, member->role, member->rank);
    if (coordinator->state < COORDINATOR_CLOSING || !coordinator->calls_back || !member->has_rank ||
        called.slot == NULL || called.slot->state != SLOT_FREE) {
        return false;
    }
    coordinator_send_verdict(coordinator, peer);
    (void)membership_note_gone(membership, &called, coordinator->job->servers, now_ms);
    return true;
}

/* Of a job that has begun: it goes on without the one in whose place the launcher has started this
 * one, which is a newcomer. */
static void lose_replaced(struct coordinator *coordinator, const struct wire_member *joining,
                          uint64_t now_ms)
{
    char sentence[COORDINATOR_REASON_BYTES];
    bool has_begun = coordinator->state != COORDINATOR_GATHERING || coordinator->generation != NULL;
    bool may_lose = joining->role == ROLE_WORKER && has_begun && !coordinator->is_returned &&
                    coordinator->state < COORDINATOR_CLOSING;
    struct sender old = membership_member(&coordinator->membership, ROLE_WORKER, 0);
    while (may_lose && old.slot != NULL && !is_replaced(&old, joining)) {
        old = membership_member(&coordinator->membership, ROLE_WORKER, old.index + 1);
    }
    if (may_lose && old.slot != NULL) {
        explain_lost(&old, "another one was started in its place", sentence);
        generation_lose_killed(coordinator, sentence, &old, now_ms);
    }
}

/* What a process says of itself. Of several that were started below one program of the launcher,
 * which knows of one, the first is that one, and the others are as if nobody had started them. */
static struct wire_member describe_joining(const struct coordinator *coordinator, uint64_t peer,
                                           const struct wire_member *told)
{
    struct wire_member member = *told;
    member.launch = newcomers_share_start(&coordinator->newcomers, told)
                        ? 0
                        : membership_launch(&coordinator->membership, told);
    if (member.launch != told->launch &&
        !newcomers_have(&coordinator->newcomers, peer)) { // which was said then
        coordinator_port_say(&coordinator->port, true,
                             "process %llu on host %s was started below a program of the launcher "
                             "that has a %s already: it counts as one that was started by hand",
                             (unsigned long long)told->process_id, told->host,
                             role_name(told->role));
    }
    return member;
}

static void join(struct coordinator *coordinator, uint64_t peer, const struct message *message,
                 uint64_t now_ms)
{
    const struct coordinator_port *port = &coordinator->port;
    const struct wire_member *member = message->member;
    struct sender known;
    if (strcmp(message->text, RINGSIDE_VERSION) != 0) {
        refuse_version(port, peer, message);
        return;
    }
    if (tell_verdict(coordinator, peer, member, now_ms)) {
        return;
    }
    lose_replaced(coordinator, member, now_ms);
    if (is_newcomer(coordinator, peer, member)) {
        const char *why = newcomers_take(coordinator, peer, message, now_ms);
        bool is_complete =
            coordinator->state >= COORDINATOR_CLOSING && coordinator->verdict == STATUS_OK;
        if (why != NULL && is_complete && job_may_commit(coordinator->job)) {
            // It was started again in vain.
            coordinator_port_tell_refused(port, peer, STATUS_END_OF_DATA, why);
        } else if (why != NULL) {
            // One that was lost, and is started again before that is known, may come back later.
            refuse(port, peer, member, STATUS_UNREACHABLE, why);
        }
        return;
    }
    if (!may_connect(coordinator, peer, member)) {
        return;
    }
    make_room(coordinator, member, now_ms);
    uint32_t index;
    struct membership_refusal refusal;
    if (membership_join(&coordinator->membership, member, peer, now_ms, &index, &refusal) !=
        STATUS_OK) {
        coordinator_port_say(port, true, "refused a member: %s", refusal.reason);
        coordinator_port_tell_refused(port, peer, STATUS_INVALID, refusal.told);
        return;
    }
    known = membership_member(&coordinator->membership, member->role, index);
    if (message->step > coordinator->made_before) {
        coordinator->made_before = message->step;
    }
    coordinator_port_say(port, false, "%s %u joined: host=%s pid=%llu", role_name(member->role),
                         known.slot->number, member->host, (unsigned long long)member->process_id);
    welcome(coordinator, peer, member->role, index);
    if (coordinator->generation == NULL) {
        drop_hidden(coordinator, member, now_ms);
    }
}

void handshake_join(struct coordinator *coordinator, uint64_t peer, const struct message *message,
                    uint64_t now_ms)
{
    struct sender known;
    if (membership_find(&coordinator->membership, peer, &known)) {
        return; // asked twice
    }
    const struct wire_member member = describe_joining(coordinator, peer, message->member);
    struct message told = *message;
    told.member = &member;
    join(coordinator, peer, &told, now_ms);
}
