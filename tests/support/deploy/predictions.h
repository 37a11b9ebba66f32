/* Jobs and networks of which predictions are made in tests. */
#ifndef TESTS_SUPPORT_DEPLOY_PREDICTIONS_H
#define TESTS_SUPPORT_DEPLOY_PREDICTIONS_H

#include "common/job/job.h"
#include "deploy/predict/basis/costs.h"
#include "deploy/predict/basis/network.h"
#include "deploy/predict/prediction.h"

#include <stdint.h>

/* Reads a network from its text. The test fails if it is wrong. */
void predictions_read_network(const char *text, struct network *ret_network);

/* Workers h, and servers p, on hosts of their own: 64 and 8, with 10 Gbit/s, 20 us apart. */
void predictions_read_star(struct network *ret_network);

/* One for all tests of a program: what a group has before and behind them. */
extern struct network predictions_star;
int predictions_open_star(void **state);
int predictions_close_star(void **state);

/* Over that. `warm` steps do not count, `steps` do. */
struct prediction predictions_make(const struct job *job, const struct costs *costs, uint32_t warm,
                                   uint32_t steps);

/* A job whose gradients are one bucket. */
struct job predictions_job(enum mode_kind mode, uint32_t workers, uint32_t servers,
                           enum all_reduce_choice choice);

/* Costs of a batch of 32 images, and of one layer that costs nothing but what its gradients need.
 */
void predictions_reset_costs(uint64_t parameters, struct costs *ret_costs);

/* Fails unless got is want, give or take a part of it. */
void predictions_check(const char *what, uint32_t workers, double got, double want, double part);

#endif
