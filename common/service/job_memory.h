/* How much memory of the host parts of a job take, as follows from the job and the size of its
 * parameters: what is said before it starts. Pure. */
#ifndef COMMON_SERVICE_JOB_MEMORY_H
#define COMMON_SERVICE_JOB_MEMORY_H

#include "common/job/job.h"

#include <stdint.h>

/* That a coordinator holds, at most: one that is whole, and one that is taken. */
#define JOB_MEMORY_COPIES 2

/* Bytes of a copy of all that the job goes on from after a loss, but for what batch normalisation
 * has learned. value_bytes: of all parameters. */
uint64_t job_memory_of_copy(const struct job *job, uint64_t value_bytes);

/* How many bytes a server takes at most, without the copies of a coordinator. 0: the job has none,
 * or they hold their shards on GPUs, where it is not known. */
uint64_t job_memory_of_server(const struct job *job, uint64_t value_bytes);

/* The same of the process with the coordinator: with the copies, and a server's, if it is one. */
uint64_t job_memory_of_coordinator(const struct job *job, uint64_t value_bytes);

#endif
