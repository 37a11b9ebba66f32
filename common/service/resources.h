/* What the system lets a process have, against what its part of a job needs: descriptors and
 * threads. Looked at before anything starts, because libraries that run out of them end the
 * process, or wait for what cannot come. */
#ifndef COMMON_SERVICE_RESOURCES_H
#define COMMON_SERVICE_RESOURCES_H

#include "common/base/status.h"
#include "common/job/job.h"

#include <stddef.h>
#include <stdint.h>

#define RESOURCES_ERROR_BYTES 512

enum resources_role {
    RESOURCES_COORDINATOR, // with its shards
    RESOURCES_SHARD,       // another server, with its shards
    RESOURCES_WORKER,
    RESOURCES_ROLES
};

/* The most that it has at once, with what the door keeps. */
struct resources_need {
    uint32_t files, threads;
};

/* Of a process of the job; NULL: of the smallest job. Pure. */
struct resources_need resources_of(enum resources_role role, const struct job *job);

/* "a worker of a job of 4 workers and 1 server". */
void resources_describe(enum resources_role role, const struct job *job, char *ret_text,
                        size_t text_size);

/* Whether this process may open so many files; raises its own limit as far as it may.
 * STATUS_INVALID with a sentence that says whose need that is. */
enum status resources_check_files(uint32_t count, const char *whose,
                                  char ret_error[RESOURCES_ERROR_BYTES]);

/* Whether this user may have so many threads more: tries it. */
enum status resources_check_threads(uint32_t count, const char *whose,
                                    char ret_error[RESOURCES_ERROR_BYTES]);

/* Both, for a process that takes this part in the job. */
enum status resources_check(enum resources_role role, const struct job *job,
                            char ret_error[RESOURCES_ERROR_BYTES]);

#endif
