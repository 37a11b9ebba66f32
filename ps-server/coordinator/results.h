/* What a job has done so far: sums of the workers' reports, by period and in all. Pure. */
#ifndef PS_SERVER_COORDINATOR_RESULTS_H
#define PS_SERVER_COORDINATOR_RESULTS_H

#include "common/base/status.h"
#include "common/channel/wire.h"
#include "ps-server/shard/staleness.h"

#include <stdbool.h>
#include <stdint.h>

/* A period: an epoch, or what --eval-every says. Sums over the workers that have reported it; times
 * are of the slowest. */
struct results_period {
    uint32_t report_count; // workers
    uint64_t images, steps_max, total_ns_max;
    double images_dropped, loss_sum; // both of `images`
    uint64_t test_images, test_correct;
    double test_loss_sum;
};

/* The last interval of one worker, and its sums. */
struct results_rank {
    uint64_t step, epoch;
    double loss;              // mean of the interval
    double images_per_second; // of the interval; those that entered an update
    double compute_ms;        // per step, of the interval
    uint64_t steps, images;
    double images_dropped; // of those: their gradients came too late
    double loss_sum;
    uint32_t transports;        // of this phase, by its last report: a sum of enum wire_transport
    uint32_t transports_before; // of earlier phases
    uint64_t compute_ns, exchange_wait_ns, input_wait_ns, total_ns;
    uint64_t copy_ns, wire_ns; // beside those: hidden behind them where all goes well
    uint64_t bytes_sent, bytes_received;
    uint64_t warm_images, warm_ns;
};

/* What a shard has done. */
struct results_shard {
    uint64_t bytes_sent, bytes_received;
    uint64_t busy_ns, total_ns; // handling messages, of all its time
    uint64_t backlog;           // most messages that were waiting for it, one after the other
};

struct results {
    struct results_period *periods; // owned
    uint32_t period_count;          // with at least one report
    uint32_t period_capacity;
    struct results_rank *ranks; // (worker_count), owned
    uint32_t worker_count;
    struct results_shard *shards; // (shard_count), owned
    uint32_t shard_count;
    uint64_t server_bytes_sent, server_bytes_received;
    struct staleness staleness; // a gradient counts once on each shard; empty in synchronous modes
    uint64_t late_count;        // gradients that came too late, once for each shard that dropped it
    bool has_reached_target;    // accuracy
    uint32_t target_period;     // at the end of which it did
};

enum status results_init(struct results *results, uint32_t worker_count, uint32_t shard_count);
void results_finish(struct results *results);

/* REPORT of a worker: an interval, or a period. STATUS_MALFORMED for a period that cannot be the
 * next one. */
enum status results_add(struct results *results, uint32_t rank, const struct message *message);

/* DONE of a worker or of a server. */
void results_close_worker(struct results *results, uint32_t rank, const struct wire_report *report);
void results_close_server(struct results *results, uint32_t shard,
                          const struct wire_report *report);

/* Ends a phase of the job: the next one may use other transports. */
void results_end_phase(struct results *results);

/* The transports that values took, of all workers and phases: a sum of enum wire_transport. */
uint32_t results_transports(const struct results *results);

/* How many images of all workers entered updates, and how many did not. */
double results_images(const struct results *results);
double results_images_dropped(const struct results *results);

/* How many images of a report entered updates. */
double results_images_used(const struct wire_report *report);

/* All workers have closed it. */
bool results_period_is_complete(const struct results *results, uint32_t period);

/* Of the test set, at the end of a period that was evaluated. */
double results_accuracy(const struct results *results, uint32_t period);

/* Seconds of training, evaluations not counted, up to the end of a period. */
double results_seconds_until(const struct results *results, uint32_t period);

/* Images per second of the whole job that entered updates, warm-up excluded. */
double results_images_per_second(const struct results *results);

/* Over the last interval of every worker. */
double results_current_rate(const struct results *results);
double results_current_loss(const struct results *results);
uint32_t results_slowest_rank(const struct results *results);

#endif
