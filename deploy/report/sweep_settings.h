/* What a sweep found, setting by setting: means over seeds, with their intervals.
 *
 * A setting is one combination of the axes. Settings that differ in what makes staleness alone
 * (--mode, --order, --workers, ...) are a series: in it, the setting with the least staleness is
 * what the others are compared with. */
#ifndef DEPLOY_REPORT_SWEEP_SETTINGS_H
#define DEPLOY_REPORT_SWEEP_SETTINGS_H

#include "common/base/status.h"
#include "deploy/report/run_folder.h"
#include "deploy/report/run_strokes.h"
#include "deploy/report/statistics.h"
#include "deploy/report/straggler_find.h"
#include "deploy/sweep/sweep_plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* summaries[i] is that of run i of the plan, or NULL if it has none (not run yet, or failed before
 * it had one). Runs that failed or diverged are counted, and left out of the means. */
struct sweep_results {
    const struct sweep_plan *plan;
    struct run_folder *const *summaries; // (plan->count)
};

enum sweep_measure {
    MEASURE_ACCURACY, // percent
    MEASURE_TEST_LOSS,
    MEASURE_TRAIN_LOSS,
    MEASURE_STALENESS,
    MEASURE_LATE,           // gradients that were dropped
    MEASURE_TARGET_STEPS,   // only of runs that have reached the target
    MEASURE_TARGET_SECONDS, // the same
    MEASURE_RATE,           // images per second
    MEASURE_SECONDS,
    MEASURE_COUNT
};

/* One evaluation of a setting. */
struct sweep_point {
    double step;
    struct statistics seconds, train_loss, accuracy; // percent; count 0: not evaluated
};

#define SWEEP_STALENESS_BINS 1024 // as a summary has at most

struct sweep_setting {
    const char *label; // of the plan
    struct mode mode;
    uint32_t workers, global_batch, gradients_per_update;
    char series[256]; // the label without what makes staleness; "" if nothing is left
    char axis[256];   // the rest of it
    size_t series_index;
    size_t mode_rank, place; // the order of its mode in every report; its place in the plan
    struct run_stroke stroke;
    size_t planned, completed, diverged, failed;
    size_t part_tested;                      // of the completed: see run_folder_tests_part
    double diverged_steps[SWEEP_REPEAT_MAX]; // (diverged) the step of each
    size_t reached;                          // runs that have reached the target
    bool has_target;
    struct statistics measures[MEASURE_COUNT];
    double rates[SWEEP_REPEAT_MAX]; // (measures[MEASURE_RATE].count) of the runs
    struct statistics relative_steps, relative_seconds; // to the series' first; count 0: unknown
    struct sweep_point *points;                         // (point_count), owned
    size_t point_count;
    double shares[SWEEP_STALENESS_BINS]; // of gradients that are 0, 1, ... updates old
    size_t capped_bin;                   // the bin that also counts all older ones; 0: none
    bool has_straggler;
    struct straggler_found straggler; // of the first run
};

struct sweep_settings {
    struct sweep_setting *list; // owned; settings of a series in the order of their staleness
    size_t count;
    size_t series_count;
    size_t *rows; // (count), owned; by mode, then as in the list: rows of tables
};

/* What a table calls a measure, how many digits it shows. */
struct sweep_measure_row {
    const char *heading, *key; // in summary.json
    double factor;
    int digits;
};
extern const struct sweep_measure_row sweep_measures[MEASURE_COUNT];

enum status sweep_settings_of(const struct sweep_results *results,
                              struct sweep_settings *ret_settings);
void sweep_settings_free(struct sweep_settings *settings);

/* Whether a measure is of interest: one of the settings has a value that is not 0. */
bool sweep_settings_have(const struct sweep_settings *settings, enum sweep_measure measure);

/* Of a / b, to first order in their errors. */
struct statistics sweep_ratio(const struct statistics *a, const struct statistics *b);

#endif
