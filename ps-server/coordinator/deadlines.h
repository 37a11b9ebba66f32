/* The coordinator's deadlines: when it stops waiting for a member. Pure: time is an argument.
 *
 * Silence is not death. If a process dies, the kernel closes its connection. A silent process of
 * this host that exists and is not stopped is short of processor time: it is given as long as one
 * that stands still (--stall-fail). Where silence is all that is known, --lost-after is multiplied
 * by the members per core of the member's host, if there are more members than cores. Time in
 * which the coordinator itself was away counts against nobody. */
#ifndef PS_SERVER_COORDINATOR_DEADLINES_H
#define PS_SERVER_COORDINATOR_DEADLINES_H

#include "ps-server/coordinator/coordinator.h"

#include <stdbool.h>
#include <stddef.h>

/* The peer's connection was closed. What it sent before may still come. */
void deadlines_note_closed(struct coordinator *coordinator, uint64_t peer, uint64_t now_ms);

/* The coordinator was away for away_ms, and has since received all waiting messages. */
void deadlines_excuse(struct coordinator *coordinator, uint64_t away_ms, uint64_t now_ms);

/* How long members wait for a silent coordinator, in milliseconds: twice the longest time that it
 * gives any of them where silence is all that is known. */
uint64_t deadlines_patience_ms(const struct coordinator *coordinator);

/* STATUS_OK, or why the job cannot go on, with a sentence: not everybody came in time, somebody was
 * lost (then marked as gone), somebody stands still. */
enum status deadlines_check(struct coordinator *coordinator, uint64_t now_ms, char *ret_reason,
                            size_t reason_size);

/* Whether it is time to say who waits for whom; then it is noted that it was said. */
bool deadlines_should_warn(struct coordinator *coordinator, uint64_t now_ms, char *ret_sentence,
                           size_t sentence_size);

#endif
