/* How the reports of a job become lines of metrics.jsonl, whose number is bounded. Pure.
 *
 * A worker reports every --report-every steps, for as long as the job lasts. A line adds up all
 * reports since the line before it, so its means are over all of its steps. At first each report is
 * a line. After the first lines of a rank, whose number depends on the length of the job, a line
 * covers twice as many steps, and again whenever the number of steps has doubled. So the beginning
 * is as fine as asked for, and the end no coarser than necessary. */
#ifndef PS_SERVER_RECORD_METRICS_H
#define PS_SERVER_RECORD_METRICS_H

#include "common/base/status.h"
#include "common/channel/wire.h"
#include "ps-server/results/results.h"

#include <stdbool.h>
#include <stdint.h>

// The most lines of a job; where it has very many ranks, of each rank.
#define METRICS_LINES_MAX      20000
#define METRICS_RANK_LINES_MIN 32

/* What a rank has reported since its last line. */
struct metrics_line {
    struct wire_report report; // steps == 0: nothing
    uint64_t step, epoch;      // of the last report
    double seconds;            // of the job, when it came
    uint64_t written_step;     // of the last line
    bool is_restored;          // partly of sums that were kept: see metrics_rest
};

struct metrics {
    struct metrics_line *lines; // (worker_count), owned
    uint32_t worker_count;
    uint64_t report_every;
    uint64_t first_lines; // of a rank, before a line takes more than one report
};

/* For a job of so many steps; zeroed is empty. */
enum status metrics_init(struct metrics *metrics, uint32_t worker_count, uint64_t report_every,
                         uint64_t total_steps);
void metrics_finish(struct metrics *metrics);

/* The job goes on at an earlier step: drops what no line has. */
void metrics_forget(struct metrics *metrics);

/* How many steps a line that ends near `step` covers. */
uint64_t metrics_interval(const struct metrics *metrics, uint64_t step);

/* Adds a REPORT of an interval. True if a line is due: see metrics_take. */
bool metrics_add(struct metrics *metrics, uint32_t rank, const struct message *message,
                 double seconds);

/* Adds what the rank has reported before, if anything, so that both are one report. */
void metrics_prepend(struct wire_report *report, const struct wire_report *before);

/* What a copy of a job has of a rank, in sum. It does not have rates, nor how stale gradients were.
 */
struct wire_report metrics_copied(const struct results_rank *rank);

/* What a sum of reports has besides `steps` of its steps, which lines have. `loss_steps`: the sum
 * of the losses of these steps, each the mean of its images. Of all other sums the rest has its
 * share by steps, and `is_repeated` stays. False: there is no rest. */
bool metrics_rest(const struct wire_report *report, uint64_t steps, double loss_steps,
                  struct wire_report *ret_rest);

/* Takes the line of a rank and begins a new one; false if it has no reports. */
bool metrics_take(struct metrics *metrics, uint32_t rank, struct metrics_line *ret_line);

/* Puts the line back that was taken last: it could not be written, and what comes is added to it.
 */
void metrics_put_back(struct metrics *metrics, uint32_t rank, const struct metrics_line *line);

#endif
