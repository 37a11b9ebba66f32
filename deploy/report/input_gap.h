/* How far real input falls behind synthetic: of runs that differ in nothing but their data.
 *
 * Each run on real data is paired with the run of the same job and seed on noise in its shape
 * (synthetic:DATA), which has input at the cost of a copy. The gap of a pair is the share of the
 * synthetic run's images per second that the real one does not reach. Pairs that differ in the seed
 * alone are the rounds of one gap. */
#ifndef DEPLOY_REPORT_INPUT_GAP_H
#define DEPLOY_REPORT_INPUT_GAP_H

#include "common/base/status.h"
#include "deploy/report/run_folder.h"
#include "deploy/report/statistics.h"

#include <stddef.h>
#include <stdio.h>

#define INPUT_GAP_ROUNDS_MAX 100 // of which a gap keeps pairs
#define INPUT_GAP_COLUMNS    5
#define INPUT_GAP_CELL_BYTES 64

struct input_gap_pair {
    const struct run_folder *real, *synthetic; // borrowed
    double real_rate, synthetic_rate;          // images per second, above 0
    double percent;                            // below 0: the real run was faster
};

struct input_gap {
    struct input_gap_pair pairs[INPUT_GAP_ROUNDS_MAX];
    size_t count;                                         // at least 1
    struct statistics percent, real_rate, synthetic_rate; // over the pairs
};

struct input_gaps {
    struct input_gap *list; // owned; in the order of their first runs
    size_t count;
};

/* Of two rates, both above 0. */
double input_gap_percent(double real_rate, double synthetic_rate);

/* Completed runs alone count. The runs are borrowed, and must outlive the gaps. */
enum status input_gaps_of(const struct run_folder *runs, size_t count, struct input_gaps *ret_gaps);
void input_gaps_finish(struct input_gaps *gaps);

/* A row of the table, and what stands above it. */
extern const char *const input_gap_headings[INPUT_GAP_COLUMNS];
void input_gap_format(const struct input_gap *gap,
                      char ret_cells[INPUT_GAP_COLUMNS][INPUT_GAP_CELL_BYTES]);

/* A table with a row for each gap, as text or for Markdown; nothing if there is none. */
void input_gaps_print(FILE *stream, const struct input_gaps *gaps);
void input_gaps_print_markdown(FILE *stream, const struct input_gaps *gaps);

/* FOLDER/input_gap.json: a list with an object for each gap; no file if there is none. Logs. */
enum status input_gaps_write(const struct input_gaps *gaps, const char *folder);

/* Both of the gaps of these runs, with the text on standard output. */
enum status input_gaps_report(const struct run_folder *runs, size_t count, const char *folder);

#endif
