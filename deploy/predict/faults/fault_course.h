/* How long a whole job takes that faults strike (--fault): from how long its steps take with all
 * processes and with fewer. Pure.
 *
 * A loss (docs/LOSSES.md) is noticed, and the next generation begins; then the steps since the
 * newest copy are made again, half of those between two copies in the mean, and all others, by the
 * processes that are left. In a race that has lost a worker nothing is made again. A worker that
 * joins costs a generation as well, and no step.
 *
 * Of a process that stands still, or is cut off, all workers lose the time that they cannot go on
 * without it: all of it in ring and ps-sync, none in ps-async, that behind S steps in ps-ssp:S. In
 * the last two the job loses what the worker would have made. */
#ifndef DEPLOY_PREDICT_FAULTS_FAULT_COURSE_H
#define DEPLOY_PREDICT_FAULTS_FAULT_COURSE_H

#include "common/base/status.h"
#include "common/job/mode.h"
#include "common/plan/fault_list.h"
#include "deploy/predict/basis/costs.h"

#include <stdint.h>

struct fault_job {
    struct mode mode;
    uint32_t workers, servers, backup;
    bool compresses; // gradients
    uint64_t steps;  // of the whole job
};

/* How long a step takes without so many workers and servers. */
struct fault_steps {
    enum status (*step_s)(void *context, uint32_t lost_workers, uint32_t lost_servers,
                          double *ret_step_s);
    void *context;
};

struct fault_course {
    double plain_s, all_s;                        // of the job: without faults and with them
    double notice_s, go_on_s, again_s, stopped_s; // parts of the difference; again: steps
    double slower_s;                              // steps with fewer processes; may be below 0
    double steps_again;
    uint32_t losses, joins;
};

/* STATUS_INVALID, with a sentence: the job does not have what a fault strikes, or does not go on
 * without it. */
enum status fault_course_check(const struct fault_job *job, const struct faults *faults,
                               char *ret_why, size_t why_size);

/* Of faults that were checked. */
enum status fault_course_make(const struct fault_job *job, const struct faults *faults,
                              const struct recovery *recovery, const struct fault_steps *steps,
                              struct fault_course *ret_course);

#endif
