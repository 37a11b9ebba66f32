/* What a worker's steps cost: a JSON file that people can write (docs/PREDICT-FILES.md). */
#ifndef DEPLOY_PREDICT_BASIS_COSTS_H
#define DEPLOY_PREDICT_BASIS_COSTS_H

#include "common/base/status.h"
#include "common/vector/layout.h"
#include "deploy/predict/basis/conditions.h"
#include "deploy/predict/basis/launch_costs.h"
#include "deploy/predict/basis/spread.h"

#include <stdbool.h>
#include <stdint.h>

#define COSTS_LAYERS_MAX 1024
#define COSTS_SPREAD_MAX 100.0 // of a layer, times what all layers take; more is a wrong unit

/* What a process that is lost, or comes, costs besides the steps that are made again. */
struct recovery {
    double notice_s, go_on_s, join_s, copy_every_s;
    bool has_notice, has_go_on, has_join, has_copy_every; // given; otherwise assumed
};

struct cost_layer {
    uint64_t parameters;
    double forward_s, backward_s;
    // What these take besides. It is part of the spread of the costs, and never drawn: it says how
    // sure computing is, and by which layers.
    struct spread forward_spread, backward_spread;
};

/* Standard errors of costs, as shares of them; 0: not known. */
struct cost_errors {
    double compute, optimizer, message, sum, carriage;
};

struct costs {
    uint32_t batch;                             // images of a worker's step
    struct cost_layer layers[COSTS_LAYERS_MAX]; // from the input to the output
    uint32_t layer_count;
    bool whole_layers;         // none begins or is done by halves, whatever buckets it lies in
    double optimizer_s;        // an update of all parameters
    double server_optimizer_s; // likewise, of servers, if they differ from workers
    bool has_server_optimizer;
    double message_s;         // of sender and receiver, each
    double message_bandwidth; // of its values, besides; 0: in no time
    double sum_bandwidth;     // bytes of received values added up per second; 0: in no time
    double encode_bandwidth, decode_bandwidth; // of --compress: of values; 0: in no time
    struct spread spread;                      // what a step takes besides: all layers together
    // Of cores, which count where the network says how many a host has.
    uint32_t threads;          // that a worker computes with; 0 stands for 1
    double input_s;            // of reading a batch, beside computing
    double carriage_message_s; // of the threads that carry messages, at each end: of a message,
    double carriage_bandwidth; // and bytes per second; 0: in no time
    double crowding, turns;    // how many times as long computing takes: where all cores are busy,
                               // and with two threads that compute on each (cores.h); 0 for 1
    bool messages_first;       // threads that do not compute go before those that do
    double slice_s;            // that a thread keeps a core for which others wait; 0: they share it
    double refill_s;           // of a core's caches behind others, with a slice (cores.h)
    struct recovery recovery;
    struct launch_costs launch;
    struct cost_errors errors;
    uint32_t line_from, line_to;  // batches from which these follow (cost_batches.h); 0: none
    bool is_measured;             // the file says from what
    struct conditions conditions; // and under what
};

/* What is assumed: a killed process is noticed at once; the others as docs/BENCHMARKS.md has
 * measured them of a small model, and as the coordinator makes copies. */
#define RECOVERY_NOTICE_S     0.01
#define RECOVERY_GO_ON_S      0.1
#define RECOVERY_JOIN_S       0.2
#define RECOVERY_COPY_EVERY_S 1.0

/* Reads the object of a file, without its `batches`, which cost_batches.h reads. Logs what is
 * wrong.
 */
enum status costs_take(json_t *object, const char *file, struct costs *ret_costs);

/* Reads the field `batch` of a place in a file. Logs. */
enum status costs_read_batch(const struct fields *fields, double *ret_batch);

/* Reads `forward`, `backward` and `spread` of a layer. Without `spread` its spreads grow with its
 * times, as far as it had any. Logs. */
enum status costs_read_layer_times(const struct fields *fields, struct cost_layer *layer);

/* Whether spreads of layers can be meant, which are in `layers` of a place in a file. Logs. */
enum status costs_check_layer_spreads(const struct fields *fields, const struct costs *costs);

/* Times, and their spreads. */
void cost_layer_scale(struct cost_layer *layer, double forward_factor, double backward_factor);

/* Reads the field `images-per-s` of a place in a file: what one worker makes of such a batch. What
 * its step has besides the optimizer and the mean of the spread is shared out among forward and
 * backward of all layers in proportion to the times that they have. Unless the place has a spread,
 * that of `costs` will grow with them. Without the field they stay as they are. Logs. */
enum status costs_read_rate(const struct fields *fields, double batch, bool has_spread,
                            struct costs *costs);

/* Whether the file has only smaller batches, or only larger ones. */
bool costs_are_extrapolated(const struct costs *costs);

/* The buckets that the product makes of such layers. STATUS_INVALID if it cannot. */
enum status costs_make_layout(const struct costs *costs, uint64_t bucket_bytes,
                              struct layout *ret_layout);

/* The parts of forward and of backward that a bucket has, in seconds: a layer's are shared out in
 * proportion to its parameters, or, of whole layers, are all those of its end's bucket, which is
 * the last one that forward waits for, and before which backward is done with none of the layer's.
 * Those of a layer without parameters go to the next layer that has some, or, behind the last one,
 * to that. */
void costs_of_bucket(const struct costs *costs, struct span bucket, double *ret_forward_s,
                     double *ret_backward_s);

/* An update of all parameters by servers. */
double costs_server_optimizer_s(const struct costs *costs);

/* Forward and backward of all layers. */
double costs_compute_s(const struct costs *costs);

/* The standard deviation of what all layers take, as far as they have spreads: with draws that have
 * nothing to do with each other, so the root of the sum of squares. */
double costs_layers_deviation_s(const struct costs *costs);

/* Likewise with draws that are all long or short at once: the sum. */
double costs_layers_deviation_sum_s(const struct costs *costs);

#endif
