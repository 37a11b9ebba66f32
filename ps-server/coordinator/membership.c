/* Gives slots to members, finds and counts them. */
#include "ps-server/coordinator/membership.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room in each slot for what it has sent to so many others. */
static bool make_given(struct slot *slots, uint32_t count, uint32_t others)
{
    bool has_room = true;
    for (uint32_t i = 0; i < count && has_room; i++) {
        slots[i].given = calloc(others, sizeof(uint64_t));
        has_room = slots[i].given != NULL;
    }
    return has_room;
}

enum status membership_init(struct membership *membership, uint32_t worker_count,
                            uint32_t server_count)
{
    *membership = (struct membership){.worker_count = worker_count, .server_count = server_count};
    membership->workers = calloc(worker_count, sizeof(struct slot));
    membership->servers = calloc((size_t)server_count + 1, sizeof(struct slot));
    if (membership->workers == NULL || membership->servers == NULL) {
        membership_finish(membership);
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < worker_count; i++) {
        membership->workers[i].number = i;
    }
    for (uint32_t i = 0; i < server_count; i++) {
        membership->servers[i].number = i;
    }
    uint32_t larger = worker_count > server_count ? worker_count : server_count;
    bool has_room = worker_count > MEMBERSHIP_GIVEN_MAX ||
                    (make_given(membership->workers, worker_count, larger) &&
                     make_given(membership->servers, server_count, larger));
    if (!has_room) {
        membership_finish(membership);
        return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static void free_slots(struct slot *slots, uint32_t count)
{
    for (uint32_t i = 0; slots != NULL && i < count; i++) {
        free(slots[i].given);
    }
    free(slots);
}

void membership_finish(struct membership *membership)
{
    free_slots(membership->workers, membership->worker_count);
    free_slots(membership->servers, membership->server_count);
    *membership = (struct membership){0};
}

const char *role_name(enum member_role role)
{
    return role == ROLE_WORKER ? "worker" : "server";
}

void slot_enter(struct membership *membership, struct slot *slot, enum slot_state state,
                uint64_t now_ms)
{
    slot->state = state;
    switch (state) {
    case SLOT_JOINED:
    case SLOT_READY:
    case SLOT_TRIED:
    case SLOT_CONNECTED:
        membership->arrived_ms = now_ms;
        break;
    case SLOT_FREE:
    case SLOT_DONE:
    case SLOT_GONE:
        break;
    }
}

/* Returns the index of the slot with the number, or `count`. */
static uint32_t find_number(const struct slot *slots, uint32_t count, uint32_t number)
{
    uint32_t index = 0;
    while (index < count && slots[index].number != number) {
        index++;
    }
    return index;
}

/* Returns the index that the member gets, or `count` with a reason. */
static uint32_t pick_slot(const struct slot *slots, uint32_t count,
                          const struct wire_member *member, struct membership_refusal *ret_refusal)
{
    char *reason = ret_refusal->reason;
    if (!member->has_rank) {
        for (uint32_t i = 0; i < count; i++) {
            if (slots[i].state == SLOT_FREE) {
                return i;
            }
        }
        snprintf(reason, MEMBERSHIP_ERROR_BYTES, "the job already has its %u %ss", count,
                 role_name(member->role));
        ret_refusal->told = "all ranks are taken; see the coordinator's log";
        return count;
    }
    uint32_t index = find_number(slots, count, member->rank);
    if (index == count) {
        ret_refusal->told = "there is no such rank; see the coordinator's log for those that exist";
        snprintf(reason, MEMBERSHIP_ERROR_BYTES,
                 "%s %u asked to join, but this job has %u: %u to %u%s", role_name(member->role),
                 member->rank, count, count > 0 ? slots[0].number : 0,
                 count > 0 ? slots[count - 1].number : 0,
                 member->role == ROLE_WORKER ? "; start ps with more --workers, or more --processes"
                                             : "");
        return count;
    }
    const struct slot *slot = &slots[index];
    if (slot->state != SLOT_FREE) {
        ret_refusal->told =
            "its rank is taken; see the coordinator's log for the member that has it";
        snprintf(reason, MEMBERSHIP_ERROR_BYTES, "%s %u is taken by process %llu on host %s",
                 role_name(member->role), member->rank, (unsigned long long)slot->process_id,
                 slot->host);
        return count;
    }
    return index;
}

enum status membership_join(struct membership *membership, const struct wire_member *member,
                            uint64_t peer, uint64_t now_ms, uint32_t *ret_index,
                            struct membership_refusal *ret_refusal)
{
    bool is_worker = member->role == ROLE_WORKER;
    struct slot *slots = is_worker ? membership->workers : membership->servers;
    uint32_t count = is_worker ? membership->worker_count : membership->server_count;
    uint32_t index = pick_slot(slots, count, member, ret_refusal);
    if (index == count) {
        return STATUS_INVALID;
    }
    struct slot *slot = &slots[index];
    slot_enter(membership, slot, SLOT_JOINED, now_ms);
    slot->peer = peer;
    slot->closed_ms = 0; // of a newcomer, which has come by another connection
    slot->host_id = member->host_id;
    slot->process_id = member->process_id;
    slot->launch = member->launch;
    snprintf(slot->loopback, sizeof(slot->loopback), "%s",
             member->loopback != NULL ? member->loopback : "");
    slot->cores = member->cores;
    slot->sighting =
        (struct sighting){.host_id = member->host_id, .process_id = member->process_id};
    snprintf(slot->host, sizeof(slot->host), "%s", member->host);
    slot->is_waiting = slot->is_asked_back = slot->was_lost = slot->is_asking = false;
    slot_hear(slot, 0, now_ms);
    *ret_index = index;
    return STATUS_OK;
}

static struct slot *find_in(struct slot *slots, uint32_t count, uint64_t peer, uint32_t *ret_index)
{
    for (uint32_t i = 0; i < count; i++) {
        if (slots[i].state != SLOT_FREE && slots[i].peer == peer) {
            *ret_index = i;
            return &slots[i];
        }
    }
    return NULL;
}

bool membership_find(const struct membership *membership, uint64_t peer, struct sender *ret_sender)
{
    uint32_t index;
    struct slot *slot = find_in(membership->workers, membership->worker_count, peer, &index);
    if (slot != NULL) {
        *ret_sender = (struct sender){slot, ROLE_WORKER, index};
        return true;
    }
    slot = find_in(membership->servers, membership->server_count, peer, &index);
    if (slot != NULL) {
        *ret_sender = (struct sender){slot, ROLE_SERVER, index};
        return true;
    }
    return false;
}

void membership_note_closed(struct membership *membership, uint64_t peer, uint64_t now_ms)
{
    struct sender from = {.role = ROLE_WORKER};
    bool is_known = membership_find(membership, peer, &from);
    for (uint32_t i = 0; i < membership->worker_count && !is_known; i++) {
        from.slot = &membership->workers[i];
        is_known = from.slot->state == SLOT_FREE && from.slot->is_asking && from.slot->peer == peer;
    }
    if (is_known && from.slot->closed_ms == 0) {
        from.slot->closed_ms = now_ms;
    }
}

/* Those of a role. */
struct slots {
    struct slot *list; // (count)
    uint32_t count;
};

static struct slots slots_of(const struct membership *membership, enum member_role role)
{
    return role == ROLE_WORKER ? (struct slots){membership->workers, membership->worker_count}
                               : (struct slots){membership->servers, membership->server_count};
}

/* How far the slots of one process are apart. */
static uint32_t stride_of(struct slots slots, enum member_role role, uint32_t server_stride)
{
    return role == ROLE_WORKER ? slots.count : server_stride;
}

struct slot *membership_slot(const struct membership *membership, uint32_t index)
{
    return index < membership->worker_count
               ? &membership->workers[index]
               : &membership->servers[index - membership->worker_count];
}

struct sender membership_member(const struct membership *membership, enum member_role role,
                                uint32_t index)
{
    struct slots slots = slots_of(membership, role);
    return (struct sender){index < slots.count ? &slots.list[index] : NULL, role, index};
}

struct sender membership_called(const struct membership *membership, enum member_role role,
                                uint32_t number)
{
    struct slots slots = slots_of(membership, role);
    return membership_member(membership, role, find_number(slots.list, slots.count, number));
}

struct sender membership_started(const struct membership *membership, enum member_role role,
                                 uint32_t launch, uint32_t server_stride)
{
    struct slots slots = slots_of(membership, role);
    uint32_t index = 0;
    while (launch != 0 && index < slots.count && slots.list[index].launch != launch) {
        index++;
    }
    if (launch == 0 || index == slots.count) {
        return (struct sender){NULL, role, slots.count};
    }
    return membership_member(membership, role, index % stride_of(slots, role, server_stride));
}

/* Whether the slot is of a process that is there, or is to come back to it. */
static bool has_process(const struct slot *slot)
{
    return slot->state != SLOT_GONE && !slot->was_lost && slot->closed_ms == 0 &&
           slot->sighting.process_id != 0;
}

bool membership_is_of(const struct sighting *sighting, const struct wire_member *member)
{
    return sighting->host_id == member->host_id && sighting->process_id == member->process_id;
}

uint32_t membership_launch(const struct membership *membership, const struct wire_member *member)
{
    struct slots slots = slots_of(membership, member->role);
    for (uint32_t i = 0; member->launch != 0 && i < slots.count; i++) {
        const struct slot *slot = &slots.list[i];
        if (slot->launch == member->launch && has_process(slot) &&
            !membership_is_of(&slot->sighting, member)) {
            return 0;
        }
    }
    return member->launch;
}

struct sender membership_next_of(const struct membership *membership, const struct sender *member,
                                 uint32_t server_stride)
{
    uint32_t stride = stride_of(slots_of(membership, member->role), member->role, server_stride);
    return membership_member(membership, member->role, member->index + stride);
}

uint32_t membership_note_gone(struct membership *membership, const struct sender *member,
                              uint32_t server_stride, uint64_t now_ms)
{
    struct slots slots = slots_of(membership, member->role);
    uint32_t stride = stride_of(slots, member->role, server_stride), gone = 0;
    for (uint32_t i = member->index; i < slots.count; i += stride) {
        struct slot *slot = &slots.list[i];
        gone += member->role == ROLE_WORKER && slot->state != SLOT_GONE && !slot->was_lost &&
                !slot->is_new;
        slot_enter(membership, slot, SLOT_GONE, now_ms);
    }
    return gone;
}

void membership_note_ended(struct membership *membership, const struct sender *member,
                           uint32_t server_stride)
{
    struct slots slots = slots_of(membership, member->role);
    uint32_t stride = stride_of(slots, member->role, server_stride);
    for (uint32_t i = member->index; i < slots.count; i += stride) {
        slots.list[i].is_over = true;
    }
}

struct sender membership_same(const struct membership *membership, const struct wire_member *member)
{
    struct sender at = membership_called(membership, member->role, member->rank);
    if (at.slot != NULL &&
        (at.slot->process_id != member->process_id || strcmp(at.slot->host, member->host) != 0)) {
        at.slot = NULL;
    }
    return at;
}

void slot_release(struct slot *slot)
{
    *slot = (struct slot){.number = slot->number, .given = slot->given};
}

void membership_vacate(struct membership *membership, const struct sender *member,
                       uint32_t server_stride, uint64_t now_ms)
{
    struct slots slots = slots_of(membership, member->role);
    uint32_t stride = stride_of(slots, member->role, server_stride);
    for (uint32_t i = member->index % stride; i < slots.count; i += stride) {
        slot_release(&slots.list[i]);
        slots.list[i].was_lost = true;
    }
    membership->arrived_ms = now_ms; // whoever comes has as long as those that were there
}

uint32_t membership_count(const struct slot *slots, uint32_t count, enum slot_state state)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        found += slots[i].state == state;
    }
    return found;
}

static uint32_t count_on(const struct slot *slots, uint32_t count, uint64_t host_id)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        found += slots[i].state != SLOT_FREE && slots[i].host_id == host_id;
    }
    return found;
}

double membership_crowding(const struct membership *membership, const struct slot *slot,
                           uint32_t missing)
{
    uint64_t count = missing;
    count += count_on(membership->workers, membership->worker_count, slot->host_id);
    count += count_on(membership->servers, membership->server_count, slot->host_id);
    return slot->cores > 0 && count > slot->cores ? (double)count / slot->cores : 1;
}

double membership_crowding_max(const struct membership *membership)
{
    double most = 1;
    for (uint32_t i = 0; i < membership->worker_count + membership->server_count; i++) {
        const struct slot *slot = i < membership->worker_count
                                      ? &membership->workers[i]
                                      : &membership->servers[i - membership->worker_count];
        double crowding = slot->state != SLOT_FREE ? membership_crowding(membership, slot, 0) : 1;
        most = crowding > most ? crowding : most;
    }
    return most;
}

bool slot_may_answer(const struct slot *slot)
{
    return slot->state != SLOT_FREE && slot->state != SLOT_GONE && !slot->is_over;
}

bool membership_lacks(const struct membership *membership)
{
    for (uint32_t i = 0; i < membership->worker_count + membership->server_count; i++) {
        const struct slot *slot = membership_slot(membership, i);
        if (slot->state == SLOT_FREE && !slot->is_over) {
            return true;
        }
    }
    return false;
}

bool membership_everybody_is(const struct membership *membership, enum slot_state state)
{
    return membership_count(membership->workers, membership->worker_count, state) ==
               membership->worker_count &&
           (state == SLOT_DONE || membership_count(membership->servers, membership->server_count,
                                                   state) == membership->server_count);
}

void slot_hear(struct slot *slot, uint64_t step, uint64_t now_ms)
{
    slot->heard_ms = now_ms;
    if (step != slot->step || slot->step_since_ms == 0) {
        slot->step = step;
        slot->step_since_ms = now_ms;
    }
}

void slot_note_wait(const struct membership *membership, struct slot *slot,
                    const struct wire_wait *wait, uint64_t now_ms)
{
    bool is_known =
        wait != NULL && membership_member(membership, wait->role, wait->index).slot != NULL;
    if (is_known && wait->is_broken) {
        slot->has_broken = true;
        slot->broken_role = wait->role;
        slot->broken_index = wait->index;
        slot->broken_ms = now_ms > wait->waited_ms ? now_ms - wait->waited_ms : 0;
        return;
    }
    slot->is_waiting = is_known;
    if (!slot->is_waiting) {
        return;
    }
    slot->wait = *wait;
    slot->wait.given = slot->given;
    uint32_t others =
        wait->role == ROLE_SERVER ? membership->server_count : membership->worker_count;
    bool has_given = slot->given != NULL && wait->given_count == others;
    slot->wait.given_count = has_given ? wait->given_count : 0;
    if (has_given) {
        memcpy(slot->given, wait->given, wait->given_count * sizeof(*slot->given));
    }
}

void membership_list(const struct slot *slots, uint32_t count, enum slot_state state,
                     char *ret_text, size_t text_size)
{
    uint32_t total = membership_count(slots, count, state), listed = 0;
    size_t used = 0;
    ret_text[0] = '\0';
    for (uint32_t i = 0; i < count && used < text_size; i++) {
        if (slots[i].state != state) {
            continue;
        }
        const char *separator = listed == 0 ? "" : listed + 1 == total ? " and " : ", ";
        int wrote = snprintf(ret_text + used, text_size - used, "%s%u", separator, slots[i].number);
        used += wrote > 0 ? (size_t)wrote : 0;
        listed++;
    }
}
