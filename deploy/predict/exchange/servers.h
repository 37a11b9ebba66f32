/* What modes with servers keep of them, and of each worker at each. For by_servers.c. */
#ifndef DEPLOY_PREDICT_EXCHANGE_SERVERS_H
#define DEPLOY_PREDICT_EXCHANGE_SERVERS_H

#include "common/job/consistency.h"
#include "deploy/predict/clocks.h"
#include "deploy/predict/exchange/credits.h"

#include <stdbool.h>
#include <stdint.h>

struct pair {                  // a worker and a shard
    double travelling, window; // bytes of values
    uint32_t waiting_count;    // pushes that wait
    bool *waits;               // (buckets), owned
    uint64_t read_version;     // of the parameters that the worker computes with
    uint32_t taken_count;      // parts of the gradient that comes
    bool is_pulled;            // the worker waits for parameters, its gradient was applied
    // With --backup:
    bool is_held;            // its gradient is whole, and of the update that comes
    uint64_t wanted_version; // another server had it
    uint64_t seen_version;   // of what the worker has got
};

struct server {                  // a shard
    struct credits_seen credits; // of ps-sync
    double *part_bytes;          // (buckets), owned
    // Where gradients are applied when they are whole:
    struct clocks clocks;
    uint64_t version; // updates
    uint64_t floats;
    uint32_t summed;     // gradients of the next update
    uint32_t part_count; // buckets of which it has something
};

struct servers {
    struct pair *pairs;     // (workers, shards)
    uint32_t *counts;       // (shards, buckets) gradients of the update that is being made
    struct server *servers; // (shards)
    uint32_t *replies;      // (workers) parts that have come, of all shards
    uint32_t *awaited;      // (workers) of so many
    uint32_t part_count;    // of all shards
    struct consistency consistency;
};

#endif
