/* Samples of workers that all send to all: a message stands for several that are on their way at
 * the same time, over connections of their own. So both ends handle, and links carry, as much as in
 * the whole job, and latency counts once.
 *
 * How many that is depends on how far its receiver is. Of a worker's host or rack a sample has all
 * workers, or a greater part than of the others: were they all to stand for as many, more messages
 * would stay within hosts and racks. */
#ifndef DEPLOY_PREDICT_SAMPLE_DIRECT_H
#define DEPLOY_PREDICT_SAMPLE_DIRECT_H

#include "common/base/status.h"
#include "deploy/predict/basis/network.h"
#include "deploy/predict/reduction.h"

#include <stdbool.h>
#include <stdint.h>

#define SAMPLE_DISTANCES (NETWORK_DEPTH_MAX + 1)

/* Whether the first `count` workers may be a sample: at no distance from one of them are workers,
 * but none of the sample. hosts: (workers). */
bool sample_direct_is_complete(const struct network *network, uint32_t workers,
                               const uint32_t *hosts, uint32_t count);

/* Likewise how many messages one stands for, by its sender and the distance of its receiver
 * (network_distance): (count, SAMPLE_DISTANCES), which the caller frees. The network stays as it
 * is. */
enum status sample_direct(const struct network *network, uint32_t workers, const uint32_t *hosts,
                          uint32_t count, double **ret_each, struct reduction *ret_reduction);

#endif
