/* Workers that ask to join a job that is under way: one that was lost and has been started again,
 * or one more. Pure.
 *
 * A newcomer is told to come again (REFUSE with the reason AGAIN, and the number to ask for), and
 * does so several times a second. As soon as there is a fresh copy of what the job has (see
 * checkpointing.h), the next generation begins, with a place for each newcomer that still asks.
 *
 * Where the program of a job commits what it goes on from (--on-loss commit), a newcomer gets its
 * place when all workers have come to a commit: nothing that they have made is lost then. All wait
 * there for the sum that follows it, so none can have gone on.
 *
 * A job with `--fault after=step:S,join` lets them wait for its joins: one for each, in the order
 * in which they came, once there is a copy of that many steps. */
#ifndef PS_SERVER_COORDINATOR_NEWCOMERS_H
#define PS_SERVER_COORDINATOR_NEWCOMERS_H

#include "common/channel/presence.h"
#include "common/channel/wire.h"

#include <stdbool.h>
#include <stdint.h>

#define NEWCOMERS_MAX 64

struct coordinator;
struct sender;

struct newcomer {
    uint64_t peer;
    uint32_t number; // by which the job will know it
    uint64_t heard_ms;
    uint32_t launch; // see membership.h
    struct sighting sighting;
};

/* Zeroed is empty. */
struct newcomers {
    struct newcomer list[NEWCOMERS_MAX];
    uint32_t count;
    char why[320]; // what the last one was told of who cannot connect to whom
};

/* JOIN of a worker while the job is under way. Returns NULL, or a sentence that says why there is
 * no place for it; borrowed until the next call. */
const char *newcomers_take(struct coordinator *coordinator, uint64_t peer,
                           const struct message *join, uint64_t now_ms);

/* Whether the peer is one of them. */
bool newcomers_have(const struct newcomers *newcomers, uint64_t peer);

/* Whether a newcomer that a launcher has started has the number. */
bool newcomers_have_number(const struct newcomers *newcomers, uint32_t number);

/* Whether one of them is the process of this start of a launcher; never for 0. */
bool newcomers_have_launch(const struct newcomers *newcomers, uint32_t launch);

/* Gives another number to a newcomer that has this one, as a member with the number is back. The
 * newcomer is told so when it asks again. */
void newcomers_leave_number(struct coordinator *coordinator, uint32_t number);

/* Whether another process has asked with the number of the same start of a launcher. */
bool newcomers_share_start(const struct newcomers *newcomers, const struct wire_member *member);

/* Forgets those that have stopped asking. */
void newcomers_tidy(struct newcomers *newcomers, uint64_t now_ms);

/* The connection of a peer was closed: if it is one of them, it is gone, or asks by another one. */
void newcomers_note_closed(struct coordinator *coordinator, uint64_t peer);

/* A process that a launcher has started has ended: if it is one of them, it is gone. */
void newcomers_note_ended(struct newcomers *newcomers, uint32_t launch);

/* How many newcomers may have a place now. They are the first of the list. */
uint32_t newcomers_due(const struct coordinator *coordinator);

/* The step after which the next newcomer may have a place; 0: nobody waits for one. */
uint64_t newcomers_awaited_step(const struct coordinator *coordinator);

/* COMMIT: a worker's program can go on from what it has. */
void newcomers_take_commit(struct coordinator *coordinator, const struct sender *from,
                           const struct message *commit, uint64_t now_ms);

/* Training begins: by now rank 0 has given to all what it has committed. */
void newcomers_share_commit(struct coordinator *coordinator);

/* The job has ended: tells those that still ask that they have come too late. */
void newcomers_dismiss(struct coordinator *coordinator);

/* There is a fresh copy: begins the next generation if somebody waits for it. */
void newcomers_admit(struct coordinator *coordinator, uint64_t now_ms);

#endif
