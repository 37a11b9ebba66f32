/* The slices of a step that this process computes: one for each rank that it carries
 * (common/job/carriers.h), usually a single one.
 *
 * A slice has a rank's own batches, its part of the test set, and its own gradients and statistics
 * of batch normalisation, so that what it computes does not depend on who carries it. All slices
 * go one after the other through the model, whose gradients and statistics are those of the one
 * that is computed. */
#ifndef WORKER_TRAIN_SLICES_H
#define WORKER_TRAIN_SLICES_H

#include "common/base/status.h"
#include "common/job/carriers.h"
#include "worker/data/batches/batcher.h"
#include "worker/disturb/straggling.h"
#include "worker/model/model.h"
#include "worker/train/evaluator.h"
#include "worker/train/job_model.h"

#include <stdint.h>

/* What a rank alone has of its reports. */
struct slice_sums {
    uint64_t steps, images;
    double loss_sum;      // over images
    double staleness_sum; // over steps, as struct wire_report has it
    double images_dropped;
};

struct slice {
    uint32_t rank;
    bool is_left_out;            // of the steps: it still evaluates its part
    struct batcher *batcher;     // owned
    struct evaluator *evaluator; // owned
    struct straggling straggling;
    float *statistics; // (statistic_count), owned, while others are in the model; NULL: the
                       // model's are its own, as there is one slice
    double loss_sum;   // of the step
    struct slice_sums interval, period;
    struct slice_sums next_period; // what was made of it before the period before was closed
    uint64_t made; // steps of the job, by this process: where ranks take turns, maybe one more than
                   // those that are whole

    // Where workers are unsynchronised: images since the last push, which may come too late.
    uint32_t pushed_images, pushed_warm_images;

    // The last push whose fate was noted, and the share of it that was dropped.
    uint32_t noted_images, noted_warm_images;
    double noted_share;
};

struct slices {
    struct slice *list; // (count), owned
    uint32_t count;
    struct model *model;          // borrowed
    struct job_sized_model sized; // its model is owned
};

/* What they are made of; borrowed. */
struct slices_sources {
    const struct job *job;
    struct rank_block ranks;
    const struct dataset *train, *test;
    uint64_t train_samples, test_samples; // the first so many of each
    struct model *model;
    struct device *device;
    bool takes_bytes;        // the device makes pixels
    struct loaders *loaders; // see struct batcher_options
    struct trace *trace;     // for a timeline; NULL: none
};

/* How training images are changed. The job's options were checked. */
struct augmentation slices_augmentation(const struct job *job);

/* Zeroed is fine for finish, also after a failure. */
enum status slices_init(struct slices *slices, const struct slices_sources *sources);
void slices_finish(struct slices *slices);

/* As batcher_seek, for training. */
enum status slices_seek(struct slices *slices, uint64_t epoch, uint64_t step);

/* The model has this slice's statistics from here on; and: what has become of them is kept. */
enum status slice_enter(const struct slices *slices, const struct slice *slice);
enum status slice_leave(const struct slices *slices, const struct slice *slice);

/* Where a slice's statistics are between steps, after model_fetch_statistics. (statistic_count) */
float *slice_statistics(const struct slices *slices, const struct slice *slice);

/* A step of the job was made: adds what is the slice's own to its sums. is_ahead: the step belongs
 * to the period behind the one that is open. */
void slice_count_step(struct slice *slice, uint64_t step, uint32_t images, bool is_ahead);

/* What was pushed last was dropped, in so large a share; and how old it was. */
void slice_note_fate(struct slice *slice, double late_share, double staleness);

/* What was noted of the last push was not known yet: so large a share of it was dropped. Returns by
 * how many of its images after the warm-up steps the number of those that were dropped changes. */
double slice_amend_fate(struct slice *slice, double late_share);

/* The open period is over: what was made of the next one is its beginning. */
void slice_close_period(struct slice *slice);

#endif
