/* summary.json of a job whose coordinator could not write one: it was killed, or never began. */
#ifndef DEPLOY_LAST_SUMMARY_H
#define DEPLOY_LAST_SUMMARY_H

#include "common/job.h"

/* Writes it, with every key of the contract, unless there is one; what nobody knows any more is
 * null. Steps and seconds come from the metrics that were written. Removes the room that the
 * coordinator had reserved. Logs. */
void last_summary_write(const char *folder, const struct job *job, const char *reason);

#endif
