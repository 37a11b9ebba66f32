/* Reads how a job has ended from its summary.json, and writes one if the coordinator could not: it
 * was killed or never began. Call these after the coordinator has ended, as it writes there too. */
#ifndef DEPLOY_LAUNCH_LAST_SUMMARY_H
#define DEPLOY_LAUNCH_LAST_SUMMARY_H

#include "common/job/job.h"

#include <stdbool.h>

struct last_summary {
    bool is_completed;
    char reason[OPTION_ERROR_BYTES];
};

/* STATUS_IO if there is none. */
enum status last_summary_read(const char *folder, struct last_summary *ret_summary);

/* Writes it, with every key of the contract, unless there is a whole one. Unknown values are null.
 * Steps and seconds come from metrics.jsonl. Logs. */
void last_summary_write(const char *folder, const struct job *job, const char *reason);

/* Removes what a killed coordinator has left: its reserved space, and drafts. */
void last_summary_tidy(const char *folder);

#endif
