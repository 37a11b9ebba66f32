/* Makes the coordinator that of members who have outlasted another one. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/job/job_text.h"
#include "ps-server/checkpoint/beginning.h"
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

/* The results that the job had when the members' generation began. False: they are not known. */
static bool take_results(struct server *server, uint64_t begin_step, struct results *ret_results,
                         const struct coordinator_resume **ret_resume)
{
    struct coordinator *coordinator = &server->coordinator;
    *ret_resume = NULL;
    if (begin_step == 0) {
        return true;
    }
    if (keeper_begin_step(server->keeper) != begin_step) {
        struct job_part *begun = &server->begun;
        job_part_finish(begun);
        *begun = (struct job_part){.open_periods = NULL};
        if (beginning_read(server->options->folder, begin_step, &server->job, begun) != STATUS_OK) {
            return false;
        }
        *ret_resume = &begun->resume;
        *ret_results = begun->results;
        begun->results = (struct results){0};
        return true;
    }
    *ret_resume = coordinator->resume;
    *ret_results = coordinator->results;
    coordinator->results = (struct results){0};
    return true;
}

/* Replaces the coordinator, which has no members, by one of the job that they have. */
static enum status replace(struct server *server, const struct message *back, const struct job *job)
{
    struct results results = {0};
    const struct coordinator_resume *resume;
    struct generation generation;
    if (!take_results(server, back->back->begin_step, &results, &resume)) {
        return STATUS_AGAIN;
    }
    struct coordinator last = server->coordinator;
    enum status status = returning_generation(back, job, resume != NULL ? resume->seconds : 0,
                                              last.restarts_before, clock_now_ms(), &generation);
    if (status != STATUS_OK) {
        server->coordinator.results = resume != NULL ? results : last.results;
        return status;
    }
    generation.workers_lost = last.workers_lost;
    server->job = *job;
    server->channel->job_id = back->job_id;
    status = job_encode(&server->job, server->job_text, sizeof(server->job_text));
    if (status == STATUS_OK) {
        status = coordinator_init(&server->coordinator, &server->job, server->job_text, &last.port,
                                  clock_now_ms());
    }
    if (status != STATUS_OK) {
        server->coordinator = last;
        server->coordinator.results = resume != NULL ? results : last.results;
        generation_finish(&generation);
        return status;
    }
    coordinator_finish(&last);
    if (resume != NULL) {
        results_go_on(&server->coordinator.results, &results);
    }
    server->coordinator.resume = resume;
    server->coordinator.restarts_before = last.restarts_before;
    server->generation = generation;
    returning_begin(&server->returning, back, &server->generation, &server->coordinator);
    return STATUS_OK;
}

void server_take_back(struct server *server, uint64_t peer, const struct message *back)
{
    struct coordinator *coordinator = &server->coordinator;
    char why[COORDINATOR_REASON_BYTES];
    struct job job;
    if (coordinator->state >= COORDINATOR_CLOSING) {
        return; // it will knock at the next one, if there is one
    }
    if (!coordinator->is_returned && returning_may_begin(coordinator)) {
        enum status status = returning_read_job(back, &server->job, &job, why, sizeof(why));
        if (status != STATUS_OK) {
            log_error("worker %u (host %s) is back, but from another job: %s", back->member->rank,
                      back->member->host, why);
            send_away(server, peer, STATUS_MISMATCH, why);
            return;
        }
        (void)replace(server, back, &job);
    }
    if (!coordinator->is_returned || back->job_id != server->channel->job_id ||
        !returning_take(&server->returning, &server->generation, coordinator, peer, back,
                        clock_now_ms())) {
        send_away(server, peer, STATUS_AGAIN, "the job has gone on without it: it joins anew");
    }
}
