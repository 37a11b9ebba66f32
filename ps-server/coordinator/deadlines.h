/* Decides when the coordinator stops waiting for a member. Pure: time is an argument.
 *
 * Silence is not death. When a process dies, the kernel closes its connection. A silent process on
 * this host that exists and is not stopped is short of processor time; it is given as long as a
 * stalled one (--stall-fail). Where nothing but the silence is known, --lost-after is multiplied by
 * the number of members per core of the member's host, if it has more members than cores. Time
 * during which the coordinator itself was away counts against no member.
 *
 * A job that does not go on, though nobody is silent, is held up by a worker that computes for too
 * long, or by two members that do not reach each other. Members say in their heartbeats whom they
 * wait for, and blame.h follows that. Of two that do not reach each other one has to go: the
 * worker if the other is a server, or else the one with the higher number.
 *
 * A data connection between two live members is not made again, since what was on its way is lost.
 * The job begins a new generation with the same members, and does not wait for --stall-fail. */
#ifndef PS_SERVER_COORDINATOR_DEADLINES_H
#define PS_SERVER_COORDINATOR_DEADLINES_H

#include "ps-server/coordinator/coordinator.h"

#include <stdbool.h>
#include <stddef.h>

/* Notes that the peer's connection was closed. What a member sent before may still arrive. */
void deadlines_note_closed(struct coordinator *coordinator, uint64_t peer, uint64_t now_ms);

/* Excuses members for the time that the coordinator was away. It has received all waiting messages
 * since. */
void deadlines_excuse(struct coordinator *coordinator, uint64_t away_ms, uint64_t now_ms);

/* Whether a member whose connection was closed has outlasted an absence of the coordinator, and
 * makes another connection. */
bool deadlines_may_reconnect(const struct coordinator *coordinator, const struct slot *slot);

/* Returns how long members wait for a silent coordinator, in milliseconds: twice the longest time
 * that it gives any of them when nothing but silence is known. */
uint64_t deadlines_patience_ms(const struct coordinator *coordinator);

/* Whether nothing is heard of any member on another host, of which there are several: then it is
 * the coordinator that is cut off, and those who outlast it come back. It judges nobody meanwhile,
 * as long as they wait (--outlast). */
bool deadlines_hears_nobody(const struct coordinator *coordinator, uint64_t now_ms);

/* Whether nothing was heard of any member for the time after which one would be lost, though there
 * are several, and some are seen to run on this host: then it is this process that hears nothing.
 */
bool deadlines_is_deaf(const struct coordinator *coordinator, uint64_t now_ms);

/* Returns STATUS_OK, or why the job cannot go on, with a sentence: members did not come in time,
 * one was lost (and is marked as gone now), or one stands still. ret_culprit is that one, and stays
 * as it is if there is no such member. */
enum status deadlines_check(struct coordinator *coordinator, uint64_t now_ms,
                            struct sender *ret_culprit, char *ret_reason, size_t reason_size);

/* Returns STATUS_OK, or why one more member is lost, as deadlines_check does: of those that are
 * lost together, each call finds one. */
enum status deadlines_find_lost(struct coordinator *coordinator, uint64_t now_ms,
                                struct sender *ret_culprit, char *ret_reason, size_t reason_size);

/* stalls.c: returns whether a warning is due, with its sentence: the job waits for a member, or
 * nothing was heard from one. The next such warning is due --stall-warn later. */
bool stalls_should_warn(struct coordinator *coordinator, uint64_t now_ms, char *ret_sentence,
                        size_t sentence_size);

/* Seconds from one moment to another; 0 if that was before. */
static inline double deadlines_seconds(uint64_t from_ms, uint64_t to_ms)
{
    return to_ms > from_ms ? (double)(to_ms - from_ms) / 1000 : 0;
}

/* stalls.c: the same for a worker, or a pair of members, that has held the others up for so many
 * seconds. */
enum status stalls_check(const struct membership *membership, double stall_fail, uint64_t now_ms,
                         struct sender *ret_culprit, char *ret_reason, size_t reason_size);

/* Two live members whose connection was closed. */
struct broken {
    struct sender culprit; // the one that has to go, if one has to
    uint64_t since_ms;
    char reason[COORDINATOR_REASON_BYTES];
};

/* The same for two live members whose connection was closed, as one of them says. STATUS_AGAIN: all
 * connect anew in a new generation, and nobody is lost. STATUS_UNREACHABLE: the job may not go on.
 * STATUS_TIMED_OUT: it has made no step since members last connected, or has begun at the same step
 * several times, so the culprit has to go. Otherwise STATUS_OK. */
enum status stalls_check_connections(const struct coordinator *coordinator, uint64_t now_ms,
                                     struct broken *ret_broken);

/* Whether members connect anew after a connection was closed: if the job has made a step since they
 * last did, and has not begun at the same step again and again. */
bool stalls_may_renew(const struct coordinator *coordinator);

/* Programs of one's own can wait for each other for ever: one has left, or is in a collective, and
 * another needs its next gradient; or one is in a collective that another has left without. Returns
 * whether it is so, with a sentence and the worker that the others miss. */
bool stalls_find_deadlock(const struct coordinator *coordinator, struct sender *ret_culprit,
                          char *ret_reason, size_t reason_size);

#endif
