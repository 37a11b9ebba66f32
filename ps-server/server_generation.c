/* Makes a coordinator for each generation of a job. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/job/faults.h"
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/server_state.h"

#include <sodium.h>

#include <stdio.h>

static enum status init_coordinator(struct server *server)
{
    const struct coordinator_port port = server_port(server);
    const struct job *job = &server->job;
    enum status status =
        coordinator_init(&server->coordinator, job, server->job_text, &port, clock_now_ms());
    if (status != STATUS_OK) {
        return status;
    }
    server->attention.looked_ms = server->coordinator.created_ms;
    keeper_hand_over(server->keeper, &server->coordinator);
    server->coordinator.is_launched = server->options->launcher_fd >= 0;
    if (job->security == SECURITY_AUTH_ONLY) {
        randombytes_buf(server->seal_key, sizeof(server->seal_key));
        server->coordinator.seal_key = server->seal_key;
    }
    return STATUS_OK;
}

enum status server_open_job(struct server *server)
{
    faults_forget_steps(&server->job, keeper_begin_step(server->keeper));
    randombytes_buf(&server->channel->job_id, sizeof(server->channel->job_id));
    enum status status = job_encode(&server->job, server->job_text, sizeof(server->job_text));
    return status == STATUS_OK ? init_coordinator(server) : status;
}

/* What the next generation begins with, in place: without memory for that it begins at a copy. One
 * that has overtaken the last before that had trained begins with the same. */
static void describe_in_place(struct server *server, struct generation *next)
{
    bool is_overtaken = server->coordinator.started_ms == 0 && next->in_place_step > 0;
    if (is_overtaken) {
        return;
    }
    json_decref(server->in_place_part);
    server->in_place_part = NULL;
    if (next->in_place_step > 0) {
        in_place_describe(&server->coordinator, next->in_place_step);
        server->in_place_part = job_part_json(&server->coordinator, clock_now_ms());
    }
    if (next->in_place_step > 0 && server->in_place_part == NULL) {
        struct recovery *recovery = &next->recoveries[next->recovery_count - 1];
        log_warn("the job does not go on in place: there is no memory for its results");
        next->in_place_step = 0;
        recovery->is_in_place = false;
        generation_raise_lost_step(&server->coordinator,
                                   generation_most_steps(&server->coordinator), recovery);
    }
}

/* Makes the coordinator of the next generation in the place of the last one, which stays if that
 * cannot be. */
static enum status begin_generation(struct server *server)
{
    struct generation next;
    enum status status = generation_next(&server->coordinator, &next);
    if (status != STATUS_OK) {
        return status;
    }
    describe_in_place(server, &next);
    coordinator_call_back(&server->coordinator, clock_now_ms());
    struct coordinator last = server->coordinator;
    const struct job own = server->job;
    bool leaves_mirror = keeper_lacks_mirror(server->keeper) && !server->has_left_mirror;
    keeper_destroy(server->keeper);
    server->keeper = NULL;
    server->coordinator.resume = last.resume = NULL; // the keeper had it
    generation_change_job(&last, &next, &server->job);
    status = leaves_mirror ? server_leave_mirror(server) : STATUS_OK;
    if (status != STATUS_OK) {
        goto fail;
    }
    status = server_open_keeper(server, next.in_place_step);
    if (status != STATUS_OK) {
        goto fail;
    }
    status = server_open_job(server);
    if (status != STATUS_OK) {
        server->coordinator = last;
        goto fail;
    }
    if (job_may_commit(&server->job)) {
        results_keep_committed(&server->coordinator.results, &last.results);
    }
    coordinator_finish(&last);
    generation_finish(&server->generation);
    server->generation = next;
    generation_begin(&server->generation, &server->coordinator);
    signs_renewed(&server->signs, server->launcher.taken);
    return STATUS_OK;

fail:
    server_restore_job(server, &own); // those who come to hear the verdict are of the last one
    generation_finish(&next);
    return status;
}

/* The job does not go on after all. */
static void fail_after_all(struct server *server, enum status status, const char *why)
{
    struct coordinator *coordinator = &server->coordinator;
    char reason[COORDINATOR_REASON_BYTES], lost[COORDINATOR_REASON_BYTES];
    generation_explain(coordinator, lost);
    snprintf(reason, sizeof(reason), "%.380s; the job cannot go on: %.100s", lost, why);
    coordinator_fail_to_renew(coordinator, status, reason, clock_now_ms());
}

bool server_goes_on(struct server *server)
{
    char why[COORDINATOR_REASON_BYTES];
    if (server->coordinator.state != COORDINATOR_RENEWING) {
        return false;
    }
    ended_leave(&server->ended, &server->returning, server->options->job, &server->coordinator,
                clock_now_ms());
    returning_settle(&server->returning, &server->coordinator);
    if (!generation_has_enough(&server->coordinator, why, sizeof(why))) {
        fail_after_all(server, STATUS_UNREACHABLE, why);
        return true;
    }
    enum status status = begin_generation(server);
    if (status != STATUS_OK) {
        fail_after_all(server, status, status_text(status));
    }
    return true;
}
