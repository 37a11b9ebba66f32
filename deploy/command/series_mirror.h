/* The mirrors of a comparison's or a sweep's runs: each run has one of its own. */
#ifndef DEPLOY_COMMAND_SERIES_MIRROR_H
#define DEPLOY_COMMAND_SERIES_MIRROR_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "common/job/job_effects.h"
#include "deploy/hosts/launcher_options.h"
#include "deploy/launch/launch_mirror.h"

/* Whether the runs can have the --mirror that was asked for, if any. STATUS_INVALID, with a line in
 * the log, if none of them can. Those that have none beside others that have one are said on
 * standard output, with the reason. */
enum status series_mirror_check(const struct launcher_options *options,
                                const struct job_list *jobs);

/* The mirror of a run, as launch_options has it: the folder of this name in the user's, "memory",
 * or "" where the job can have none or nobody has asked. */
void series_mirror_of_run(const struct launcher_options *options, const struct job *job,
                          const char *name, char ret_mirror[LAUNCH_MIRROR_BYTES]);

/* folder_remove_run, for a run that is made anew; before that, removes what the run had in its
 * mirror, if that is on this host. What is of another run, or no run has written, stays. Logs. */
enum status series_mirror_remove_run(const char *run_folder, const char *mirror);

#endif
