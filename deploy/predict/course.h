/* The course of a predicted job. For the files that have a part of it: `prediction` the workers'
 * steps, `course_plan` what is simulated of them, and the folder `exchange` what they send. */
#ifndef DEPLOY_PREDICT_COURSE_H
#define DEPLOY_PREDICT_COURSE_H

#include "common/job/all_reduce.h"
#include "common/job/straggler.h"
#include "deploy/predict/clocks.h"
#include "deploy/predict/engine/engine.h"
#include "deploy/predict/prediction.h"
#include "deploy/predict/reduction.h"

struct course_worker {
    uint32_t awaited;       // bucket + 1 that forward waits for; 0: it computes
    double spread_s;        // of the step that begins
    double spread_mean_s;   // of all workers that it stands for
    double begin_s;         // that it waits on purpose before the step that begins
    bool is_reading;        // the next batch
    bool awaits_batch;      // before it begins
    uint64_t *missing;      // (buckets) floats that are not final yet
    uint64_t missing_count; // of all buckets
    bool is_ending;         // a round of local SGD: it waits for all of them
};

struct course_delays {
    double begin_s, spread_s; // before the step, and before forward
};

// Of a sample's workers, one in so many has the delays of one of the latest of all.
#define COURSE_LATEST_SHARE 4

static inline double course_delays_sum(const struct course_delays *delays)
{
    return delays->begin_s + delays->spread_s;
}

/* Workers that stand for all (sample.h), and the last steps' delays of all. */
struct course_sample {
    uint32_t workers;    // that are simulated; 0: no sample
    double workers_each; // that one stands for
    double hops_each;    // of a ring, that one stands for; 1 elsewhere,
    double values_each;  // and values of a bucket
    struct job job;      // the one that is simulated
    struct course_latest {
        uint64_t step;  // + 1; 0: none
        double least_s; // of those that are among the latest
        double most_s;  // of those that are on time, with backup workers
        double begin_mean_s, spread_mean_s;
    } latest[2];         // of the last even step, and the last odd one
    double *direct_each; // (workers, SAMPLE_DISTANCES) messages that one stands for; owned
    double *delays;      // (whole_job->workers) owned
    // With backup workers:
    struct course_delays
        *drawn;       // (whole_job->workers) of two steps, or of one in two orders; owned
    double *behind_s; // (whole_job->workers) that they begin later; owned
    double began_s;   // the step of these
};

struct course {
    const struct job *job;       // as it is simulated
    const struct job *whole_job; // as it is
    const struct costs *costs;
    const struct network *whole;   // the network as it is
    const struct network *network; // through which messages go: the same, or a reduced one
    const struct prediction_extent *extent;
    struct prediction_estimate estimate;
    struct layout layout;
    struct straggler straggler;
    enum all_reduce *algorithms;    // (buckets) chosen before a reduction: the same for all
    bool has_group;                 // all-reduces are in the memory of the one host
    bool lends;                     // values stay where they are, within a host
    double *forward_s, *backward_s; // (buckets)
    struct course_worker *workers;
    struct clocks clocks;       // steps that each worker has made, so the one that it makes
    uint32_t simulated;         // of the workers: all, or one that stands for all
    uint32_t parts;             // of each bucket, one for each server
    uint32_t shards;            // of the servers, those that are simulated: all, or one
    struct reduction reduction; // unless all are simulated
    struct course_sample sample;
    uint32_t *hosts;       // (workers + servers)
    double *message_scale; // (workers + servers) how many times what a message takes,
    double *work_scale;    // and what values in it do
    struct engine *engine;
    void *exchange;                         // of the file that has the mode's part
    double compute_s, delay_s, optimizer_s; // of all workers so far
    uint64_t begun;                         // steps of all workers
    struct staleness staleness;             // of gradients, where each is an update
    uint64_t lead_max;                      // steps of a worker before the slowest
    uint32_t round_steps;                   // from one exchange to the next
    uint64_t updates, late; // with --backup: of all servers, and gradients that were dropped
    double held_bytes;      // of messages that came too early
    bool is_out_of_memory;
    bool is_too_large; // messages take more memory than the extent allows
};

/* Floats of a bucket have their final value at the worker of this index. */
void course_final(struct course *course, uint32_t index, uint32_t bucket, uint64_t count);

/* Begins the steps of all workers, and counts those that the extent says, up to whole rounds. */
enum status course_measure(struct course *course, struct prediction *ret_prediction);

void course_begin_step(struct course *course, uint32_t index);

/* Those of the step that the worker begins. */
void course_draw_delays(struct course *course, uint32_t index);

struct course_delays course_delays_of(const struct course *course, uint32_t rank, uint64_t step);

/* The same of one that stands for others, in a job with backup workers; and the mean of all. */
struct course_delays course_backup_draw(struct course *course, uint32_t index, uint64_t step,
                                        struct course_delays *ret_mean);

/* Whether updates are made from the first gradients alone. A sample of such a job may be of workers
 * that are on time, and have no backup workers itself. */
static inline bool course_has_backup(const struct course *course)
{
    return course->whole_job->backup > 0;
}

/* The worker goes on behind the backward of a bucket that it has handed over. */
void course_go_on(struct course *course, uint32_t index, uint32_t bucket);

/* The worker's step is over, and the next one begins. */
void course_end_step(struct course *course, uint32_t index);

/* By how much the latest of the first workers is later than their mean, in the mean of some steps.
 */
double course_delays_apart_s(const struct course *course, uint32_t workers);

/* What a worker needs for its update of a bucket. */
double course_update_s(const struct course *course, uint32_t bucket);

/* Chooses algorithms and fills in the estimate, once processes have hosts. STATUS_INVALID if they
 * are not on one host, and the transport needs that; logs. */
enum status course_plan(struct course *course);

/* Whether a process reads values of another where they are. */
bool course_lends(const struct course *course, uint32_t from, uint32_t to);

enum reduction_kind course_reduction_kind(const struct course *course);

/* Whether all buckets are added up directly, if they are by one algorithm. */
bool course_is_direct(const struct course *course);

/* Makes the network and the workers of the reduced job. */
enum status course_reduce(struct course *course);

/* An exchange: what it does with a bucket that is ready, and with a packet. One that keeps the
 * worker's thread has it from ready to course_go_on, or, of the last bucket, to course_end_step,
 * and makes the worker's updates as well. */
struct course_exchange {
    bool keeps_thread;
    enum status (*create)(struct course *course);
    void (*destroy)(struct course *course);
    void (*ready)(struct course *course, uint32_t worker, uint32_t bucket);
    double (*work_s)(void *course, const struct packet *packet);
    void (*deliver)(void *course, const struct packet *packet);
    void (*wake)(struct course *course, uint32_t worker, uint32_t tag); // NULL: never asked for
};

extern const struct course_exchange course_by_messages, course_by_servers, course_in_memory;

/* The tag of a wake that the exchange asks for. */
uint32_t course_tag(const struct course *course, uint32_t tag);

#endif
