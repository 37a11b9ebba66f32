/* How the reports of a job become lines of metrics.jsonl, of which a job has a bounded number.
 * Pure.
 *
 * A worker reports every --report-every steps, for as long as the job lasts. A line takes all
 * reports since the one before it: sums are added up, so means are over all steps of the line. At
 * first each report is a line. Once a rank has as many as it began with, which the length of the
 * job decides, a line takes twice as many steps, and again whenever the job has become twice as
 * long. So the beginning is as fine as asked for, and the end is no coarser than it has to be. */
#ifndef PS_SERVER_METRICS_H
#define PS_SERVER_METRICS_H

#include "common/status.h"
#include "common/wire.h"

#include <stdbool.h>
#include <stdint.h>

// Of a job; where it has very many ranks, of a rank.
#define METRICS_LINES_MAX      20000
#define METRICS_RANK_LINES_MIN 32

/* What a rank has reported since its last line. */
struct metrics_line {
    struct wire_report report; // steps == 0: nothing
    uint64_t step, epoch;      // of the last report
    uint64_t now_ms;           // when it came
    uint64_t written_step;     // of the last line
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

/* Steps of a line that ends near `step`. */
uint64_t metrics_interval(const struct metrics *metrics, uint64_t step);

/* Adds a REPORT of an interval. True if a line is due: see metrics_take. */
bool metrics_add(struct metrics *metrics, uint32_t rank, const struct message *message,
                 uint64_t now_ms);

/* The line of a rank, which begins a new one; false if it has nothing. */
bool metrics_take(struct metrics *metrics, uint32_t rank, struct metrics_line *ret_line);

#endif
