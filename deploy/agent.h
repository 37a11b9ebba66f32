/* An agent: what `ringside agent` does on each host of a job.
 *
 * It starts and ends processes there as the launcher says, and tells it what became of them. It has
 * no will of its own but one: when nobody listens any more, because its input has ended or nothing
 * has come for too long, it ends all that it has started, and itself: the coordinator is told, and
 * has a moment to write down how its job has ended; then all are killed. So whatever happens to the
 * launcher or to the link between, nothing is left behind. */
#ifndef DEPLOY_AGENT_H
#define DEPLOY_AGENT_H

#include "common/signals.h"

#include <stdint.h>

struct agent_options {
    int input_fd, output_fd; // the launcher's lines, and ours
    int terminal_fd;         // for processes that have the terminal; -1: there is none
    uint32_t silence_ms;     // how long it may hear nothing; 0: for ever
    const char *lock;        // file that an orphan removes: see folder_lock.h; "": none
};

/* Until nobody listens, or a signal that ends (process_ending_signals). */
enum exit_code agent_run(const struct agent_options *options);

#endif
