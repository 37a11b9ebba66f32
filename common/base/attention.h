/* How long we did not look at what others say: stopped, starved of processors, or busy elsewhere.
 *
 * Who judges others by their silence must not count the time in which it could not have heard them,
 * nor they, on the same overloaded host, have spoken. Pure: time is an argument. */
#ifndef COMMON_BASE_ATTENTION_H
#define COMMON_BASE_ATTENTION_H

#include <stdint.h>

/* Zeroed: we have not looked so far. */
struct attention {
    uint64_t looked_ms;
};

/* We look, at now_ms. How much longer ago the last look is than turn_ms, in which a loop that is
 * well comes round; 0 at first. */
uint64_t attention_away_ms(struct attention *attention, uint64_t now_ms, uint64_t turn_ms);

/* since_ms, moved by what does not count, but not beyond now_ms. */
uint64_t attention_excuse(uint64_t since_ms, uint64_t away_ms, uint64_t now_ms);

#endif
