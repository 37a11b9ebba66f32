/* Sums up the workers' reports, for each period and for the whole job. Pure. */
#ifndef PS_SERVER_RESULTS_RESULTS_H
#define PS_SERVER_RESULTS_RESULTS_H

#include "common/base/status.h"
#include "common/channel/wire.h"
#include "ps-server/results/staleness.h"

#include <stdbool.h>
#include <stdint.h>

/* A period: an epoch, or what --eval-every says. Holds sums over the workers that have reported it,
 * and the times of the slowest. Of a program of its own: what led to an evaluation, which maybe
 * only some of its workers have reported. */
struct results_period {
    uint64_t step;           // of a program of its own: where the last of them evaluated
    uint32_t report_count;   // workers
    uint32_t repeated_count; // of those, what the coordinator before had heard
    uint64_t images, steps_max, total_ns_max;
    double images_dropped, loss_sum; // both of `images`
    uint64_t test_images, test_correct;
    double test_loss_sum; // of a program of its own: no number if it was not told
};

/* The last interval of one worker, and its sums. */
struct results_rank {
    uint64_t step, epoch;
    bool is_idle;             // no image in the interval: it is left out, or tells of none
    double loss;              // mean of the last interval with images
    double images_per_second; // of the interval; those that entered an update
    double compute_ms;        // per step in the interval
    uint64_t steps, images;
    double images_dropped; // images among those whose gradients came too late
    double loss_sum;
    uint32_t transports;        // of this phase, by its last report: a sum of enum wire_transport
    uint32_t transports_before; // of earlier phases
    uint32_t loader_threads;    // of its process, by its last report; 0: not known
    uint64_t compute_ns, exchange_wait_ns, input_wait_ns, total_ns;
    uint64_t copy_ns, wire_ns; // not part of those: ideally hidden behind them
    uint64_t bytes_sent, bytes_received;
    uint64_t warm_images, warm_ns; // since the job has gone on the last time
    uint64_t past_images, past_ns; // until then: those that entered an update
    uint64_t made;                 // steps, as it said when it was done

    // Of a program of its own.
    uint32_t evaluations;       // that it has reported
    struct results_period rest; // what it did after the last of them; report_count 0: nothing
    bool is_done;
};

/* What a shard has done. */
struct results_shard {
    uint64_t bytes_sent, bytes_received;
    uint64_t busy_ns, total_ns; // time handling messages, and all its time
    uint64_t backlog;           // most messages in a row that were already waiting
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
    struct staleness staleness; // a gradient counts once on each shard; empty in synchronous modes.
                                // Until servers have told theirs: of what the job has gone on from
    uint64_t late_count;        // gradients that came too late, once for each shard that dropped it
    bool has_reached_target;    // accuracy
    uint32_t target_period;     // at whose end it was reached

    // Of a program of its own: periods that results_tell_next has told, and those that were there
    // when it last committed what it goes on from.
    uint32_t told_count, committed_count;
    struct results_rank *committed; // (worker_count) the sums then; NULL: it has not; owned
};

enum status results_init(struct results *results, uint32_t worker_count, uint32_t shard_count);
void results_finish(struct results *results);

/* Goes on with what a checkpoint has of periods and ranks, which are taken out of `from`, and with
 * what servers had counted, as often as the shards of now would have. */
void results_go_on(struct results *results, struct results *from);

/* Counts so many steps and images of a rank, its share of what all have made, of which none came
 * too late. The mean loss stays as it is. So do times and bytes, whose sums over all ranks are
 * those of the steps of all. */
void results_rank_share(struct results_rank *rank, uint64_t steps, uint64_t images);

/* REPORT of a worker: an interval, or a period. STATUS_MALFORMED for a period that cannot be the
 * next one. */
enum status results_add(struct results *results, uint32_t rank, const struct message *message);

/* Adds what DONE says, from a worker or a server. */
void results_close_worker(struct results *results, uint32_t rank, const struct wire_report *report);
void results_close_server(struct results *results, uint32_t shard,
                          const struct wire_report *report);

/* REPORT of a program of its own that closes a period: its next evaluation, or, without a test,
 * what came after the last one. Processes evaluate when they like, all of them or some: the first
 * evaluation of each is one period, the second of each the next. */
enum status results_add_evaluation(struct results *results, uint32_t rank,
                                   const struct message *message);

/* Once all workers of such a job are done, what came after the last evaluation becomes a period, if
 * each has evaluated as often. */
enum status results_add_rest(struct results *results);

/* The next period of such a job that no process can add to any more, once. False: there is none. */
bool results_tell_next(struct results *results, uint32_t *ret_period);

/* Whether the coordinator before has told the period. */
bool results_was_told(const struct results *results, uint32_t period);

/* Its workers have committed what they go on from, with the evaluations that they have told. */
void results_note_commit(struct results *results);

/* Goes on with the sums and evaluations up to the last commit of others, which are taken out of
 * `from`: of more ranks than there are now, some get those of several. */
void results_keep_committed(struct results *results, struct results *from);

/* Its workers go on from so many steps: drops the evaluations behind them. */
void results_cut(struct results *results, uint64_t step);

/* The most steps that a rank has reported, or `least` if that is more. */
uint64_t results_most_steps(const struct results *results, uint64_t least);

/* The step of the job at which a period ends. */
uint64_t results_period_end(const struct results *results, const struct job *job,
                            uint64_t train_samples, uint32_t period);

/* Images of a period per second of its slowest worker. Workers that have not reported it count as
 * the others do. */
double results_period_rate(const struct results *results, uint32_t period);

/* The first period with the best accuracy on so many images of the test set, one or more. False:
 * none was evaluated on as many. */
bool results_best(const struct results *results, uint64_t least_images, uint32_t *ret_period);

/* The steps of the average worker, as they said when they were done. */
uint64_t results_steps_made(const struct results *results);

/* Ends a phase of the job: the next one may use other transports. */
void results_end_phase(struct results *results);

/* Returns the transports that values took in all workers and phases: a sum of enum
 * wire_transport. */
uint32_t results_transports(const struct results *results);

/* How many images of all workers entered updates, and how many did not. */
double results_images(const struct results *results);
double results_images_dropped(const struct results *results);

/* How many images of a report entered updates. */
double results_images_used(const struct wire_report *report);

/* Whether all workers have closed the period. */
bool results_period_is_complete(const struct results *results, uint32_t period);

/* Accuracy on the test set, at the end of a period that was evaluated. */
double results_accuracy(const struct results *results, uint32_t period);

/* Seconds of training up to the end of a period, without evaluations. */
double results_seconds_until(const struct results *results, uint32_t period);

/* Images per second that entered updates, over the whole job without its warm-up. A job that has
 * gone on from a copy leaves out the warm-up behind the last one alone. */
double results_images_per_second(const struct results *results);

/* The same over the last interval of every worker. */
double results_current_rate(const struct results *results);
double results_current_loss(const struct results *results);
uint32_t results_slowest_rank(const struct results *results);

#endif
