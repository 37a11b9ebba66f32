/* Gradients whose sums are exact, and so can be checked exactly.
 *
 * A vector repeats a period of small integers, shifted by what its owner gives: another one on each
 * rank and in each round. Sums of integers are exact in any order, so a mean or a sum over ranks
 * repeats a period, too, and so does whatever an optimizer makes of it, element by element. */
#ifndef BENCH_PROGRAMS_PATTERN_H
#define BENCH_PROGRAMS_PATTERN_H

#include <stdint.h>

#define PATTERN_PERIOD 127 // floats; prime, so that no cut of a vector falls together with it
#define PATTERN_PROBES 8

/* The shift of a rank in a round. */
uint64_t pattern_shift(uint32_t rank, uint64_t round);

float pattern_at(uint64_t shift, uint64_t index);

/* The whole vector, or a few elements of it, the first and the last among them. */
void pattern_fill(float *values, uint64_t count, uint64_t shift);
void pattern_fill_probes(float *values, uint64_t count, uint64_t shift);

/* The sum over `world` ranks of one round, times `factor`. */
void pattern_sum(uint32_t world, uint64_t round, float factor, float ret_sum[PATTERN_PERIOD]);

/* The first element that is not as the period says, or `count`: of all, or of the probes. */
uint64_t pattern_find_wrong(const float *values, uint64_t count,
                            const float period[PATTERN_PERIOD]);
uint64_t pattern_find_wrong_probe(const float *values, uint64_t count,
                                  const float period[PATTERN_PERIOD]);

#endif
