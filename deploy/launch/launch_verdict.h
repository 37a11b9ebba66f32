/* Finds out how a job ended, and says it. For files of this folder. */
#ifndef DEPLOY_LAUNCH_LAUNCH_VERDICT_H
#define DEPLOY_LAUNCH_LAUNCH_VERDICT_H

#include "common/base/status.h"
#include "deploy/launch/launch_start.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether the coordinator has ended, and found the job completed. */
bool launch_is_completed(const struct launch *launch);

/* Describes why there is no summary; `brought`: how the run folder arrived. Returns the member that
 * the reason is about; NULL: none. */
const struct member *launch_explain(const struct launch *launch, enum status brought,
                                    char *ret_reason, size_t reason_size);

/* Of a job that is complete: marks those that it went on without, and ends those that were started
 * again and came too late to take part. */
void launch_dismiss_late(struct launch *launch);

/* Reports how the job ended. The exit code agrees with the summary; or a program of the user's own
 * has failed after its job was completed. */
enum exit_code launch_conclude(struct launch *launch, enum status brought);

/* The same where the kernel holds a coordinator, and with it perhaps whoever touches its folder:
 * reads and writes nothing there. */
enum exit_code launch_conclude_held(const struct launch *launch);

#endif
