/* Makes the coordinator that of members who have outlasted another one. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/job/job_text.h"
#include "ps-server/checkpoint/beginning.h"
#include "ps-server/coordinator/coordinator_port.h"
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
    if (beginning_read(server->options->folder, begin_step, &server->job, begun) != STATUS_OK) {
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

/* Replaces the coordinator, which has begun nothing, by one of the job that the members have. */
static enum status replace(struct server *server, const struct message *back, const struct job *job)
{
    const struct coordinator_resume *resume;
    const struct job own = server->job;
    struct results *results = find_results(server, back->back->begin_step, &resume);
    struct coordinator *coordinator = &server->coordinator, last = *coordinator;
    struct generation generation;
    enum status status = returning_generation(back, job, resume != NULL ? resume->seconds : 0,
                                              last.restarts_before, clock_now_ms(), &generation);
    if (status != STATUS_OK) {
        return status;
    }
    generation.workers_lost = last.workers_lost;
    server->job = *job;
    status = job_encode(&server->job, server->job_text, sizeof(server->job_text));
    if (status == STATUS_OK) {
        status = coordinator_init(coordinator, &server->job, server->job_text, &last.port,
                                  clock_now_ms());
    }
    if (status != STATUS_OK) {
        server->job = own;
        (void)job_encode(&server->job, server->job_text, sizeof(server->job_text)); // as it was
        *coordinator = last;
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
    server->generation = generation;
    returning_begin(&server->returning, back, &own, &server->generation, coordinator);
    if (results == NULL && back->back->begin_step > 0) {
        returning_forget(&server->returning);
    }
    send_all_away(&last);
    coordinator_finish(&last);
    return STATUS_OK;
}

void server_take_back(struct server *server, uint64_t peer, const struct message *back)
{
    struct coordinator *coordinator = &server->coordinator;
    char why[COORDINATOR_REASON_BYTES];
    struct job job;
    if (coordinator->state >= COORDINATOR_CLOSING && coordinator->verdict != STATUS_AGAIN) {
        return; // it will knock at the next one, if there is one
    }
    if (!coordinator->is_returned && returning_may_begin(coordinator)) {
        enum status status = returning_read_job(back, &server->job, &job, why, sizeof(why));
        if (status != STATUS_OK) {
            log_error("%s %u (host %s) is back, but from another job: %s",
                      role_name(back->member->role), back->member->rank, back->member->host, why);
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

bool server_take_join(struct server *server, uint64_t peer, const struct message *join)
{
    return server->coordinator.is_returned && strcmp(join->text, RINGSIDE_VERSION) == 0 &&
           returning_take_join(&server->returning, &server->generation, &server->coordinator, peer,
                               join, clock_now_ms());
}
