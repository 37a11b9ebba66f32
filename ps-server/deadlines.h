/* What a coordinator must not wait for any longer. Pure: time is an argument. */
#ifndef PS_SERVER_DEADLINES_H
#define PS_SERVER_DEADLINES_H

#include "ps-server/coordinator.h"

#include <stdbool.h>
#include <stddef.h>

/* STATUS_OK, or why the job cannot go on, with a sentence: not everybody came in time, somebody was
 * lost (then marked as gone), somebody stands still. */
enum status deadlines_check(struct coordinator *coordinator, uint64_t now_ms, char *ret_reason,
                            size_t reason_size);

/* Whether it is time to say who waits for whom; then it is noted that it was said. */
bool deadlines_should_warn(struct coordinator *coordinator, uint64_t now_ms, char *ret_sentence,
                           size_t sentence_size);

#endif
