/* Makes the coordinator that of members who have outlasted another one. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/job/carriers.h"
#include "common/job/job_text.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/server_state.h"

#include <stdio.h>
#include <string.h>

/* It has no place here as it is. With the reason AGAIN it joins anew, and goes on from the newest
 * copy that there is. */
static void send_away(struct server *server, uint64_t peer, enum status reason, const char *why)
{
    const struct message stop = {.kind = MESSAGE_STOP, .reason = reason, .text = why};
    if (channel_send(server->channel, peer, &stop, NULL, NULL) != STATUS_OK) {
        log_debug("cannot send STOP: the member is gone");
    }
}

/* The results that the job had when the members' generation began, and what it went on from: of the
 * coordinator that has just begun, or of a file. NULL: it began then, or that is not known. Stay
 * where they are. */
static struct results *find_results(struct server *server, uint64_t begin_step,
                                    const struct coordinator_resume **ret_resume)
{
    struct job_part *begun = &server->begun;
    *ret_resume = NULL;
    if (begin_step == 0) {
        return NULL;
    }
    if (keeper_begin_step(server->keeper) == begin_step) {
        *ret_resume = server->coordinator.resume;
        return &server->coordinator.results;
    }
    job_part_finish(begun);
    *begun = (struct job_part){.open_periods = NULL};
    if (server_read_beginning(server, begin_step, begun) != STATUS_OK) {
        return NULL;
    }
    *ret_resume = &begun->resume;
    return &begun->results;
}

/* Those who have joined this coordinator join the next one: its own server, or processes that
 * somebody has started meanwhile. */
static void send_all_away(const struct coordinator *last)
{
    const struct message stop = {.kind = MESSAGE_STOP,
                                 .reason = STATUS_AGAIN,
                                 .text = "the job is under way: its members come back"};
    coordinator_port_send_all(&last->port, &last->membership, &stop);
}

/* Those who have not missed the coordinator while it was away come back, too, by the connections
 * that they have. */
static void ask_all_back(const struct coordinator *last)
{
    const struct message ask = {.kind = MESSAGE_HEARTBEAT, .reason = STATUS_AGAIN};
    coordinator_port_send_all(&last->port, &last->membership, &ask);
}

/* What the coordinator knows of the job before it is taken over. One that was away has to be asked
 * before it forgets: a checkpoint that it reads then counts as a restart, too. */
static struct returning_past past_of(const struct coordinator *last, bool was_away)
{
    return (struct returning_past){
        .restarts = was_away ? generation_restarts(last) + 1 : last->restarts_before,
        .was_away = was_away,
        .before = was_away ? last->generation : NULL,
        .fetched_bytes = was_away ? last->fetched_bytes : 0,
    };
}

/* A coordinator that was away begins as one that was started in its place: with what is in files
 * and in memory, since nobody knows what of its last words was heard. */
static enum status forget_training(struct server *server)
{
    keeper_destroy(server->keeper);
    server->keeper = NULL;
    server->coordinator.resume = NULL; // the keeper had it
    if (server->saver != NULL) { // what is on its way to the disk arrives there, if it is no slower
        saver_await_idle(server->saver, (uint64_t)(1000 * server->job.lost_after));
    }
    enum status status = server_open_keeper(server, 0);
    if (status == STATUS_OK) {
        keeper_hand_over(server->keeper, &server->coordinator);
    }
    return status;
}

/* How fast the generation was that they come from. */
static void measure_last(const struct coordinator *last, struct generation *next)
{
    struct recovery *recovery = &next->recoveries[next->recovery_count - 1];
    if (next->recovery_count > 1) {
        generation_measure(last, &recovery[-1]);
    }
    generation_measure_before(last, recovery);
}

/* The generation of those who come back to it. */
static enum status make_generation(const struct server *server, const struct message *back,
                                   const struct job *job, const struct returning_past *past,
                                   struct generation *ret_generation)
{
    const struct coordinator *last = &server->coordinator;
    enum status status = returning_generation(back, job, past, clock_now_ms(), ret_generation);
    if (status == STATUS_OK) {
        ret_generation->workers_lost = last->workers_lost;
        ret_generation->is_disk_slow = last->checkpointing.is_slow;
        ret_generation->does_disk_hang = last->checkpointing.hangs;
        ret_generation->copy_took_ms = last->checkpointing.took_ms;
    }
    if (status == STATUS_OK && past->was_away) {
        measure_last(last, ret_generation);
    }
    return status;
}

/* What a program that commits has told before its generation was in the last one's memory alone. */
static void note_unknown(struct server *server, const struct message *back)
{
    uint64_t step = back->back->begin_step;
    if (step > 0 && job_may_commit(&server->job)) {
        log_warn("what was reported of steps up to %llu was lost with the coordinator: the summary "
                 "begins behind them",
                 (unsigned long long)step);
    } else if (step > 0) {
        returning_forget(&server->returning);
    }
}

void server_restore_job(struct server *server, const struct job *own)
{
    server->job = *own;
    (void)job_encode(&server->job, server->job_text, sizeof(server->job_text)); // as it was
}

/* Makes a coordinator of the job that the members have, in the place of the last one. */
static enum status init_like(struct server *server, const struct job *job,
                             const struct coordinator *last)
{
    const struct job own = server->job;
    server->job = *job;
    enum status status = job_encode(&server->job, server->job_text, sizeof(server->job_text));
    if (status == STATUS_OK) {
        status = coordinator_init(&server->coordinator, &server->job, server->job_text, &last->port,
                                  clock_now_ms());
    }
    if (status != STATUS_OK) {
        server_restore_job(server, &own);
        server->coordinator = *last;
    }
    return status;
}

/* Replaces the coordinator, which has begun nothing or was away, by one of the job that the members
 * have. */
static enum status replace(struct server *server, const struct message *back, const struct job *job,
                           struct returning_past *past)
{
    const struct coordinator_resume *resume;
    struct results *results = find_results(server, back->back->begin_step, &resume);
    struct coordinator *coordinator = &server->coordinator, last = *coordinator;
    struct generation generation;
    past->seconds = resume != NULL ? resume->seconds : 0;
    enum status status = make_generation(server, back, job, past, &generation);
    if (status != STATUS_OK) {
        return status;
    }
    status = init_like(server, job, &last);
    if (status != STATUS_OK) {
        generation_finish(&generation);
        return status;
    }
    if (results != NULL) {
        // Of the last one, if they are not of the file.
        results_go_on(&coordinator->results,
                      results == &coordinator->results ? &last.results : results);
    }
    coordinator->resume = resume;
    coordinator->restarts_before = last.restarts_before;
    server->channel->job_id = back->job_id;
    if (past->was_away) {
        ask_all_back(&last);
    } else {
        send_all_away(&last);
    }
    coordinator_finish(&last);
    generation_finish(&server->generation);
    server->generation = generation;
    returning_begin(&server->returning, back, server->options->job, &server->generation,
                    coordinator);
    if (results == NULL) {
        note_unknown(server, back);
    }
    return STATUS_OK;
}

/* One that is back finds a coordinator that has begun nothing, or the one that it had. */
static void begin_again(struct server *server, const struct message *back, const struct job *job)
{
    bool was_away = back->job_id == server->channel->job_id;
    struct returning_past past = past_of(&server->coordinator, was_away);
    signs_busy(&server->signs); // reads from the disk
    enum status status = was_away ? forget_training(server) : STATUS_OK;
    if (status == STATUS_OK) {
        status = replace(server, back, job, &past);
    }
    if (status != STATUS_OK && was_away) {
        coordinator_stop(&server->coordinator, status,
                         "the coordinator was away, and cannot take its members in again",
                         clock_now_ms());
    }
}

/* Members of this job obey another coordinator: this one says nothing to anybody, and writes
 * nothing. */
static void give_way(struct server *server)
{
    server->is_replaced = true;
    coordinator_amend(&server->coordinator, STATUS_UNREACHABLE,
                      "another coordinator has taken over while this one was away", NULL);
    coordinator_enter(&server->coordinator, COORDINATOR_OVER, clock_now_ms());
}

/* Whether this process has looked at its members lately: if not, it was away itself. */
static bool was_attentive(const struct server *server)
{
    return (double)(clock_now_ms() - server->attention.looked_ms) < 1000 * server->job.lost_after;
}

void server_take_back(struct server *server, uint64_t peer, const struct message *back)
{
    struct coordinator *coordinator = &server->coordinator;
    char why[COORDINATOR_REASON_BYTES];
    struct job job;
    bool is_own = back->job_id == server->channel->job_id;
    if (coordinator->state >= COORDINATOR_CLOSING) {
        if (is_own && !server->is_replaced) { // whoever has given way says nothing
            coordinator_tell_verdict(coordinator, peer, back, clock_now_ms());
        }
        return;
    }
    if (is_own && returning_is_replaced(coordinator, back)) {
        give_way(server);
        return;
    }
    if (is_own && coordinator->state == COORDINATOR_RENEWING) { // all are called back in a moment
        if (!coordinator_find_again(coordinator, peer, back, clock_now_ms())) {
            send_away(server, peer, STATUS_AGAIN, "the job goes on without it: it joins anew");
        }
        return;
    }
    if (is_own && returning_is_old(coordinator, peer, back)) {
        return;
    }
    if (is_own && was_attentive(server) && returning_is_reconnected(coordinator, back)) {
        returning_renew(coordinator, peer, back, clock_now_ms());
        return;
    }
    if (!coordinator_takes_back(coordinator) && (is_own || returning_may_begin(coordinator))) {
        enum status status = returning_read_job(back, &server->job, &job, why, sizeof(why));
        if (status != STATUS_OK) {
            log_error("%s %u (host %s) is back, but from another job: %s",
                      role_name(back->member->role), back->member->rank, back->member->host, why);
            send_away(server, peer, STATUS_MISMATCH, why);
            return;
        }
        if (returning_may_begin(coordinator) && !returning_has_begun(back)) {
            returning_release(coordinator, back);
            send_away(server, peer, STATUS_AGAIN, "the job has not begun: it joins anew");
            return;
        }
        begin_again(server, back, &job);
    }
    if (!coordinator->is_returned || back->job_id != server->channel->job_id ||
        !returning_take(&server->returning, &server->generation, coordinator, peer, back,
                        clock_now_ms())) {
        send_away(server, peer, STATUS_AGAIN, "the job has gone on without it: it joins anew");
    }
}

bool server_take_join(struct server *server, uint64_t peer, const struct message *join)
{
    return server->coordinator.is_returned && strcmp(join->text, RINGSIDE_VERSION) == 0 &&
           returning_take_join(&server->returning, &server->generation, &server->coordinator, peer,
                               join, clock_now_ms());
}
