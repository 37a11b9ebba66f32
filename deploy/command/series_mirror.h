/* The mirrors of a comparison's or a sweep's runs: each run has one of its own. */
#ifndef DEPLOY_COMMAND_SERIES_MIRROR_H
#define DEPLOY_COMMAND_SERIES_MIRROR_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "common/job/job_effects.h"
#include "deploy/hosts/launcher_options.h"
#include "deploy/launch/launch_mirror.h"

/* Whether the runs can have the --mirror that was asked for, if any. STATUS_INVALID, with a line in
 * the log, if none of them can. If only some can, standard output says how many cannot, and why. */
enum status series_mirror_check(const struct launcher_options *options,
                                const struct job_list *jobs);

/* The mirror of a run, as launch_options has it: the folder `name` in the one that --mirror names,
 * "memory", or "" if the job can have none or nobody has asked for one. */
void series_mirror_of_run(const struct launcher_options *options, const struct job *job,
                          const char *name, char ret_mirror[LAUNCH_MIRROR_BYTES]);

/* As folder_remove_run, for a run that is made anew. Before that, it removes what the run had in
 * its mirror, if that is on this host. What another run has written, or no run, stays. Logs. */
enum status series_mirror_remove_run(const char *run_folder, const char *mirror);

#endif
