/* What a coordinator must not wait for any longer. Pure: time is an argument.
 *
 * Silence is not death. Who died is told by its connection, which the kernel closes. A process of
 * this host that is silent, but there and not stopped, starves for processors: it is given as long
 * as one that stands still (--stall-fail). Where nothing but silence can be known, --lost-after is
 * as many times longer as a host has more members than cores. Time in which the coordinator itself
 * was away counts against nobody. */
#ifndef PS_SERVER_DEADLINES_H
#define PS_SERVER_DEADLINES_H

#include "ps-server/coordinator.h"

#include <stdbool.h>
#include <stddef.h>

/* The peer's connection was closed. What it sent before may still come. */
void deadlines_note_closed(struct coordinator *coordinator, uint64_t peer, uint64_t now_ms);

/* The coordinator was away for so long, and has taken since then what had come. */
void deadlines_excuse(struct coordinator *coordinator, uint64_t away_ms, uint64_t now_ms);

/* How long this coordinator may be silent until members give it up, in milliseconds: twice as long
 * as the longest that it gives any of them for nothing but silence. */
uint64_t deadlines_patience_ms(const struct coordinator *coordinator);

/* STATUS_OK, or why the job cannot go on, with a sentence: not everybody came in time, somebody was
 * lost (then marked as gone), somebody stands still. */
enum status deadlines_check(struct coordinator *coordinator, uint64_t now_ms, char *ret_reason,
                            size_t reason_size);

/* Whether it is time to say who waits for whom; then it is noted that it was said. */
bool deadlines_should_warn(struct coordinator *coordinator, uint64_t now_ms, char *ret_sentence,
                           size_t sentence_size);

#endif
