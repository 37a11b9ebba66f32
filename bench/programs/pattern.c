/* Fills gradients with small integers that repeat with a period. */
#include "bench/programs/pattern.h"

#include <string.h>

#define INTEGER_MAX 31 // values are from 1 to this

uint64_t pattern_shift(uint32_t rank, uint64_t round)
{
    return 11 * (uint64_t)rank + 7 * round;
}

float pattern_at(uint64_t shift, uint64_t index)
{
    return (float)(1 + (5 * (index % PATTERN_PERIOD) + shift) % INTEGER_MAX);
}

void pattern_fill(float *values, uint64_t count, uint64_t shift)
{
    float period[PATTERN_PERIOD];
    for (uint32_t i = 0; i < PATTERN_PERIOD; i++) {
        period[i] = pattern_at(shift, i);
    }
    for (uint64_t done = 0; done < count; done += PATTERN_PERIOD) {
        uint64_t rest = count - done, size = rest < PATTERN_PERIOD ? rest : PATTERN_PERIOD;
        memcpy(values + done, period, size * sizeof(float));
    }
}

static uint64_t probe_at(uint64_t count, uint32_t probe)
{
    return (count - 1) * probe / (PATTERN_PROBES - 1);
}

void pattern_fill_probes(float *values, uint64_t count, uint64_t shift)
{
    for (uint32_t i = 0; i < PATTERN_PROBES; i++) {
        uint64_t at = probe_at(count, i);
        values[at] = pattern_at(shift, at);
    }
}

void pattern_sum(uint32_t world, uint64_t round, float factor, float ret_sum[PATTERN_PERIOD])
{
    for (uint32_t i = 0; i < PATTERN_PERIOD; i++) {
        float sum = 0;
        for (uint32_t rank = 0; rank < world; rank++) {
            sum += pattern_at(pattern_shift(rank, round), i);
        }
        ret_sum[i] = sum * factor;
    }
}

uint64_t pattern_find_wrong(const float *values, uint64_t count, const float period[PATTERN_PERIOD])
{
    for (uint64_t done = 0; done < count; done += PATTERN_PERIOD) {
        uint64_t rest = count - done, size = rest < PATTERN_PERIOD ? rest : PATTERN_PERIOD;
        for (uint64_t i = 0; i < size; i++) {
            if (values[done + i] != period[i]) { // a NaN differs, too
                return done + i;
            }
        }
    }
    return count;
}

uint64_t pattern_find_wrong_probe(const float *values, uint64_t count,
                                  const float period[PATTERN_PERIOD])
{
    for (uint32_t i = 0; i < PATTERN_PROBES; i++) {
        uint64_t at = probe_at(count, i);
        if (values[at] != period[at % PATTERN_PERIOD]) {
            return at;
        }
    }
    return count;
}
