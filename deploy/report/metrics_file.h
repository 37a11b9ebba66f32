/* The lines of a run's metrics.jsonl. */
#ifndef DEPLOY_REPORT_METRICS_FILE_H
#define DEPLOY_REPORT_METRICS_FILE_H

#include "deploy/report/run_folder.h"
#include "deploy/system/damaged_lines.h"

#include <jansson.h>

#include <stdint.h>
#include <stdio.h>

struct metrics_file {
    char path[RUN_FOLDER_PATH_MAX + 32];
    FILE *file;    // owned; NULL: there is none, so no line
    uint64_t line; // that was read last, from 1
    struct damaged_lines damaged;
};

void metrics_file_open(const struct run_folder *run, struct metrics_file *ret_metrics);
void metrics_file_close(struct metrics_file *metrics);

/* The next line that is whole, which the caller owns; NULL behind the last one. */
json_t *metrics_file_next(struct metrics_file *metrics);

#endif
