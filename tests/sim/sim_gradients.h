/* Gradients of simulated workers, and what a job must end with: closed forms by plain loops.
 *
 * Gradients are small whole numbers over 64, and the learning rate is a power of two, so sums of
 * them are exact in whatever order they are taken: what a job must end with can be worked out by
 * plain loops (sim_expected). In synchronous modes, and with a seeded order, a gradient is drawn
 * from the bits of the parameter that it is for, the rank and the step. So a step that is computed
 * on other parameters than those that it is to have, or a gradient that is taken twice or not at
 * all, ends in other parameters. In a race, how many steps each worker makes is left to chance, and
 * only their number is known: all gradients are the same then, and what counts is how many.
 *
 * With momentum, the factor is a power of two as well: all products are exact, so an update has one
 * rounding for each of its sums, whether multiply-adds are fused or not. */
#ifndef TESTS_SIM_SIM_GRADIENTS_H
#define TESTS_SIM_SIM_GRADIENTS_H

#include "common/job/job.h"

#include <stdbool.h>
#include <stdint.h>

/* Of one parameter, by its place. */
float sim_gradient(uint32_t rank, uint64_t step, uint64_t at, float param);
float sim_gradient_of_race(uint64_t at);
float sim_first_param(uint64_t at);

/* Whether nobody knows which worker makes how many steps. */
bool sim_is_race(const struct job *job);

/* What the parameters of a job must be after so many steps, and the optimizer's state of one with
 * momentum; (value_count) of them. In a race: after all gradients of all workers, each applied
 * once. */
void sim_expected(const struct job *job, uint32_t value_count, uint64_t steps, float *ret_params);
void sim_expected_state(const struct job *job, uint32_t value_count, uint64_t steps,
                        float *ret_state);

#endif
