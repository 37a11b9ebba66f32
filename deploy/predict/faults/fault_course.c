/* Goes through the faults of a job in their order. */
#include "deploy/predict/faults/fault_course.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

struct walk {
    const struct fault_job *job;
    const struct recovery *recovery;
    const struct fault_steps *steps;
    struct fault_course course;
    double plain_step_s, now_step_s; // of a step
    uint64_t made;                   // steps
    uint32_t lost_workers, lost_servers;
};

static bool refuse(const struct fault *fault, const char *why, char *ret_why, size_t why_size)
{
    char text[FAULT_TEXT_BYTES];
    fault_format(fault, text);
    snprintf(ret_why, why_size, "%s: %s", text, why);
    return false;
}

static bool check_one(const struct fault_job *job, const struct fault *fault, char *ret_why,
                      size_t why_size)
{
    bool is_shard = fault->place == FAULT_AT_SHARD;
    if (fault->step > job->steps) {
        return refuse(fault, "the job has not so many steps; see --job-steps", ret_why, why_size);
    }
    if (fault->place == FAULT_AT_RANK && fault->number >= job->workers) {
        return refuse(fault, "the job has no such rank", ret_why, why_size);
    }
    if (is_shard && fault->number >= job->servers) {
        return refuse(fault, "the job has no such shard in one of its modes", ret_why, why_size);
    }
    if (is_shard && fault->number == 0 && fault->kind == FAULT_KILL) {
        return refuse(fault, "its process is the coordinator, with which the job ends", ret_why,
                      why_size);
    }
    return true;
}

enum status fault_course_check(const struct fault_job *job, const struct faults *faults,
                               char *ret_why, size_t why_size)
{
    uint32_t workers = job->workers, lost = 0;
    for (uint32_t i = 0; i < faults->count; i++) {
        const struct fault *fault = &faults->list[i];
        if (!check_one(job, fault, ret_why, why_size)) {
            return STATUS_INVALID;
        }
        bool is_loss = fault->kind == FAULT_KILL && fault->place == FAULT_AT_RANK;
        lost += is_loss;
        if (lost == workers) {
            (void)refuse(fault, "no worker would be left", ret_why, why_size);
            return STATUS_INVALID;
        }
        if (fault->kind == FAULT_JOIN && lost == 0) {
            (void)refuse(fault, "no worker was killed in whose place one could come", ret_why,
                         why_size);
            return STATUS_INVALID;
        }
        lost -= fault->kind == FAULT_JOIN;
    }
    return STATUS_OK;
}

/* Steps up to this one, in the processes that there are. */
static void go_to(struct walk *walk, uint64_t step)
{
    if (step > walk->made) {
        double steps = (double)(step - walk->made);
        walk->course.all_s += steps * walk->now_step_s;
        walk->course.slower_s += steps * (walk->now_step_s - walk->plain_step_s);
        walk->made = step;
    }
}

static enum status ask(struct walk *walk, double *ret_step_s)
{
    return walk->steps->step_s(walk->steps->context, walk->lost_workers, walk->lost_servers,
                               ret_step_s);
}

/* Half of the steps from one copy to the next, and no more than were made. */
static double steps_since_copy(const struct walk *walk)
{
    double between = walk->now_step_s > 0 ? walk->recovery->copy_every_s / walk->now_step_s : 0;
    double half = fmax(ceil(between), 1) / 2;
    return fmin(half, (double)walk->made);
}

/* Servers of a race keep what they have: see ps-server/coordinator/in_place.h. */
static bool goes_on_in_place(const struct walk *walk, bool is_worker)
{
    return is_worker && mode_updates_on_push(walk->job->mode.kind) && !walk->job->compresses;
}

static enum status lose(struct walk *walk, bool is_worker)
{
    struct fault_course *course = &walk->course;
    double steps = goes_on_in_place(walk, is_worker) ? 0 : steps_since_copy(walk);
    walk->lost_workers += is_worker;
    walk->lost_servers += !is_worker;
    enum status status = ask(walk, &walk->now_step_s);
    course->losses++;
    course->notice_s += walk->recovery->notice_s;
    course->go_on_s += walk->recovery->go_on_s;
    course->steps_again += steps;
    course->again_s += steps * walk->now_step_s;
    course->all_s += walk->recovery->notice_s + walk->recovery->go_on_s + steps * walk->now_step_s;
    return status;
}

static enum status join(struct walk *walk)
{
    walk->lost_workers--;
    walk->course.joins++;
    walk->course.go_on_s += walk->recovery->join_s;
    walk->course.all_s += walk->recovery->join_s;
    return ask(walk, &walk->now_step_s);
}

/* See fault_course.h. */
static double stand_still(const struct walk *walk, const struct fault *fault)
{
    const struct fault_job *job = walk->job;
    double others_s = fault->seconds, part = 1.0 / job->workers;
    if (fault->place == FAULT_AT_SHARD || !mode_updates_on_push(job->mode.kind)) {
        bool is_spared = fault->place == FAULT_AT_RANK && job->backup > 0;
        return is_spared ? 0 : fault->seconds; // updates come from the others
    }
    others_s -=
        job->mode.kind == MODE_PS_SSP ? job->mode.slack_steps * walk->now_step_s : fault->seconds;
    return part * fault->seconds + (1 - part) * fmax(others_s, 0);
}

static enum status strike(struct walk *walk, const struct fault *fault)
{
    double stopped_s = 0;
    // A worker's fault comes before its step, a shard's and a join behind it.
    go_to(walk, fault->place == FAULT_AT_RANK ? fault->step - 1 : fault->step);
    switch (fault->kind) {
    case FAULT_KILL:
        return lose(walk, fault->place == FAULT_AT_RANK);
    case FAULT_JOIN:
        return join(walk);
    case FAULT_STOP:
    case FAULT_PARTITION:
        stopped_s = stand_still(walk, fault);
        walk->course.stopped_s += stopped_s;
        walk->course.all_s += stopped_s;
        break;
    }
    return STATUS_OK;
}

enum status fault_course_make(const struct fault_job *job, const struct faults *faults,
                              const struct recovery *recovery, const struct fault_steps *steps,
                              struct fault_course *ret_course)
{
    struct walk walk = {.job = job, .recovery = recovery, .steps = steps};
    enum status status = ask(&walk, &walk.plain_step_s);
    walk.now_step_s = walk.plain_step_s;
    for (uint32_t i = 0; i < faults->count && status == STATUS_OK; i++) {
        status = strike(&walk, &faults->list[i]);
    }
    if (status != STATUS_OK) {
        return status;
    }
    go_to(&walk, job->steps);
    walk.course.plain_s = (double)job->steps * walk.plain_step_s;
    *ret_course = walk.course;
    return STATUS_OK;
}
