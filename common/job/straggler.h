/* Slows workers down on purpose, alike in every mode. Pure.
 *
 * Delays are a function of (seed, rank, step), so that all designs that are compared meet the same
 * bad luck:
 *
 *     rank=2,factor=3
 *         rank 2 takes three times as long for each step as it would
 *     dist=exponential:mean=20ms,share=0.1
 *         every worker's step is late with probability 0.1, by a time drawn from an exponential
 *         distribution with a mean of 20 ms
 *
 * Several of them are joined by semicolons, and add up. */
#ifndef COMMON_JOB_STRAGGLER_H
#define COMMON_JOB_STRAGGLER_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define STRAGGLER_RULES_MAX 16

struct straggler_rule {
    int64_t rank;          // -1: every rank
    double factor;         // of its own time; 1: none
    double mean_ms, share; // of a delay
};

struct straggler {
    struct straggler_rule rules[STRAGGLER_RULES_MAX];
    uint32_t count;
};

/* Reads --straggler. STATUS_INVALID: ret_why says what would be right. */
enum status straggler_parse(const char *text, struct straggler *ret_straggler, char *ret_why,
                            size_t why_size);

/* The largest rank that is named; -1 if none is. */
int64_t straggler_rank_max(const struct straggler *straggler);

/* How long a worker has to wait in a step that took it compute_ns, in nanoseconds. */
uint64_t straggler_delay_ns(const struct straggler *straggler, uint64_t seed, uint32_t rank,
                            uint64_t step, uint64_t compute_ns);

#endif
