/* A job as text, for the wire: "name=value\n" for every row. Pure. */
#ifndef COMMON_JOB_JOB_TEXT_H
#define COMMON_JOB_JOB_TEXT_H

#include "common/base/status.h"
#include "common/job/job.h"

#include <stddef.h>

#define JOB_TEXT_BYTES (16 * 1024)

/* STATUS_INVALID if the text does not fit. */
enum status job_encode(const struct job *job, char *ret_text, size_t text_size);

/* Checks every value, fails on names that it does not know, and resolves: a job from a peer is as
 * sound as one from the command line. */
enum status job_decode(const char *text, struct job *ret_job, char *ret_error, size_t error_size);

#endif
