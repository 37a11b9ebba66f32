/* Runs one job on this host: finds the programs, tries the job, starts ps and workers, watches
 * them, and leaves nothing behind. */
#ifndef DEPLOY_LAUNCH_H
#define DEPLOY_LAUNCH_H

#include "common/job.h"
#include "common/signals.h"
#include "common/status.h"

#include <stdbool.h>
#include <stdint.h>

#define LAUNCH_PATH_MAX 4096

struct launch_programs {
    char ps[LAUNCH_PATH_MAX], worker[LAUNCH_PATH_MAX];
};

/* Beside this program (build tree, or installed), or in RINGSIDE_LIBEXEC. Logs. */
enum status launch_find_programs(struct launch_programs *ret_programs);

/* Opens the job's data, model and device in a worker that then ends: what is wrong with them is
 * said before anything is written. ret_line gets what the worker found, as JSON. */
enum status launch_probe(const struct launch_programs *programs, const struct job *job,
                         char *ret_line, size_t line_size);

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
enum exit_code launch_job(const struct launch_programs *programs,
                          const struct launch_options *options);

/* Makes a folder and those above it, and `below` in it (NULL: nothing). Refuses one that is not
 * empty. Logs. */
enum status launch_make_folder(const char *folder, const char *below);

#endif
