/* Keeps what a coordinator has to hear while there is none, and tells it to the next one. */
#include "worker/link/link_alone.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/job/carriers.h"
#include "common/job/job_modes.h"
#include "worker/link/link_phases.h"

static void send(struct link *link, const struct message *message)
{
    if (channel_send(link->channel, link->member.coordinator, message, NULL, NULL) != STATUS_OK) {
        log_warn("cannot send %s to the coordinator", message_kind_name(message->kind));
    }
}

static void take_entry(void *context, const struct outbox_entry *entry)
{
    struct link *link = context;
    const struct message *message = &entry->message;
    if (message->kind == MESSAGE_SUM && message->sum->round < link->resent_rounds) {
        return; // told already
    }
    if (link->absence.is_on && !member_reaches(&link->member)) {
        absence_hold(&link->absence, entry);
        return;
    }
    if (link->member.is_alone) {
        return; // this worker joins the next coordinator anew, and makes again what this is about
    }
    send(link, message);
    absence_note_told(&link->absence, entry);
}

void link_take_outbox(struct link *link)
{
    if (!outbox_is_empty(&link->outbox)) {
        outbox_flush(&link->outbox, link_transports(link), take_entry, link);
    }
}

void link_alone_note_start(struct link *link, const struct message *start)
{
    link->start = *start->start;
    link->is_connecting = true;
    absence_note_phase(&link->absence);
}

void link_alone_note_go(struct link *link)
{
    link->is_connecting = false;
    if (link->running_ms != 0) {
        return;
    }
    link->running_ms = clock_now_ms();
    if ((job_trains_alone(&link->job) || job_may_commit(&link->job)) &&
        absence_begin(&link->absence, link->ranks.first, link->ranks.count) != STATUS_OK) {
        log_warn("there is no memory for what a new coordinator would have to be told: if the one "
                 "that is there is lost, this worker ends");
    }
    link->absence.commit_step = link->prepared.begin_step; // which rank 0 has given to all
    link->absence.has_commit = link->prepared.begin_step > 0;
}

/* The phase that runs, or has run and is over for this worker. */
static uint32_t current_phase(struct link *link)
{
    pthread_mutex_lock(&link->mutex);
    uint32_t index = link->phase_index;
    bool has_passed = link->phase == LINK_PREPARED;
    pthread_mutex_unlock(&link->mutex);
    return has_passed && index > 0 ? index - 1 : index;
}

void link_alone_prepare(struct link *link)
{
    bool may_stay = job_may_begin_anew(&link->job) || link->absence.is_on;
    link->member.outlast_ms = may_stay ? job_outlast_ms(&link->job) : 0;
}

/* Whether a coordinator can take this worker in as it is. Between two phases nobody knows who has
 * heard what, and what trials have shown is lost. */
static bool may_go_on(struct link *link)
{
    return job_trains_alone(&link->job) && link->absence.is_on && !link->absence.is_short &&
           !link->is_connecting && current_phase(link) >= link->phases.trial_count;
}

/* The coordinator before may have had pieces of it, and others may have none left. One that was not
 * offered yet is newer than all that was said. */
static void drop_snapshot(struct link *link)
{
    struct link_checkpoint *of = &link->checkpoint;
    of->announced = 0;
    pthread_mutex_lock(&link->mutex);
    if (of->snapshot != NULL && of->snapshot->step <= link->absence.snapshot_step) {
        of->snapshot = NULL;
        pthread_cond_broadcast(&link->changed);
    }
    pthread_mutex_unlock(&link->mutex);
}

void link_alone_knock(struct link *link)
{
    struct member *member = &link->member;
    if (!member->must_knock) {
        return;
    }
    bool goes_on = may_go_on(link);
    if (goes_on) {
        drop_snapshot(link);
    }
    pthread_mutex_lock(&link->mutex);
    uint64_t round = link->sum_round;
    pthread_mutex_unlock(&link->mutex);
    const struct absence *absence = &link->absence;
    bool commits = job_may_commit(&link->job);
    uint64_t now_ms = clock_now_ms();
    struct wire_back back = {
        .begin_step = commits ? link->prepared.begin_step : member->begin_step,
        .sum_round = round,
        .snapshot_step = absence->snapshot_step,
        .has_commit = absence->has_commit,
        .commit_step = absence->commit_step,
    };
    member_describe(member, link->running_ms, now_ms, &back);
    const struct wire_sum last = {round - 1, absence->sum_count, absence->sum};
    struct wire_start start = link->start;
    start.phase = current_phase(link);
    struct message message = {
        .kind = MESSAGE_BACK,
        .rank = link->process,
        .step = link->step,
        .generation = member->generation,
        .layout = goes_on ? link->prepared.layout : NULL,
        .groups = goes_on ? link->prepared.groups : NULL,
        .start = goes_on ? &start : NULL,
        .back = &back,
        // Without it, some would have committed, and others not.
        .sum = (goes_on || commits) && round > 0 && absence->sum_count > 0 ? &last : NULL,
    };
    member->self.has_rank = true;
    member->self.optimizer = link->prepared.optimizer;
    member->self.rank = member->generation == 0 ? link->process : link->number;
    member_knock(member, &link->job, &message);
    member->self.rank = link->process;
}

static void tell(void *context, const struct message *message)
{
    send(context, message);
}

/* The trainer waits for a sum: it is asked for anew. */
static void tell_sums(struct link *link)
{
    pthread_mutex_lock(&link->mutex);
    const double *values = link->sum;
    const struct wire_sum asked = {link->sum_round, link->sum_count, values};
    pthread_mutex_unlock(&link->mutex);
    link->resent_rounds = asked.round + (values != NULL);
    for (uint32_t i = 0; values != NULL && i < link->ranks.count; i++) {
        const struct wire_sum sum = {asked.round, asked.count, values + (size_t)i * asked.count};
        const struct message message = {
            .kind = MESSAGE_SUM, .rank = link->ranks.first + i, .step = link->step, .sum = &sum};
        send(link, &message);
    }
}

void link_alone_return(struct link *link, const struct message *go)
{
    link_take_outbox(link); // what it had to say before is kept in order
    member_return(&link->member, go);
    absence_tell(&link->absence, tell, link);
    tell_sums(link);
    const struct message *unanswered = absence_unanswered(&link->absence);
    if (unanswered != NULL) {
        send(link, unanswered);
    }
}
