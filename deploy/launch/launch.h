/* Runs one job on the launcher's hosts: starts ps and workers, watches them, and leaves nothing
 * behind. */
#ifndef DEPLOY_LAUNCH_LAUNCH_H
#define DEPLOY_LAUNCH_LAUNCH_H

#include "common/base/signals.h"
#include "common/job/job.h"
#include "common/security/security.h"
#include "deploy/hosts/launcher.h"

#include <stdbool.h>
#include <stdint.h>

#define LAUNCH_PATH_MAX 4096

struct launch_options {
    const struct job *job;           // resolved
    const char *folder;              // run folder, which exists
    const char *resume;              // run folder to go on from; "auto": this one, if it has a
                                     // checkpoint; NULL or "": none
    const char *mirror;              // folder of the coordinator's host, or "memory"; "": none
    uint32_t port;                   // of the coordinator; 0: any
    uint32_t health_port;            // of the coordinator; 0: none
    uint32_t restarts;               // of what was lost, at most: a worker, or the whole job
    const struct security *security; // what the user said about keys
    const char *log_level;
    bool shows_progress;
    const char *dashboard;      // where the coordinator serves the live page; NULL or "": nowhere
    bool has_tensorboard;       // the coordinator writes event files of TensorBoard's
    const char *const *program; // of the user's own, and its arguments, in the place of `worker`;
                                // ends with NULL; NULL: none
    bool shows_ranks;           // with the progress, on a terminal: a line for each rank
};

/* Blocks the signals that launch_job handles. Call it once, at the start of a command. */
void launch_block_signals(void);

/* Checks what can be known before anything is written. Logs what is wrong. */
enum status launch_check(const struct security_options *security, const struct job *job);

/* Runs the job until it is over. A job that fails because of a loss is started again, as a whole,
 * for as long as there are restarts. Returns EXIT_INTERRUPTED after Ctrl-C. There is a summary.json
 * then, whatever happens. */
enum exit_code launch_job(struct launcher *launcher, const struct launch_options *options);

#endif
