/* Jobs of a few options, for tests. */
#ifndef TESTS_SUPPORT_COMMON_SAMPLE_JOB_H
#define TESTS_SUPPORT_COMMON_SAMPLE_JOB_H

#include "common/job/job.h"

/* The default job with options set, each "name=value"; the last one NULL. Fails the test where an
 * option does not take its value. */
struct job sample_job(const char *const settings[8]);

#define SAMPLE_JOB(...) sample_job((const char *const[8]){__VA_ARGS__})

/* The job resolved; fails the test if it contradicts itself. */
struct job sample_job_resolved(struct job job);

/* job_resolve must refuse it, with a sentence that contains the text. */
void sample_job_refuse(struct job job, const char *text);

#endif
