/* Reads the job of members that have outlasted their coordinator. */
#include "common/job/faults.h"
#include "common/job/job_modes.h"
#include "common/job/job_resume.h"
#include "common/job/job_text.h"
#include "ps-server/returning/returning.h"

#include <stdio.h>

/* The coordinator may have been killed by a fault of its job, which whoever has started this one
 * has struck off: it does not strike again. */
static void forget_fault(struct job *job, const struct job *own)
{
    const struct faults faults = faults_of(job), left = faults_of(own);
    const struct fault *kill = faults_next_kill(&faults), *next = faults_next_kill(&left);
    bool has_shard = job->servers > 0 && job_first_server(job) == 0;
    bool is_coordinators = kill != NULL && kill->place == FAULT_AT_SHARD && has_shard &&
                           kill->number % job->servers == 0;
    if (is_coordinators && (next == NULL || next->place != kill->place ||
                            next->number != kill->number || next->step != kill->step)) {
        faults_forget_kill(job);
    }
}

/* The job as it would have to be asked for: after losses, a program that commits has fewer
 * processes than it began with. */
static struct job as_is(const struct job *own, const struct job *job)
{
    struct job like = *own;
    if (job_may_commit(job) && job->workers < own->workers) {
        like.workers = job->workers;
        like.global_batch = like.batch * like.workers;
    }
    return like;
}

enum status returning_read_job(const struct message *back, const struct job *own,
                               struct job *ret_job, char *ret_why, size_t why_size)
{
    char error[OPTION_ERROR_BYTES];
    enum status status = job_decode(back->text, ret_job, error, sizeof(error));
    if (status == STATUS_OK) {
        const struct job like = as_is(own, ret_job);
        status = job_check_resume(back->text, &like, error, sizeof(error));
    }
    if (status == STATUS_OK && !job_outlasts_coordinator(ret_job)) {
        snprintf(error, sizeof(error), "its job does not outlast its coordinator");
        status = STATUS_INVALID;
    }
    if (status != STATUS_OK) {
        snprintf(ret_why, why_size, "%s", error);
        return status;
    }
    forget_fault(ret_job, own);
    return STATUS_OK;
}
