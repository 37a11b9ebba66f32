/* A live state as one line of JSON, and back: what the page's events hold. Reading takes a text
 * from anybody: what does not belong is refused. */
#ifndef COMMON_LIVE_LIVE_JSON_H
#define COMMON_LIVE_LIVE_JSON_H

#include "common/live/live_state.h"

#include <stddef.h>

// Ranks that the text has; the job may have more.
#define LIVE_JSON_RANKS_MAX 512
#define LIVE_JSON_BYTES_MAX (1 << 20)

/* Text of malloc without a line break; NULL if there is no memory. */
char *live_json_text(const struct live_state *state);

/* STATUS_MALFORMED, and nothing is written, or STATUS_NO_MEMORY. The caller calls
 * live_state_finish. */
enum status live_json_read(const char *text, size_t size, struct live_state *ret_state);

#endif
