/* Predicts how a job goes: its workers' steps and its exchanges, over costs and a network. */
#ifndef DEPLOY_PREDICT_PREDICTION_H
#define DEPLOY_PREDICT_PREDICTION_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "deploy/predict/basis/costs.h"
#include "deploy/predict/basis/network.h"
#include "ps-server/results/staleness.h"

struct prediction {
    double images_per_s; // 0 if steps take no time
    double step_s;
    double compute_s, delay_s, optimizer_s, wait_s; // of a worker's step, in the mean
    double server_busy;                             // share of time, of the busiest server's thread
    double server_wait_s;                           // of a push for that thread, in the mean
    uint32_t busiest_link;                          // NETWORK_NONE: no link with a limit is used
    double busiest_bytes, busiest_use;              // per step, and the share of its bandwidth
    bool is_reduced;                                // made in small (reduction.h)
    double reduction_error;                         // by this share of a step it may be off then
    uint32_t simulated;                             // workers: all, or one that stands for all
    uint32_t simulated_servers;                     // the same
    struct staleness staleness;                     // of gradients on every server; 0 in ring
    uint64_t lead_max; // the most steps that a worker computed before the slowest
    double late;       // share of gradients that came too late for their update, with --backup
};

struct prediction_extent {
    uint32_t warm, counted; // steps of each worker: that are not counted, and that are
    double work_max;        // of a step of all workers; with more a job is made in small
    double error_max;       // unless that may be off by more than this share of a step
    uint32_t sample_min;    // workers that may stand for all; 0: by the kind of job
    bool is_compared;       // with another that is made likewise: fewer workers may stand for all
    double *link_bytes;     // (network.link_count) gets what goes over each link in a step, NAN
                            // where nobody who was simulated uses it; borrowed. NULL: not wanted
    double step_s_max;      // who asks has no use for longer steps: step_s, the only figure then,
                            // is more than this, and less than what they take. 0: any
    double memory_max;      // bytes that messages on their way may take; 0: PREDICTION_MEMORY_MAX
    bool is_quiet;          // does not log that they take more
};

/* About one nanosecond for each is what a step takes. */
#define PREDICTION_WORK_MAX 1e7

#define PREDICTION_MEMORY_MAX (4.0 * 1024 * 1024 * 1024)

/* Of what is made in small, and of what may be if that is asked for. */
#define PREDICTION_ERROR_MAX       0.01
#define PREDICTION_ERROR_MAX_ASKED 1.0

/* How long a prediction takes, and why. */
struct prediction_estimate {
    double work;            // of a step of all workers
    double reduction_error; // of what is made in small; INFINITY: this job cannot be
    bool is_reduced;
    uint32_t sample;        // workers that stand for all (sample.h); 0: not so
    uint32_t sample_backup; // backup workers among them
    double reduced_work;    // of what is made in small
    const char *obstacle;   // to that, where no bound is known; NULL: none that has a name. Static
};

/* Before prediction_make, which does as it says. Logs. */
enum status prediction_estimate(const struct job *job, const struct costs *costs,
                                const struct network *network,
                                const struct prediction_extent *extent,
                                struct prediction_estimate *ret_estimate);

/* Of a job in any mode but local. STATUS_NO_MEMORY, also if it takes more than it may. Logs. */
enum status prediction_make(const struct job *job, const struct costs *costs,
                            const struct network *network, const struct prediction_extent *extent,
                            struct prediction *ret_prediction);

#endif
