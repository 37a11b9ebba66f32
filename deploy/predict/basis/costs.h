/* What a worker's steps cost: a JSON file that people can write (docs/PREDICT-FILES.md). */
#ifndef DEPLOY_PREDICT_BASIS_COSTS_H
#define DEPLOY_PREDICT_BASIS_COSTS_H

#include "common/base/status.h"
#include "common/vector/layout.h"
#include "deploy/predict/basis/conditions.h"
#include "deploy/predict/basis/launch_costs.h"

#include <stdbool.h>
#include <stdint.h>

#define COSTS_LAYERS_MAX 1024

enum spread_kind { SPREAD_NONE, SPREAD_EXPONENTIAL, SPREAD_UNIFORM, SPREAD_PARETO };

/* A time that every step of every worker takes besides what its layers cost, drawn anew. */
struct spread {
    enum spread_kind kind;
    double least_s; // uniform, pareto
    double most_s;  // uniform
    double mean_s;  // exponential
    double shape;   // pareto: above 1, so that there is a mean
};

/* What a process that is lost, or comes, costs besides the steps that are made again. */
struct recovery {
    double notice_s, go_on_s, join_s, copy_every_s;
    bool has_notice, has_go_on, has_join, has_copy_every; // given; otherwise assumed
};

struct cost_layer {
    uint64_t parameters;
    double forward_s, backward_s;
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
    struct spread spread;
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

/* Read the fields `batch` and `spread` of a place in a file. Without an object the spread stays as
 * it is. Log. */
enum status costs_read_batch(const struct fields *fields, double *ret_batch);
enum status costs_read_spread(const char *file, const char *place, json_t *object,
                              struct spread *spread);

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

/* What a spread adds to a step in the mean. */
double spread_mean_s(const struct spread *spread);

/* Makes all draws of a spread so many times as long. */
void spread_scale(struct spread *spread, double factor);

/* The draw of a worker's step. */
double spread_draw(const struct spread *spread, uint64_t seed, uint32_t rank, uint64_t step);

#endif
