/* Large jobs in small: equal workers do the same at the same time, and equal servers, too.
 *
 * In ring mode one worker stands for all. What it would send to the one that is d ranks ahead, it
 * gets at once from the one that is d ranks behind. Its messages are stretched: they take as long
 * as they would on the link that is the last to carry all those of one hop. Of its delays it has
 * those of the worker that is latest.
 *
 * In ps-sync one server stands for all, and links that all servers use have a share. In ps-ssp and
 * ps-async all servers are there, as each has a queue of its own. In both, each flow may have its
 * share of a worker's link and no more: then only links of servers and switches are shared, and
 * flows of many workers are one class.
 *
 * A reduced job may differ from the whole one, and reduction_error says by how much. */
#ifndef DEPLOY_PREDICT_REDUCTION_H
#define DEPLOY_PREDICT_REDUCTION_H

#include "common/base/status.h"
#include "common/job/all_reduce.h"
#include "deploy/predict/basis/network.h"

#include <stdbool.h>
#include <stdint.h>

enum reduction_kind {
    REDUCTION_RING,    // by rings or directly
    REDUCTION_HALVING, // halving and doubling of some bucket, or of all
    REDUCTION_SYNC,    // with servers
    REDUCTION_RACES,   // with servers, each gradient an update
};

#define REDUCTION_EVEN      0.01  // nothing sets those apart that one stands for
#define REDUCTION_SAMPLE    0.01  // a sample of them stands for all (sample.h)
#define REDUCTION_EVEN_SEEN 0.004 // by so much they differ in tests

/* By what share of a step a reduced job may differ from the whole one. tests/deploy/predict/
 * test_reduction.c compares both, and pins these figures. INFINITY: no bound is known.
 * hosts: (workers + servers). */
double reduction_error(enum reduction_kind kind, const struct network *network, uint32_t workers,
                       uint32_t servers, const uint32_t *hosts, bool has_delays);

struct reduction {
    struct network network;              // owns its lists
    uint32_t *origins;                   // of its links, those of the whole network; owned
    double *scales;                      // bytes on an origin for each on a link; owned
    double ring_stretch, direct_stretch; // of bytes
    double *halving_stretch;             // (workers), by the distance of the hop; owned
};

/* The network as it is, with lists of its own: nothing in it stands for anything else yet. */
enum status reduction_copy(const struct network *network, struct reduction *ret_reduction);

/* hosts: (workers) of the whole network; at the end those of the reduced one. */
enum status reduction_of_ring(const struct network *network, uint32_t workers, uint32_t *hosts,
                              struct reduction *ret_reduction);

/* Only where reduction_error is finite. hosts: (workers + servers). kept: of the servers, 1 or all.
 */
enum status reduction_of_servers(const struct network *network, uint32_t workers, uint32_t servers,
                                 uint32_t kept, const uint32_t *hosts,
                                 struct reduction *ret_reduction);

void reduction_finish(struct reduction *reduction); // zeros are fine

#endif
