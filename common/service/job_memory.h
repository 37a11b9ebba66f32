/* How much memory of the host parts of a job take, as follows from the job and the size of its
 * parameters: what is said before it starts. Pure. */
#ifndef COMMON_SERVICE_JOB_MEMORY_H
#define COMMON_SERVICE_JOB_MEMORY_H

#include "common/job/job.h"

#include <stdint.h>

/* Of a shard's answers that workers read where they are: if they would take more bytes, it sends
 * them in messages. */
#define JOB_MEMORY_ANSWERS_MAX (UINT64_C(1) << 30)

/* Where else the copies go that a job keeps in memory (--mirror). */
enum job_memory_mirror { JOB_MEMORY_NO_MIRROR, JOB_MEMORY_MIRROR, JOB_MEMORY_MIRROR_IN_MEMORY };

/* How many copies memory has at most of what the job goes on from after a loss; 0: none. One is
 * whole, and one is taken; with a mirror, one more is held while it is written there. A mirror in
 * memory has two, and one that is written. */
uint32_t job_memory_copies(const struct job *job, enum job_memory_mirror mirror);

/* Bytes of a copy of all that the job goes on from after a loss, but for what batch normalisation
 * has learned. value_bytes: of all parameters. */
uint64_t job_memory_of_copy(const struct job *job, uint64_t value_bytes);

/* How many bytes a server takes at most, without the copies of a coordinator. 0: the job has none,
 * or they hold their shards on GPUs, where it is not known. */
uint64_t job_memory_of_server(const struct job *job, uint64_t value_bytes);

/* The same of the process with the coordinator, which is a server in some jobs: with all copies,
 * also those of a mirror in memory. */
uint64_t job_memory_of_coordinator(const struct job *job, enum job_memory_mirror mirror,
                                   uint64_t value_bytes);

#endif
