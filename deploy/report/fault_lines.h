/* How fast a run was over time, from metrics.jsonl: before, during and after faults. */
#ifndef DEPLOY_REPORT_FAULT_LINES_H
#define DEPLOY_REPORT_FAULT_LINES_H

#include "deploy/report/run_folder.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fault_line {
    uint64_t step; // steps that were made
    double seconds;
};

/* Of the first rank that the file has, in its order: steps that were made again come twice. */
struct fault_lines {
    struct fault_line *list; // (count), owned
    size_t count;
};

/* Steps count from 1. */
struct fault_window {
    uint64_t first, last;
};

/* Steps a second; 0: not known. */
struct fault_rates {
    double before, during, after;
};

/* False if there are none. Until fault_lines_finish. */
bool fault_lines_read(const struct run_folder *run, struct fault_lines *ret_lines);
void fault_lines_finish(struct fault_lines *lines);

/* The first line ends the warm-up. */
struct fault_rates fault_lines_rates(const struct fault_lines *lines, struct fault_window window);

/* Steps a second from the line before to this one; 0 where steps are made again. */
double fault_lines_rate(const struct fault_lines *lines, size_t index);

#endif
