/* Numbers that follow from a seed. */
#ifndef TESTS_SIM_DRAWING_H
#define TESTS_SIM_DRAWING_H

#include <stdint.h>

struct drawing {
    uint64_t state; // the seed at first
};

/* A number below `bound`, which is not 0. SplitMix64 (Steele, Lea, Flood 2014). */
static inline uint64_t draw(struct drawing *drawing, uint64_t bound)
{
    uint64_t mixed = drawing->state += UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
    return (mixed ^ mixed >> 31) % bound;
}

#endif
