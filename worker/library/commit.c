/* Lets a program go on from what it has committed, when the job's processes have changed. */
#include "common/base/log.h"
#include "common/job/carriers.h"
#include "common/job/job_modes.h"
#include "worker/library/committed.h"
#include "worker/library/together.h"

#include <stdlib.h>

/* Tells the coordinator, which may let newcomers in before anybody goes on. */
static enum status commit(struct ringside *ringside, bool *ret_has_grown)
{
    double nothing = 0;
    enum status status = committed_draw(ringside);
    if (status != STATUS_OK) {
        return status;
    }
    handle_report_commit(ringside);
    link_commit(ringside->link, ringside->step);
    status = link_sum(ringside->link, &nothing, 1);
    *ret_has_grown = status == STATUS_AGAIN && link_has_grown(ringside->link);
    if (status == STATUS_OK || *ret_has_grown) {
        ringside->commit_step = ringside->step;
        committed_keep(ringside);
        ringside->kept_period = ringside->period;
    }
    return status;
}

enum ringside_status ringside_commit(struct ringside *ringside)
{
    static const struct ringside_among all = {.label = "ringside_commit"};
    const unsigned states =
        HANDLE_JOINED | HANDLE_DESCRIBED | HANDLE_BETWEEN | HANDLE_FORWARD | HANDLE_ENDED;
    enum ringside_status is = handle_enter(ringside, states, "ringside_commit");
    if (is != RINGSIDE_OK) {
        return is;
    }
    if (!job_may_commit(&ringside->job)) {
        return handle_refuse(ringside, RINGSIDE_UNSUPPORTED,
                             "ringside_commit: this job does not go on after a loss; --on-loss "
                             "commit makes it");
    }
    is = handle_exit(ringside, handle_settle_together(ringside));
    if (is != RINGSIDE_OK) {
        return is;
    }
    is = ringside_barrier_among(ringside, &all); // which says who does something else
    if (is != RINGSIDE_OK) {
        return is;
    }
    is = handle_enter(ringside, states, "ringside_commit");
    if (is != RINGSIDE_OK) {
        return is;
    }
    bool has_grown = false;
    is = handle_exit(ringside, commit(ringside, &has_grown));
    return has_grown ? RINGSIDE_GROWS : is;
}

/* Drops what belongs to the generation before. */
static void forget_others(struct ringside *ringside)
{
    team_destroy(ringside->team);
    free(ringside->all_ranks);
    ringside->team = NULL;
    ringside->all_ranks = NULL;
    ringside->has_met = false;
    ringside->calls = 0;
    link_destroy(ringside->link);
    ringside->link = NULL;
    ringside->exchange = NULL;
    ringside->has_drawn = false;
}

/* The job is told anew, and the program has said its optimizer already. */
static enum status say_again(struct ringside *ringside)
{
    char why[OPTION_ERROR_BYTES];
    if (ringside->makes_updates || ringside->told[0] == '\0') {
        return STATUS_OK;
    }
    enum status status = job_take_optimizer(&ringside->job, ringside->told, why, sizeof(why));
    if (status != STATUS_OK) {
        log_error("%s", why);
        link_leave(ringside->link, status, why);
    }
    return status;
}

/* The next step is the first one of its generation. */
static void begin_at(struct ringside *ringside, uint64_t step)
{
    ringside->step = ringside->begin_step = step;
    ringside->is_pending = false;
    // What was counted of steps that are made again goes.
    ringside->interval = (struct wire_report){0};
    ringside->period = ringside->kept_period;
    for (uint32_t i = 0; i < ringside->tensor_count; i++) {
        ringside->tensors[i].ready_step = 0;
    }
}

enum ringside_status ringside_rejoin(struct ringside *ringside)
{
    if (ringside == NULL) {
        return handle_enter(ringside, HANDLE_BROKEN, "ringside_rejoin");
    }
    pthread_mutex_lock(&ringside->turn);
    if (ringside->state != HANDLE_BROKEN || ringside->broken != RINGSIDE_AGAIN) {
        return handle_refuse(ringside, RINGSIDE_MISUSE,
                             "ringside_rejoin is out of order: no call has returned "
                             "RINGSIDE_AGAIN or RINGSIDE_GROWS");
    }
    enum status status;
    ringside->joins_by.made_step = ringside->step;
    do {
        forget_others(ringside);
        status = handle_join(ringside);
        ringside->joins_by.made_step = 0; // none since
    } while (status == STATUS_AGAIN);     // another one was lost meanwhile
    status = status == STATUS_OK ? say_again(ringside) : status;
    if (status == STATUS_OK) {
        begin_at(ringside, ringside->commit_step);
        ringside->state = ringside->tensor_count > 0 ? HANDLE_DESCRIBED : HANDLE_JOINED;
    }
    enum ringside_status is = handle_exit(ringside, status);
    return status == STATUS_END_OF_DATA ? RINGSIDE_END : is;
}

enum ringside_status ringside_go_on(struct ringside *ringside, uint64_t step)
{
    enum ringside_status entered =
        handle_enter(ringside, HANDLE_JOINED | HANDLE_DESCRIBED, "ringside_go_on");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    if (!job_may_commit(&ringside->job) && step > 0) {
        return handle_refuse(ringside, RINGSIDE_UNSUPPORTED,
                             "ringside_go_on: this job does not go on after a loss; --on-loss "
                             "commit makes it");
    }
    if (step > ringside->job.steps) {
        return handle_refuse(ringside, RINGSIDE_INVALID,
                             "ringside_go_on: the job has %llu steps, which are fewer than %llu",
                             (unsigned long long)ringside->job.steps, (unsigned long long)step);
    }
    if (ringside->rank == 0 && ringside->kept[0] != NULL && step != ringside->commit_step) {
        return handle_refuse(ringside, RINGSIDE_INVALID,
                             "ringside_go_on: the optimizer's state is that of the last commit, "
                             "after %llu step%s, and not after %llu",
                             (unsigned long long)ringside->commit_step,
                             ringside->commit_step == 1 ? "" : "s", (unsigned long long)step);
    }
    begin_at(ringside, step);
    ringside->commit_step = step;
    return handle_exit(ringside, STATUS_OK);
}
