/* Reads a run folder as it grows into a live state: job.json, the lines of metrics.jsonl, and at
 * the end details.json and summary.json. Evaluations are known at the end only. What does not
 * belong in a file is left out. */
#ifndef DEPLOY_WATCH_RUN_READER_H
#define DEPLOY_WATCH_RUN_READER_H

#include "common/base/status.h"
#include "common/live/live_state.h"
#include "deploy/system/damaged_lines.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct run_reader {
    const char *folder;      // borrowed
    struct live_state state; // its ranks are NULL before there is a job.json
    ino_t metrics_file;      // which file the lines are from: it is replaced when a job goes on
    off_t read_to;           // of it
    uint64_t line;           // that ends there
    struct damaged_lines damaged;
};

/* STATUS_INVALID, which is logged, if that is no folder of a run. */
enum status run_reader_open(const char *folder, struct run_reader *ret_reader);
void run_reader_close(struct run_reader *reader); // logs what was damaged

/* Reads what is new. Logs. *ret_is_new: the state has changed. */
enum status run_reader_update(struct run_reader *reader, bool *ret_is_new);

#endif
