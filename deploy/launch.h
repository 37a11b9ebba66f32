/* Runs one job on this host: starts ps and workers, watches them, and leaves nothing behind. */
#ifndef DEPLOY_LAUNCH_H
#define DEPLOY_LAUNCH_H

#include "common/job.h"
#include "common/signals.h"
#include "deploy/programs.h"

#include <stdbool.h>
#include <stdint.h>

#define LAUNCH_PATH_MAX 4096

struct launch_options {
    const struct job *job; // resolved
    const char *folder;    // run folder, which exists
    const char *address;   // to listen on
    uint32_t port;         // of the coordinator; 0: any
    const char *log_level;
    bool shows_progress;
};

/* Blocks the signals that launch_job handles; once, at the start of a command. */
void launch_block_signals(void);

/* Until the job is over. EXIT_INTERRUPTED after Ctrl-C. There is a summary.json in any case. */
enum exit_code launch_job(const struct programs *programs, const struct launch_options *options);

#endif
