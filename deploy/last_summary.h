/* How a job has ended, by its summary.json; and that of a job whose coordinator could not write
 * one: it was killed, or never began. For when the coordinator has ended: one writes at a time. */
#ifndef DEPLOY_LAST_SUMMARY_H
#define DEPLOY_LAST_SUMMARY_H

#include "common/job.h"

#include <stdbool.h>

struct last_summary {
    bool is_completed;
    char reason[OPTION_ERROR_BYTES];
};

/* STATUS_IO if there is none. */
enum status last_summary_read(const char *folder, struct last_summary *ret_summary);

/* Writes it, with every key of the contract, unless there is a whole one; what nobody knows any
 * more is null. Steps and seconds come from the metrics that were written. Logs. */
void last_summary_write(const char *folder, const struct job *job, const char *reason);

/* Removes what a coordinator that was killed has left: room that it had reserved, and drafts. */
void last_summary_tidy(const char *folder);

#endif
