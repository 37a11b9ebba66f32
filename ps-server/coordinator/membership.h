/* Keeps the books on a job's members. Pure.
 *
 * Workers and servers have slots of their own, 0 .. count-1. A slot is given only once. The number
 * of a slot is its index, for servers counted from the process that is the first one
 * (job_first_server), unless the job has lost workers: see generation.h. */
#ifndef PS_SERVER_COORDINATOR_MEMBERSHIP_H
#define PS_SERVER_COORDINATOR_MEMBERSHIP_H

#include "common/base/status.h"
#include "common/channel/presence.h"
#include "common/channel/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMBERSHIP_HOST_BYTES     64
#define MEMBERSHIP_PLACE_BYTES    800
#define MEMBERSHIP_LOOPBACK_BYTES 64
#define MEMBERSHIP_DIGEST_BYTES   65
#define MEMBERSHIP_ERROR_BYTES    512

/* Why a peer may not join. */
struct membership_refusal {
    char reason[MEMBERSHIP_ERROR_BYTES]; // for our own log
    const char *told;                    // for the peer: reveals nothing about the job; static
};

enum slot_state {
    SLOT_FREE,
    SLOT_JOINED,    // welcomed; preparing
    SLOT_READY,     // can be reached; waits for the others, or connects to them
    SLOT_TRIED,     // has found out how it can exchange with others
    SLOT_CONNECTED, // takes part in training
    SLOT_DONE,      // has done all steps
    SLOT_GONE,      // left or lost
};

#define MEMBERSHIP_GIVEN_MAX 512 // workers; of more, what members have sent to each is not kept

struct slot {
    enum slot_state state;
    uint32_t number; // by which the member asks for the slot, and by which messages call it
    uint64_t peer;   // of its control connection; of a FREE slot: in the generation before
    uint64_t host_id, process_id;
    uint32_t launch; // which of a launcher's starts its process is; 0: not known. Of a FREE slot:
                     // of the process that had it in the generation before
    char host[MEMBERSHIP_HOST_BYTES];
    char place[MEMBERSHIP_PLACE_BYTES];       // of its data socket
    char loopback[MEMBERSHIP_LOOPBACK_BYTES]; // where that is, if others reach it on its host alone
    char device[32];
    char digest[MEMBERSHIP_DIGEST_BYTES];   // of its parameters: first, then last
    unsigned char gpu[WIRE_NCCL_GPU_BYTES]; // of a worker, where NCCL is used
    uint32_t nccl_version;                  // likewise
    struct sighting sighting;               // of its process
    uint32_t cores;                         // of its host, for it; 0: not known
    bool asks_choices;                      // and has no answer yet: see choices.h
    bool is_asked_back;                     // and has not answered yet: see returning.h
    uint64_t alone_step;                    // of one that is back: at its coordinator's last sign
    uint64_t choices_digest;                // of how its device computes; 0: it has no choice
    uint64_t heard_ms;                      // last sign of life
    uint64_t closed_ms;                     // when its connection was closed; 0: it is not
    uint64_t step, step_since_ms;           // where it is, and since when
    uint64_t first_step;                    // where it was when its generation began to train
    bool was_lost;                          // of a FREE slot: who had it, and that was counted
    bool is_over;                           // it has answered STOP, or its process has ended
    bool is_awaited; // the launcher starts a process for it: one that has it and is not READY
                     // may be the lost one, whose JOIN was on its way
    bool is_new;     // it came while others trained, and has not been READY: they can do without
    bool is_asking;  // of a FREE slot: it comes by the connection by which it has asked for a place
    bool has_answered; // of a server: what it has kept, see in_place.h

    // Of a worker of a program that commits (--on-loss commit).
    bool has_commit;    // it has what another generation can go on from
    bool is_committing; // it has come to a commit, and not all have

    // The member that it waits for, as its last heartbeat says.
    bool is_waiting;
    struct wire_wait wait; // its `given` is `given`
    uint64_t *given;       // to each worker, or each shard; owned; NULL where workers are too many

    // The member to which its data connection was closed, as a heartbeat has said.
    bool has_broken;
    enum member_role broken_role;
    uint32_t broken_index;
    uint64_t broken_ms; // when that was, by this process's clock
};

struct membership {
    struct slot *workers, *servers; // owned
    uint32_t worker_count, server_count;
    uint64_t arrived_ms; // when a member last came closer to training, or was asked to
};

/* The member behind a connection. */
struct sender {
    struct slot *slot; // borrowed
    enum member_role role;
    uint32_t index;
};

enum status membership_init(struct membership *membership, uint32_t worker_count,
                            uint32_t server_count);
void membership_finish(struct membership *membership);

/* Gives the member the slot that it asks for, or the lowest free one. Its launch is the one that
 * counts (membership_launch). Returns STATUS_INVALID with a refusal if there is none. */
enum status membership_join(struct membership *membership, const struct wire_member *member,
                            uint64_t peer, uint64_t now_ms, uint32_t *ret_index,
                            struct membership_refusal *ret_refusal);

/* "worker" or "server". */
const char *role_name(enum member_role role);

/* Finds the member behind a connection. Returns false if it is not a member's. */
bool membership_find(const struct membership *membership, uint64_t peer, struct sender *ret_sender);

/* The connection of a member was closed, or of a newcomer that has not yet come to its slot: others
 * come by a new connection. */
void membership_note_closed(struct membership *membership, uint64_t peer, uint64_t now_ms);

/* The slot with this index among all: those of workers come first, then those of servers. */
struct slot *membership_slot(const struct membership *membership, uint32_t index);

/* The member in the slot with this index; its slot is NULL if there is none. */
struct sender membership_member(const struct membership *membership, enum member_role role,
                                uint32_t index);

/* The member that is called by this number; its slot is NULL if there is none. */
struct sender membership_called(const struct membership *membership, enum member_role role,
                                uint32_t number);

/* Whether it is the process that says this of itself which was seen. */
bool membership_is_of(const struct sighting *sighting, const struct wire_member *member);

/* Which of a launcher's starts a process counts as that says this of itself. 0: of none, as if
 * nobody had started it, also if another one is there by the same start. Both were started below
 * one program, and the launcher knows of the first. */
uint32_t membership_launch(const struct membership *membership, const struct wire_member *member);

/* The first slot of the process that is this start of the launcher; NULL if there is none. */
struct sender membership_started(const struct membership *membership, enum member_role role,
                                 uint32_t launch, uint32_t server_stride);

/* The next slot of the same process, which is that of a server's next thread; its slot is NULL if
 * there is none, as for a worker. */
struct sender membership_next_of(const struct membership *membership, const struct sender *member,
                                 uint32_t server_stride);

/* The one place where a slot's state changes, but for slot_release. */
void slot_enter(struct membership *membership, struct slot *slot, enum slot_state state,
                uint64_t now_ms);

/* Marks a member that has ended as gone: nothing more is expected from it. A server process with
 * several slots has every server_stride-th of them. Returns how many workers are lost by that: one
 * that is new has taken no part, and does not count. */
uint32_t membership_note_gone(struct membership *membership, const struct sender *member,
                              uint32_t server_stride, uint64_t now_ms);

/* Notes that the process of a member has ended once the verdict was known: nothing more is expected
 * from it. */
void membership_note_ended(struct membership *membership, const struct sender *member,
                           uint32_t server_stride);

/* The member that comes by another connection: of this number, and the same process. Its slot is
 * NULL if there is none. */
struct sender membership_same(const struct membership *membership,
                              const struct wire_member *member);

/* Frees the slot: nothing is known any more of the member that had it. */
void slot_release(struct slot *slot);

/* Frees the slots of a lost member's process, for another one: see membership_note_gone. */
void membership_vacate(struct membership *membership, const struct sender *member,
                       uint32_t server_stride, uint64_t now_ms);

uint32_t membership_count(const struct slot *slots, uint32_t count, enum slot_state state);

/* Returns the members per core on this member's host, at least 1. `missing` members that have not
 * joined are assumed to be on that host. */
double membership_crowding(const struct membership *membership, const struct slot *slot,
                           uint32_t missing);

/* The same for the most crowded host; 1 if nobody has joined. */
double membership_crowding_max(const struct membership *membership);

/* Whether the member may still answer STOP. */
bool slot_may_answer(const struct slot *slot);

/* Whether any member has not joined, and its process has not ended as far as that is known. */
bool membership_lacks(const struct membership *membership);

/* Whether all members are in this state; for SLOT_DONE, whether all workers are. */
bool membership_everybody_is(const struct membership *membership, enum slot_state state);

/* Notes a sign of life at `step`. */
void slot_hear(struct slot *slot, uint64_t step, uint64_t now_ms);

/* Notes which member this one waits for, as its heartbeat says; NULL: for none. Or to which its
 * connection was closed, beside what it waits for. One that does not exist counts as none. */
void slot_note_wait(const struct membership *membership, struct slot *slot,
                    const struct wire_wait *wait, uint64_t now_ms);

/* "0, 2 and 5": the numbers of the slots in a state. */
void membership_list(const struct slot *slots, uint32_t count, enum slot_state state,
                     char *ret_text, size_t text_size);

#endif
