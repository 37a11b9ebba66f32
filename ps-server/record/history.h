/* What a job has gone through in its run folder before the process that now coordinates it.
 *
 * restarts.jsonl has a line each time that the job goes on: as a whole, with a new coordinator, or
 * with other processes below the same one; and when a worker is lost while members come back, and
 * another one is started in its place. So a coordinator that is killed takes none of that with it.
 * Each line has the totals so far; docs/RUN-FOLDER.md has the keys. */
#ifndef PS_SERVER_RECORD_HISTORY_H
#define PS_SERVER_RECORD_HISTORY_H

#include "common/base/status.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>

#define HISTORY_FILE         "restarts.jsonl"
#define HISTORY_REASON_BYTES 512

#define HISTORY_COUNTED_MAX 64

/* How the job comes to go on, or that a worker was lost, which a coordinator notes that may be lost
 * itself before the job goes on: the launcher tells that only once. */
struct history_entry {
    uint32_t lost_launch;              // of such a worker (launch_number.h); 0: the job goes on
    bool is_whole;                     // with a new coordinator
    char reason[HISTORY_REASON_BYTES]; // why it had to
    uint64_t begin_step;               // steps that it goes on from
    uint32_t restarts, workers_lost;   // in all, with this one
    // Filled in: such workers since the job has gone on the last time, who are in workers_lost.
    uint32_t counted[HISTORY_COUNTED_MAX], counted_count;
};

/* Whether somebody has begun a run in the folder, and whether its summary says that it was
 * completed. */
bool history_has_run(const char *folder);
bool history_is_complete(const char *folder);

/* Fills in what follows from the folder: the totals, and a reason where there is none. `restarts`
 * has those that the checkpoint knows of. */
void history_complete_entry(const char *folder, struct history_entry *entry);

/* Appends an entry. STATUS_IO and errno. */
enum status history_add(const char *folder, const struct history_entry *entry);

/* The times that the job was started again as a whole, for details.json. The caller owns it. */
json_t *history_json(const char *folder);

#endif
