/* What the parts of the trainer share: trainer_create.c, trainer.c (run), training_step.c (one
 * step), round.c (its exchange) and after_step.c (what follows it). */
#ifndef WORKER_TRAIN_TRAINER_STATE_H
#define WORKER_TRAIN_TRAINER_STATE_H

#include "common/base/clock.h"
#include "common/channel/sharing.h"
#include "common/job/phases.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/schedule.h"
#include "common/vector/digest.h"
#include "worker/disturb/faulting.h"
#include "worker/exchange/exchange_device.h"
#include "worker/model/model.h"
#include "worker/train/bucket_names.h"
#include "worker/train/layer_times.h"
#include "worker/train/slices.h"
#include "worker/train/step_clock.h"
#include "worker/train/stream_tapes.h"
#include "worker/train/trainer.h"
#include "worker/train/trainer_checkpoint.h"
#include "worker/train/trial.h"

#include <stdbool.h>
#include <stdint.h>

struct trainer {
    const struct job *job;
    struct rank_block ranks; // that this process carries
    struct trace *trace;     // borrowed; NULL: no timeline
    struct model *model;
    struct bucket_names names; // of its buckets
    struct slices slices;      // of each rank
    struct loaders *loaders;   // that read images, borrowed; NULL: each source has one
    struct faulting faulting;
    struct optimizer *optimizer; // NULL where servers run it throughout
    bool device_updates;         // the model's device makes its updates, where workers make any
    bool device_sums;            // in this phase devices sum the gradients, which stay there
    struct exchange_device device_of_sums; // that may do so
    struct wire_nccl nccl;                 // how others reach the device by NCCL, if that sums

    // Where servers keep parameters on a GPU, too: the device's vectors, and its memory.
    struct program_exposed exposed;
    float *exposed_gradients[JOB_GPU_SERVER_WORKERS_MAX]; // of each slice; of the last: grads
    struct region exposed_region;
    struct sharing_device device_memory; // vectors NULL: it is not so
    struct link *link;                   // borrowed
    struct exchange *exchange;           // of the link, for the phase; borrowed
    double *statistics; // (ranks.count, statistic_count) to be averaged; NULL: there are none
    struct schedule schedule;
    uint64_t steps_per_epoch, step_count, warmup_steps;
    uint64_t train_samples, test_samples, data_digest;
    struct pixels_source source; // of bytes
    bool takes_bytes;            // the device makes pixels of them
    char digest[DIGEST_TEXT_BYTES];
    char device[32];

    struct phases phases;
    const struct phase *phase; // that is; one of phases
    uint64_t marks_closed;     // of the phase; where workers are unsynchronised
    uint64_t periods_closed;   // periods of the job that were reported
    bool is_enough;            // the target accuracy was reached
    struct trial trial;        // of the phase
    struct trainer_checkpoint checkpoint;

    // Local SGD (--sync-every): NULL otherwise.
    float *base;                // (value_count) parameters at the beginning of the round
    struct optimizer *averager; // applies the mean change, where the exchange delivers that
    uint64_t round;             // of the phase: a step of the exchange
    uint32_t round_steps;       // that were made in it

    // Where ranks take turns (see exchange.h): the slice that comes next in the step.
    uint32_t turn;
    uint64_t turns_ns; // that the turns of the step took so far

    uint64_t step;   // that was made last; with those before it
    bool is_pending; // parameters of that step may still be on their way

    struct step_clock clock; // of the step
    struct layer_times layers;
    struct stream_tapes streams;

    // What has not been reported yet: of the interval, and of the period.
    struct wire_report interval, period;
    uint64_t warm_images, warm_ns;
    double warm_dropped; // of those images

    // Where workers are unsynchronised: the rate that the last push was applied with (0: not
    // known).
    double applied_rate;
    double staleness_max; // of a gradient so far, in updates
    uint64_t sent_before, received_before;
};

/* Where the time of one step went, and what went on beside it. That is counted when it is over, so
 * the end of it may count in the step after. */
struct step_times {
    uint64_t input_ns, compute_ns, exchange_ns;
    uint64_t copy_ns; // of parameters and gradients, between host and device
    uint64_t wire_ns; // from the first bucket posted to the last one complete
};

/* The slices that are computed at once: all of a step, or the one whose turn it is. */
struct rank_block trainer_turn(const struct trainer *trainer);

/* One step of the job, or a turn of one: batch, forward and backward for each slice; exchange. */
enum status trainer_step(struct trainer *trainer, uint64_t step, struct step_times *ret_times);

/* For servers that keep parameters on a GPU, and take gradients there: sends the device what the
 * host has, which from then on is the older. */
enum status trainer_expose(struct trainer *trainer);

/* Of a slice before the last one, all of whose gradients are there: the next may overwrite them. */
enum status trainer_keep_gradients(struct trainer *trainer, uint32_t index);

/* What comes before the first step of a phase, where workers are unsynchronised: others may have
 * passed marks before this one had its first parameters. `step` counts those of the job that were
 * made. */
enum status trainer_before_steps(struct trainer *trainer, struct link *link, uint64_t step);

/* Counts a step, or the turn of one, that trainer_step has made. */
void trainer_count_step(struct trainer *trainer, uint64_t step, const struct step_times *times,
                        uint64_t total_ns);

/* Reports, evaluates and closes what ends with it. `step` counts those that are whole. */
enum status trainer_after_step(struct trainer *trainer, struct link *link, uint64_t step);

/* What a rank has of the period that is open after `steps` steps of its own. */
struct slice_sums trainer_open_period(const struct trainer *trainer, const struct slice *slice,
                                      uint64_t steps);

/* Whether there is something to report; and: reports the interval, at `step`. */
bool trainer_has_interval(const struct trainer *trainer);
void trainer_report_interval(struct trainer *trainer, struct link *link, uint64_t step);

/* What a rank reports: its own images, and the times of the process that carries it. */
struct wire_report trainer_report_of(const struct wire_report *process,
                                     const struct slice_sums *own);

/* No step of the phase is left to this worker. */
bool trainer_phase_is_over(const struct trainer *trainer, uint64_t step);

#endif
