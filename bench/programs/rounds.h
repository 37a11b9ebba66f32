/* Times of the rounds of a benchmark, and the CPU time that its process spends in them. */
#ifndef BENCH_PROGRAMS_ROUNDS_H
#define BENCH_PROGRAMS_ROUNDS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct rounds {
    uint64_t *times_ns; // (capacity), owned
    size_t count, capacity;
    double cpu_begin, cpu_seconds;
};

/* 0, or -1: no memory. */
int rounds_init(struct rounds *rounds, size_t capacity);
void rounds_finish(struct rounds *rounds); // zeroed is fine

/* Warm-up is over. */
void rounds_begin(struct rounds *rounds);

/* Another one; beyond the capacity none is noted. */
void rounds_add(struct rounds *rounds, uint64_t ns);

/* The last one is over. */
void rounds_end(struct rounds *rounds);

/* Sorts the times, and prints `"rounds":…,"us_median":…,…,"cpu_seconds":…`, which are the keys that
 * all benchmarks of an exchange share. */
void rounds_print(struct rounds *rounds, FILE *stream);

#endif
