/* An agent: what `ringside agent` does on each host of a job.
 *
 * It starts and ends processes as the launcher says, and reports what became of them. It acts on
 * its own in one case: when the launcher is gone, because its input has ended or nothing has come
 * for too long. Then it tells the coordinator, gives it a moment to write down how its job has
 * ended, kills all processes that it has started, and ends itself. So nothing is left behind,
 * whatever happens to the launcher or to the link. */
#ifndef DEPLOY_AGENT_AGENT_H
#define DEPLOY_AGENT_AGENT_H

#include "common/base/signals.h"

#include <stdint.h>

struct agent_options {
    int input_fd, output_fd; // the launcher's lines, and ours
    int terminal_fd;         // for processes that have the terminal; -1: there is none
    uint32_t silence_ms;     // how long it may hear nothing; 0: for ever
    const char *lock;        // file that an orphan removes: see folder_lock.h; "": none
};

/* Runs until the launcher is gone, or until a signal of process_ending_signals. */
enum exit_code agent_run(const struct agent_options *options);

#endif
