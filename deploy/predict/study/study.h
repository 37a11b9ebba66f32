/* Predictions of a job in several designs with several numbers of workers, as things are and with
 * changes, and what limits each. */
#ifndef DEPLOY_PREDICT_STUDY_STUDY_H
#define DEPLOY_PREDICT_STUDY_STUDY_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "deploy/predict/basis/basis.h"
#include "deploy/predict/basis/cost_batches.h"
#include "deploy/predict/basis/costs.h"
#include "deploy/predict/basis/network.h"
#include "deploy/predict/basis/what_if.h"
#include "deploy/predict/convergence/convergence.h"
#include "deploy/predict/prediction.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define STUDY_POINTS_MAX  64    // as things are
#define STUDY_WORKERS_MAX 16384 // more than a job may have
#define STUDY_WARM_STEPS  3     // of each worker, until the course is a steady one
#define STUDY_LONG_S      5     // of a point: it is said that one takes longer

struct study_design {
    struct mode mode;
    uint32_t servers; // 0 in modes without any
};

struct study_point {
    struct study_design design;
    uint32_t workers;
    uint32_t servers;              // with the changes
    const struct what_if *what_if; // NULL: as things are; borrowed
    struct prediction made;
    double speed_up;      // images/s, against one worker that exchanges nothing
    double efficiency;    // speed-up / workers
    const char *limiter;  // the cost without which a step would be shortest; "nothing"
    double limiter_gain;  // by so much of the step
    double limiter_error; // of both steps behind that: by this share they may be off
    bool has_interval;    // the files say how sure costs are
    double images_per_s_low, images_per_s_high;
    double *link_bytes;   // (network.link_count) over each link in a step, NAN where that is not
                          // known; owned. NULL: not asked for
    double start_s;       // of the job, until its first step; 0: the costs do not say
    struct target target; // zeros without a table of convergence
    bool is_too_large;    // needs more memory than it may have: nothing but the job is known
};

struct study {
    const char *costs_file, *network_file; // borrowed, as the others
    const struct costs *costs;
    const struct cost_batches *batches; // with a global batch: those of the file
    const struct network *network;
    const struct convergence *convergence; // NULL: none
    struct job job; // without mode, workers and servers; may have a global batch (study_batches.h)
    uint32_t counted;       // steps of each worker
    bool is_approximate;    // jobs are made in small also where that may be off by more than 1 %
    double memory_max;      // of a point, bytes; 0: PREDICTION_MEMORY_MAX
    bool is_quiet;          // does not log that a point takes more
    uint32_t change_sample; // workers that stand for all where changes of what takes long are
                            // looked at; 0: by the kind of job
    uint32_t threads;       // that make points; 0: one for each core. Changes no figure
    struct study_design designs[STUDY_POINTS_MAX];
    uint32_t workers[STUDY_POINTS_MAX]; // ascending
    size_t design_count, worker_count;
    struct what_if what_ifs[WHAT_IFS_MAX];
    size_t what_if_count;
    // Numbers of workers crossed with designs; then the same for each change.
    struct study_point points[STUDY_POINTS_MAX * (1 + WHAT_IFS_MAX)];
    size_t point_count; // as things are
};

/* "ring", "ps-sync with 4 servers". By value, for the arguments of a printf. */
struct study_design_text {
    char text[MODE_TEXT_BYTES + 32];
};
struct study_design_text study_design_text(struct study_design design);

/* Lists the points of designs, numbers of workers and changes. */
void study_cross(struct study *study);

#define STUDY_TOO_LARGE "takes too much memory"

/* Fills in all points. Those that are too large are STATUS_NO_MEMORY only if all are. Logs, also
 * that one takes long. study_finish frees what they own. */
enum status study_make(struct study *study);

/* Whether no point is too large. */
bool study_is_whole(const struct study *study);

void study_finish(struct study *study);

/* Fills in what a point has of a basis that has the job and all changes. Logs. */
enum status study_measure(const struct study *study, const struct basis *basis,
                          struct study_point *point);

/* Before a point is predicted with other costs, to see what these change. ret_extent: as the point
 * was made, or, if that takes long, in fewer steps and in small. ret_base: the point itself, in
 * that extent. Logs. */
enum status study_begin_changes(const struct study *study, const struct basis *basis,
                                const struct prediction *made, struct prediction_extent *ret_extent,
                                struct prediction *ret_base);

/* Fills in the interval of a point that has been predicted. Logs. */
enum status study_find_interval(const struct study *study, const struct basis *basis,
                                struct study_point *point);

/* Whether files say how sure their values are. */
bool study_knows_errors(const struct costs *costs, const struct network *network);

/* Whether nothing but the spreads of layers says how sure computing is. */
bool study_uses_layer_spreads(const struct costs *costs);

/* The basis of a point, with its changes. Logs. */
enum status study_make_basis(const struct study *study, const struct study_point *point,
                             struct basis **ret_basis);

/* How far the study's predictions go. */
struct prediction_extent study_extent(const struct study *study);

/* Predicts a point's job without looking for the limiter. Logs. */
enum status study_predict(const struct study *study, const struct basis *basis,
                          struct prediction *ret_prediction);

/* What training takes to its target by the study's table of convergence, of which there has to be
 * one. */
void study_find_target(const struct study *study, struct study_design design, uint32_t workers,
                       const struct prediction *made, struct target *ret_target);

/* A table of the points as things are, and what the costs and the network are. */
void study_print(const struct study *study, FILE *stream);

/* A table of the changes beside that. */
void study_print_what_ifs(const struct study *study, FILE *stream);

/* What the model leaves out. */
void study_print_left_out(const struct study *study, FILE *stream);

/* The same values; names of fields end with their unit. NULL: no memory. The caller owns it. */
json_t *study_json(const struct study *study);

/* Of the points of a change, or, for NULL, as things are. */
json_t *study_points_json(const struct study *study, const struct what_if *what_if);

#endif
