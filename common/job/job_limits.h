/* Limits of an option: what it does not go with, each as a sentence. For the checks of jobs. */
#ifndef COMMON_JOB_JOB_LIMITS_H
#define COMMON_JOB_JOB_LIMITS_H

#include "common/base/status.h"
#include "common/job/job.h"

#include <stdbool.h>
#include <stddef.h>

struct limit {
    bool is_asked;
    const char *sentence;
};

/* The first that a job asks for; NULL: none. */
static inline const char *first_asked(const struct limit *limits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (limits[i].is_asked) {
            return limits[i].sentence;
        }
    }
    return NULL;
}

/* job_external_checks.c: what a job whose model is a program of its own cannot have. */
enum status job_check_external(const struct job *job, char *ret_error, size_t error_size);

#endif
