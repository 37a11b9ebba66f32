/* Changes the coordinator's state, and does what entering each state means. */
#ifndef PS_SERVER_COORDINATOR_COORDINATOR_STATES_H
#define PS_SERVER_COORDINATOR_COORDINATOR_STATES_H

#include "ps-server/coordinator/coordinator.h"

#include <stdbool.h>
#include <stdint.h>

/* The one place where the state changes. Sends TRY or START, GO, or STOP where the state begins
 * with it. */
void coordinator_enter(struct coordinator *coordinator, enum coordinator_state state,
                       uint64_t now_ms);

/* Whether it waits for members that have outlasted another coordinator, or this one. */
bool coordinator_takes_back(const struct coordinator *coordinator);

/* Sets the verdict and enters CLOSING, or RENEWING if that is AGAIN, unless the job is closing
 * already. `culprit` is the member that the reason is about; NULL: none. */
void coordinator_close(struct coordinator *coordinator, enum status verdict, const char *reason,
                       const struct sender *culprit, uint64_t now_ms);

/* The same for a job that cannot go on. */
__attribute__((format(printf, 5, 6))) void
coordinator_fail(struct coordinator *coordinator, enum status verdict, const struct sender *culprit,
                 uint64_t now_ms, const char *format, ...);

/* Sends STOP with the verdict to one peer. */
void coordinator_send_verdict(const struct coordinator *coordinator, uint64_t peer);

/* Notes the new connection of a member whose last one had broken (BACK). False: it is none, or was
 * lost. */
bool coordinator_find_again(struct coordinator *coordinator, uint64_t peer,
                            const struct message *back, uint64_t now_ms);

/* Tells a member the verdict that asks for it (BACK), since its connection had broken before it
 * could hear that. */
void coordinator_tell_verdict(struct coordinator *coordinator, uint64_t peer,
                              const struct message *back, uint64_t now_ms);

/* Whether all members have answered STOP, or have had their time for that. Says for whom it waits
 * longer than for the others. */
bool coordinator_is_closed(struct coordinator *coordinator, uint64_t now_ms);

/* Whether members that were told to join are not here yet. */
bool coordinator_awaits_called(const struct coordinator *coordinator);

/* Ends RENEWING: tells all members to join the next generation, which is about to begin. */
void coordinator_call_back(struct coordinator *coordinator, uint64_t now_ms);

/* The next generation could not begin. Members that were told to join it are told why when they
 * do; if none was told, all are. */
void coordinator_fail_to_renew(struct coordinator *coordinator, enum status verdict,
                               const char *reason, uint64_t now_ms);

/* Ends the job as completed once all workers have done their steps and nothing is awaited: their
 * parameters must be equal. */
void coordinator_conclude(struct coordinator *coordinator, uint64_t now_ms);

#endif
