/* Large jobs whose workers are alike: the first of them are simulated, and stand for all.
 *
 * With servers, each worker that is simulated stands for several that do the same at the same time:
 * what a server does for one of them it does so many times, and links that all workers use, those
 * of servers and of switches, have that part of their bandwidth. A worker's own links stay as they
 * are. So servers are as busy as in the whole job; that one comes with its fellows and not between
 * the others changes a step by less than the time that servers have for one worker of the sample.
 *
 * Servers on the hosts of workers get links of their own in a sample: as much of those of their
 * hosts as the workers there leave, which need little of them where there are far more workers than
 * servers. They keep the cores that they share.
 *
 * Round a ring, each hop stands for several: its bytes, its messages, its sums and its latency take
 * so many times what they take. So the way round takes as long. Where racks are larger than a
 * sample, and no link of their switches is full, its hosts are below one switch, and what the
 * others add to the way round is shared out among all hops between hosts.
 *
 * Directly, messages stand for several that are on their way at the same time
 * (sample_direct.h).
 *
 * Of halving and doubling, all hops are there. One whose distance is a multiple of the sample goes
 * by another, so that a worker still waits for as many different ones. (It would not if it sent to
 * itself: then steps were up to 13 % too short in tests.)
 *
 * Where workers wait for each other, those that are the latest of all are among the sample's, with
 * their delays: a quarter of it. Which workers are alike, the network says: the sample has to be
 * whole hosts, and whole racks if there are several, that come again in the same order. */
#ifndef DEPLOY_PREDICT_SAMPLE_H
#define DEPLOY_PREDICT_SAMPLE_H

#include "common/base/status.h"
#include "deploy/predict/basis/network.h"
#include "deploy/predict/reduction.h"

#include <stdbool.h>
#include <stdint.h>

/* How many workers, at least `wanted`, stand for all; 0: the network has no such workers. hosts:
 * (workers + servers). Of halving, powers of two. */
uint32_t sample_find(const struct network *network, uint32_t workers, uint32_t servers,
                     const uint32_t *hosts, uint32_t wanted, enum reduction_kind kind);

/* Whether servers run on hosts of workers. */
bool sample_is_beside(uint32_t workers, uint32_t servers, const uint32_t *hosts);

/* Why servers on hosts of workers leave no sample; NULL: they do, or there are none. Static. */
const char *sample_beside_obstacle(const struct network *network, uint32_t workers,
                                   uint32_t servers, const uint32_t *hosts,
                                   enum reduction_kind kind);

/* Whether such a sample has a part of each class, and not the first workers. */
bool sample_has_classes(const struct network *network, uint32_t workers, const uint32_t *hosts,
                        uint32_t count);

/* Puts the hosts of the sample before the others. hosts: (workers). */
void sample_place(const struct network *network, uint32_t workers, uint32_t count, uint32_t *hosts);

/* A network in which so many hops of a ring stand for all. hosts: (workers). */
enum status sample_ring(const struct network *network, uint32_t workers, const uint32_t *hosts,
                        uint32_t count, struct reduction *ret_reduction);

/* The same of halving and doubling: the network as it is. */
enum status sample_halving(const struct network *network, struct reduction *ret_reduction);

/* How many workers of a sample back the next is to which one sends, of halving and doubling, in
 * the place of the one that is `distance` back. */
uint32_t sample_distance(uint32_t count, uint32_t distance);

/* The same for servers: links have the part that `count` workers have of them. hosts: (workers +
 * servers); servers beside workers get hosts of their own, with the same cores. */
enum status sample_servers(const struct network *network, uint32_t workers, uint32_t servers,
                           uint32_t count, uint32_t *hosts, struct reduction *ret_reduction);

#endif
