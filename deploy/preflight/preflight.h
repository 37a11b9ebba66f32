/* Checks what a job needs before it starts. On one host that is its data, model and device. With
 * several hosts it is also that every host is there and has this version, that clocks agree, and
 * that processes can connect. Prints all problems in one table. */
#ifndef DEPLOY_PREFLIGHT_PREFLIGHT_H
#define DEPLOY_PREFLIGHT_PREFLIGHT_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "deploy/hosts/findings.h"
#include "deploy/hosts/launcher.h"
#include "deploy/preflight/memory_said.h"

#include <stdbool.h>

struct preflight {
    struct launcher *launcher; // borrowed
    struct findings findings;
    enum status status; // errors that are not findings
    char **tried;       // (tried_count), owned: grid_describe_probe of jobs that were tried
    size_t tried_count;
    struct memory_found memory[HOSTS_MAX]; // of the last job that was tried, by host
    enum job_memory_mirror mirror;         // that the job will have
    const char *const *program; // of the user's own, in the place of `worker`; borrowed; NULL: none
};

/* Opens the launcher. Borrows the options for as long as the launcher is open. */
void preflight_begin(struct preflight *preflight, struct launcher *launcher,
                     const struct launcher_options *options,
                     const struct host_options *host_options);

/* Tries a job. Skips the probe of data, model and device if an equal one was made before. */
void preflight_try(struct preflight *preflight, const struct job *job);

/* Says how much memory a job takes that was just tried; nothing where that is not known. */
void preflight_say_memory(const struct preflight *preflight, const struct job *job);

/* Prints the findings, and frees what preflight_begin took. Returns STATUS_OK if there are none and
 * the job can start; STATUS_MISMATCH if an option asks for what a job does not have with its data;
 * STATUS_INTERRUPTED after Ctrl-C. */
enum status preflight_end(struct preflight *preflight);

#endif
