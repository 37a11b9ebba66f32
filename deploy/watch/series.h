/* Follows the runs of a sweep or a comparison, from their folders.
 *
 * A sweep says in its folder which runs it has. Of a comparison, those are known that have begun.
 */
#ifndef DEPLOY_WATCH_SERIES_H
#define DEPLOY_WATCH_SERIES_H

#include "common/base/status.h"
#include "deploy/watch/run_reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum series_state {
    SERIES_WAITING,
    SERIES_RUNNING,
    SERIES_COMPLETED,
    SERIES_DIVERGED, // which is a result, too
    SERIES_FAILED,
    SERIES_STATE_COUNT
};

extern const char *const series_states[SERIES_STATE_COUNT];

struct series_run {
    char name[128];  // of its folder
    char label[300]; // for people
    enum series_state state;
    uint64_t step, total_steps; // of one that runs; of one that has diverged: where
    double loss, images_per_second, seconds, accuracy;
    bool has_accuracy;
};

struct series {
    const char *folder;      // borrowed
    bool has_plan;           // all of its runs are known
    bool is_running;         // a command writes to the folder
    struct series_run *runs; // (count), owned
    size_t count;
    struct run_reader current; // of the run that runs; no ranks: none does, or it has just begun
    size_t current_run;
    char current_folder[4096];
};

/* Whether a folder is that of a sweep or a comparison, and not of a run. */
bool series_is_there(const char *folder);

/* Logs. */
enum status series_open(const char *folder, struct series *ret_series);
void series_close(struct series *series);

/* Looks again. Logs. *ret_is_new: something has changed. */
enum status series_update(struct series *series, bool *ret_is_new);

/* How many runs are in a state. */
size_t series_count(const struct series *series, enum series_state state);

/* Seconds until the end of all known runs, by the mean of those that have ended and the pace of the
 * one that runs; negative: not known. */
double series_eta(const struct series *series);

#endif
