/* Measures how long this process did not look at its messages: it was stopped, starved or busy.
 *
 * A process that judges others by their silence must not count time in which it could not hear
 * them, nor they, on the same overloaded host, have spoken. Pure: time is an argument. */
#ifndef COMMON_BASE_ATTENTION_H
#define COMMON_BASE_ATTENTION_H

#include <stdint.h>

#define ATTENTION_TURN_MS 250 // a turn of a healthy loop of `ps` takes less

/* Zeroed: nothing was looked at so far. */
struct attention {
    uint64_t looked_ms;
};

/* Notes a look at now_ms. Returns by how much the time since the last one exceeds turn_ms, the
 * longest turn of a healthy loop; 0 the first time. */
uint64_t attention_away_ms(struct attention *attention, uint64_t now_ms, uint64_t turn_ms);

/* Returns since_ms moved forward by away_ms, which does not count, but not beyond now_ms. */
uint64_t attention_excuse(uint64_t since_ms, uint64_t away_ms, uint64_t now_ms);

#endif
