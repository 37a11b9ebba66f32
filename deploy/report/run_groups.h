/* The settings of a report: runs that differ in the seed alone belong to one. */
#ifndef DEPLOY_REPORT_RUN_GROUPS_H
#define DEPLOY_REPORT_RUN_GROUPS_H

#include "common/base/status.h"
#include "deploy/report/run_folder.h"
#include "deploy/report/run_strokes.h"
#include "deploy/report/statistics.h"
#include "deploy/report/sweep_settings.h"
#include "deploy/sweep/run_words.h"

#include <stdbool.h>
#include <stddef.h>

#define RUN_GROUP_RUNS_MAX SWEEP_REPEAT_MAX

struct run_group {
    char label[RUN_WORDS_BYTES];  // in words: what tells it from the others
    char design[RUN_WORDS_BYTES]; // the same without the number of workers
    char mode[48];                // as in the summary
    unsigned workers;             // 0: not known
    size_t mode_rank;             // the order of modes in every table, legend and plot
    struct run_stroke stroke;
    const struct run_folder *runs[RUN_GROUP_RUNS_MAX]; // (count), borrowed
    size_t count, planned, completed, diverged, failed;
    size_t part_tested; // of the completed: see run_folder_tests_part

    // Over the completed runs; count 0 where no run has the value.
    struct statistics rate;        // images per second, warm-up excluded
    struct statistics steady_rate; // the same without the first epoch, where there are several
    struct statistics accuracy;    // percent
    struct statistics best;        // accuracy of any evaluation, percent
    struct statistics compute_ms, exchange_ms, input_ms;
    struct statistics input_wait;       // percent: see run_folder_input_wait
    struct statistics loaders;          // threads of a process that read images: the most
    struct statistics staleness;        // mean
    struct statistics predicted;        // images per second (compare --predict)
    struct statistics prediction_error; // percent
};

struct run_groups {
    struct run_group *list; // owned; by mode, then as given
    size_t count;
    size_t run_count;
    bool has_mode_colours; // each mode has the colour that it has in every such report
};

/* Of run folders: those with the same options and different seeds are one group. The runs are
 * borrowed, and must outlive the groups. */
enum status run_groups_of(const struct run_folder *runs, size_t count,
                          struct run_groups *ret_groups);

/* Of a sweep: the groups of its plan, with the runs that are there. */
enum status run_groups_of_sweep(const struct sweep_results *results, struct run_groups *ret_groups);

void run_groups_finish(struct run_groups *groups);

/* All runs in a row, with the labels of their groups, for writers that set one beside another. They
 * are copies of structs, which own nothing; the caller frees the array. NULL: no memory. */
struct run_folder *run_groups_copy_runs(const struct run_groups *groups, size_t *ret_count);

#endif
