/* Measures how long this process did not look at its messages. */
#include "common/base/attention.h"

#include <stdbool.h>

uint64_t attention_away_ms(struct attention *attention, uint64_t now_ms, uint64_t turn_ms)
{
    uint64_t last_ms = attention->looked_ms;
    attention->looked_ms = now_ms;
    bool was_late = last_ms != 0 && now_ms > last_ms && now_ms - last_ms > turn_ms;
    return was_late ? now_ms - last_ms - turn_ms : 0;
}

uint64_t attention_excuse(uint64_t since_ms, uint64_t away_ms, uint64_t now_ms)
{
    uint64_t moved_ms = since_ms + away_ms;
    return moved_ms < now_ms ? moved_ms : now_ms;
}
