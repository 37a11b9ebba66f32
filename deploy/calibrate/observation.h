/* What a timeline shows of the costs of a job, step by step and message by message. Pure.
 *
 * Only whole steps behind the first ones count. The time of a step is that from its beginning to
 * the beginning of the next. It falls into what its thread does, piece by piece
 * (deploy/trace/segments): layers, updates, waits in the exchange, delays of --straggler, and the
 * rest, which is what a worker needs for a step besides (its batch, handing over buckets, reports).
 * Waits and delays are no costs of a step. Of messages, sums and updates, what counts is how long a
 * core worked, where the timeline says so. */
#ifndef DEPLOY_CALIBRATE_OBSERVATION_H
#define DEPLOY_CALIBRATE_OBSERVATION_H

#include "common/base/status.h"
#include "deploy/calibrate/fit.h"
#include "deploy/calibrate/observed_cpu.h"
#include "deploy/calibrate/observed_exchange.h"
#include "deploy/calibrate/observed_pieces.h"
#include "deploy/predict/basis/costs.h"
#include "deploy/predict/basis/network_pacing.h"
#include "deploy/trace/timeline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBSERVATION_WARM_STEPS 3 // of each worker, which are not counted
#define OBSERVATION_SIZES_MAX  64

/* Times of the same kind, added up. */
struct observed_time {
    double seconds;
    uint64_t count;
};

struct observed_layer {
    char name[TIMELINE_TEXT_BYTES];
};

/* Values that were added up, and how long it took. */
struct observed_sums {
    double bytes, seconds;
    uint64_t count;
};

/* The quickest message of each size, from the beginning of its send to that of its receive. (Its
 * send may end late, where its thread is made to wait for a core, and be received before.) */
struct observed_ways {
    struct fit_point least[OBSERVATION_SIZES_MAX]; // (size_count)
    size_t size_count;
    uint64_t count;      // messages
    double least_send_s; // the shortest send of them, which the ways begin with
};

/* A message with values that went from one host to another. */
struct observed_message {
    double begin_s, end_s; // of its send and of its receive, behind the timeline's beginning
    double bytes;
    uint32_t from, to; // hosts: the timeline's first processes there
    enum network_way way;
};

struct observation {
    struct observed_layer layers[COSTS_LAYERS_MAX]; // (layer_count), as they were met first
    uint32_t layer_count;                           // 0: the timeline has none
    double piece_s[OBSERVED_PIECES];                // of a step, by enum observed_piece
    struct observed_spreads spreads;                // of these, where there are layers
    double optimizer_s;                             // in all steps
    double *step_s;                                 // (step_count), owned: layers and the rest
    size_t step_count;                              // of all workers
    double passed_s;                                // in all steps, waits included
    uint64_t job_steps;                             // of them, those of the job
    bool has_gpu;                                   // what updates take cannot be told
    bool is_unsure_of_clocks;             // of hosts: by more than the quickest of their messages
    struct observed_time sends, receives; // messages with values, without sums
    struct observed_time posts;           // of buckets: those without sums
    uint64_t post_count;                  // all of them
    struct observed_sums sums;            // of an all-reduce
    struct observed_sums served;          // of servers: sums and updates
    struct observed_ways within, between; // hosts
    struct observed_message *messages;    // (message_count), owned; between hosts
    size_t message_count;
    struct observed_cores cores;
    struct observed_exchange exchange;
};

/* How the job's all-reduce adds up, by its summary: whether a message of the first hop always has
 * values that are added up. */
struct observation_options {
    bool adds_in_first_hop;
    bool has_one_thread; // that computes in each worker: its time on cores is that of a step
    bool lends;          // messages have loans of values
};

/* STATUS_END_OF_DATA: no worker has forward and backward in its timeline. STATUS_INVALID: fewer
 * than two steps count. *ret_observation is large: on the heap. */
enum status observation_make(const struct timeline *timeline,
                             const struct observation_options *options,
                             struct observation *ret_observation);

/* One more message. Of more sizes than there is room for it is not kept. */
void observed_ways_add(struct observed_ways *ways, const struct fit_point *way, double send_s);
void observation_finish(struct observation *observation); // zeroed is fine

#endif
