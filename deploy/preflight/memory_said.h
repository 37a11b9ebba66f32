/* What the processes of a job will take of memory, said before they start.
 *
 * A worker that was tried has nearly all that it will have, and says so (worker/errands.h). What
 * servers take follows from the job and the size of its parameters. */
#ifndef DEPLOY_PREFLIGHT_MEMORY_SAID_H
#define DEPLOY_PREFLIGHT_MEMORY_SAID_H

#include "common/job/job.h"
#include "common/service/job_memory.h"
#include "deploy/hosts/hosts.h"
#include "deploy/hosts/placement.h"

#include <stdint.h>

#define MEMORY_SAID_BYTES 4096

/* What the first worker of a job found when it was tried on a host. In bytes; zeroed: nobody was.
 */
struct memory_found {
    uint64_t worker; // of the host, by a process with as many ranks as any
    uint64_t device; // of its GPU, but for what CUDA takes; 0: it has none
    uint64_t values; // of all parameters
};

/* Reads what `worker --probe` has printed. A line that is something else changes nothing. */
void memory_said_take(const char *line, struct memory_found *found);

/* Where a mirror has its copies, by what --mirror asks for; "": there is none. */
enum job_memory_mirror memory_said_mirror(const char *asked);

struct memory_scene {
    const struct job *job; // resolved
    const struct hosts *hosts;
    const struct placement *placement;
    enum job_memory_mirror mirror;
    const struct memory_found *found; // (hosts->count)
};

/* Lines for people, each with its end; "" if no worker was tried. */
void memory_said_write(const struct memory_scene *scene, char ret_text[MEMORY_SAID_BYTES]);

#endif
