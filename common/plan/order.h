/* Draws which parameters each gradient of an unsynchronised job is computed on. Pure.
 *
 * Versions of the parameters are counted by updates: version v is what v updates have made. Without
 * an order, races between workers decide. A seeded order draws it instead, so that a job with
 * staleness has the same bits on any machine: update t (from 1) is made by worker (t-1) mod N, from
 * the gradient of its step (t-1) / N, computed on version max(0, t - 1 - tau(t)), where tau(t) is
 * drawn from (seed, t) alone:
 *
 *     free                   races
 *     seeded:round-robin     tau = N - 1: every worker reads once per round
 *     seeded:constant:S      tau = S
 *     seeded:uniform:A..B    A <= tau <= B, each alike
 *     seeded:geometric:P     tau = k with probability P (1-P)^k; the tail beyond 1e-6 is cut
 *
 * This is the model of Dai et al. (2018) for one server: delays are drawn, not met. Theirs, with
 * parameters of its own for every worker, is in ps-server/shard/shard_views.h. */
#ifndef COMMON_PLAN_ORDER_H
#define COMMON_PLAN_ORDER_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORDER_STALENESS_MAX 4096

enum order_kind {
    ORDER_FREE,
    ORDER_ROUND_ROBIN,
    ORDER_CONSTANT,
    ORDER_UNIFORM,
    ORDER_GEOMETRIC,
};

struct order {
    enum order_kind kind;
    uint64_t low, high; // constant: both; uniform: the range; geometric: 0 and where it is cut
    double probability; // geometric
};

/* Reads --order. STATUS_INVALID: ret_why says what would be right. */
enum status order_parse(const char *text, struct order *ret_order, char *ret_why, size_t why_size);

/* The largest staleness that it draws, for N workers. 0 for free. */
uint64_t order_staleness_max(const struct order *order, uint32_t workers);

/* tau of update t (from 1). Not for free. */
uint64_t order_staleness(const struct order *order, uint64_t seed, uint32_t workers,
                         uint64_t update);

/* With --delay-model per-worker: after how many steps a worker sees the change of update t (from 1;
 * in step (t-1) / N). Not for free, nor for round-robin. */
uint64_t order_delay(const struct order *order, uint64_t seed, uint64_t update, uint32_t seer);

/* The version that the gradient of update t is computed on. */
uint64_t order_version(const struct order *order, uint64_t seed, uint32_t workers, uint64_t update);

#endif
