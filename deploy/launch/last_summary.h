/* Reads from summary.json how a job ended, and writes one if the coordinator could not because it
 * was killed or never began. Call these after the coordinator has ended, because it writes there,
 * too. */
#ifndef DEPLOY_LAUNCH_LAST_SUMMARY_H
#define DEPLOY_LAUNCH_LAST_SUMMARY_H

#include "common/job/job.h"

#include <stdbool.h>
#include <stdint.h>

struct last_summary {
    bool is_completed;
    char reason[OPTION_ERROR_BYTES];

    // The member that the reason is about, as details.json has it.
    bool has_member, is_worker;
    uint32_t index; // of the worker, or of the server's process
};

/* Returns STATUS_IO if there is no summary. */
enum status last_summary_read(const char *folder, struct last_summary *ret_summary);

/* Whether the worker that is called by this number took part in the job until its end. */
bool last_summary_has_worker(const char *folder, uint32_t number);

/* Writes a summary with every key of the contract, unless there is a whole one. Unknown values are
 * null. Steps and seconds come from metrics.jsonl. Logs. */
void last_summary_write(const char *folder, const struct job *job, const char *reason);

/* The job's results stay, but it has failed after all. Logs. */
void last_summary_fail(const char *folder, const char *reason);

/* Sets aside room for a summary, on a disk that may be full by the time that the job ends. The
 * coordinator takes it over if it comes so far. Before that is started. Logs. */
enum status last_summary_reserve(const char *folder);

/* Removes the room that was set aside, and drafts that a killed coordinator left behind. */
void last_summary_tidy(const char *folder);

/* Which file is the folder's summary: another number once it was written anew; 0: there is none. */
uint64_t last_summary_stamp(const char *folder);

#endif
