/* How long the steps of a phase take: for --bucket-mb auto. Pure.
 *
 * The median of rounds (a round is what one exchange is for), without the first two, which begin
 * something, and the last one, whose exchange nothing overlaps. */
#ifndef WORKER_TRAIN_TRIAL_H
#define WORKER_TRAIN_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#define TRIAL_ROUNDS_MAX 64 // later ones are not looked at

/* Zeroed at the beginning of a phase. */
struct trial {
    uint64_t step_ns[TRIAL_ROUNDS_MAX]; // of each round, for one of its steps
    uint32_t round_count;
    uint64_t open_ns; // of the round that is not over yet
    uint32_t open_steps;
};

/* One step, and whether its round is over. */
void trial_add(struct trial *trial, uint64_t step_ns, bool ends_round);

/* 0 if there were too few rounds. */
uint64_t trial_step_ns(const struct trial *trial);

#endif
