/* Runs the coordinator's loop: receives messages, calls the coordinator, does what it asks for. */
#include "ps-server/server.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/channel/channel_trace.h"
#include "common/job/faults.h"
#include "common/thread/slow_disk.h"
#include "common/transport/port_range.h"
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/coordinator/deadlines.h"
#include "ps-server/invitation.h"
#include "ps-server/record/history.h"
#include "ps-server/server_state.h"

#include <sodium.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLL_MS           50
#define TAKEN_MIN         64
#define CONTROL_FRAME_MAX (UINT64_C(16) << 20) // far above any header and any SUM

static void wake(void *context)
{
    struct server *server = context;
    transport_wake(server->channel->transport);
}

/* Tells a user how to start the workers. */
static void print_invitation(const struct server *server)
{
    const struct server_options *options = server->options;
    const struct invitation invitation = {
        .workers = server->coordinator.carriers.processes,
        .endpoint = server->endpoint,
        .keys = options->keys,
        .is_insecure = options->security->is_insecure,
    };
    char text[INVITATION_BYTES];
    invitation_write(&invitation, text);
    puts(text);
    fflush(stdout);
}

static enum status announce(struct server *server)
{
    int fd = server->options->announce_fd;
    if (server->options->shows_progress && fd < 0) {
        print_invitation(server);
    }
    char said[TRANSPORT_ENDPOINT_BYTES + 32];
    snprintf(said, sizeof(said), "listening at %s", server->endpoint);
    notify_ready(server->options->notify, said);
    return signs_begin(&server->signs, fd, server->endpoint, server->options->launcher_fd >= 0);
}

static void *run_shard(void *data)
{
    const struct shard_service_options *options = data;
    pthread_setname_np(pthread_self(), "shard");
    if (shard_service_run(options) != STATUS_OK) {
        log_debug("shard 0 ended early"); // the coordinator has been told why, and says so
    }
    return NULL;
}

static enum status start_shard(struct server *server)
{
    const struct server_options *options = server->options;
    if (options->job->servers == 0 || job_first_server(options->job) > 0) {
        return STATUS_OK;
    }
    server->shard = (struct shard_service_options){
        .coordinator = server->endpoint,
        .address = options->address,
        .port_range = options->port_range,
        .security = options->security,
        .number = 0,
        .trace = options->trace,
        .join_timeout_ms = (uint32_t)(1000 * options->job->start_timeout),
        .stall_warn_ms = (uint32_t)(1000 * options->job->stall_warn),
        // A signal is the coordinator's to handle: it stops its shard with the others.
        .is_interrupted = &server->is_shard_forsaken,
    };
    if (pthread_create(&server->shard_thread, NULL, run_shard, &server->shard) != 0) {
        log_error("cannot start the shard's thread");
        return STATUS_NO_MEMORY;
    }
    server->has_shard_thread = true;
    return STATUS_OK;
}

static enum status listen_for_members(struct server *server)
{
    const struct server_options *options = server->options;
    struct transport *transport = server->channel->transport;
    const struct endpoints_wish wish = {
        .address = options->address, .port = options->port, .port_range = options->port_range};
    transport_limit_frames(transport, CONTROL_FRAME_MAX);
    server->departures = transport_note_departures(transport);
    if (options->is_local && options->listen_at != NULL && options->listen_at[0] != '\0') {
        snprintf(server->endpoint, sizeof(server->endpoint), "%s", options->listen_at);
        return transport_bind_given(transport, options->listen_at, options->listen_fd);
    }
    return options->is_local ? transport_bind(transport, "ipc://*", server->endpoint)
                             : endpoints_bind_tcp(transport, &wish, server->endpoint);
}

/* A generation may have fewer servers than the job, and one that was taken over others. */
static uint32_t most_shards(const struct server *server)
{
    uint32_t given = job_shard_count(server->options->job);
    uint32_t now = job_shard_count(&server->job);
    return given > now ? given : now;
}

enum status server_open_keeper(struct server *server, uint64_t in_place_step)
{
    const struct server_options *options = server->options;
    enum status status = server_look_at_past(server);
    if (status != STATUS_OK) {
        return status;
    }
    const struct keeper_options keeper = {
        .origin = {.job = &server->job,
                   .resume = options->resume,
                   .folder = options->folder,
                   .mirror = server_may_use_mirror(server) ? options->mirror : "",
                   .may_lack_mirror = server_may_lack_mirror(server),
                   .goes_on = options->goes_on,
                   .was_completed = server->was_completed,
                   .was_lost = server->was_lost,
                   .wait = server_disk_wait(server),
                   .mirror_wait = server_mirror_wait(server)},
        .in_place_part = in_place_step > 0 ? server->in_place_part : NULL,
        .in_place_step = in_place_step,
        .vault = server->vault,
        .mirror = server->mirror,
        .saver = &server->saver,
        .watch = &server->disk_watch,
        .member_count = options->job->workers + most_shards(server),
        .wake = wake,
        .context = server,
    };
    status = keeper_create(&keeper, &server->keeper);
    server->has_disk_failed |= slow_disk_is_given_up(status);
    if (status == STATUS_OK && keeper_lacks_mirror(server->keeper)) {
        status = server_leave_mirror(server);
    }
    if (status != STATUS_OK) {
        keeper_destroy(server->keeper);
        server->keeper = NULL;
    }
    return status;
}

static enum status open_live(struct server *server)
{
    const struct live_options live = {.job = &server->job,
                                      .health = server->options->health,
                                      .dashboard = server->options->dashboard};
    return live_create(&live, &server->live);
}

/* Hands a message to the coordinator if it belongs to this job, or asks to join it. */
static void hand_over(struct server *server, uint64_t peer, const struct message *message)
{
    if (message->kind == MESSAGE_HEARTBEAT && message->clock != NULL) {
        server_tell_clock(server, peer, message);
    }
    if (message->kind == MESSAGE_BACK) {
        server_take_back(server, peer, message);
    } else if (message->kind == MESSAGE_JOIN && server_take_join(server, peer, message)) {
        return;
    } else if (message->kind == MESSAGE_JOIN || message->job_id == server->channel->job_id) {
        coordinator_receive(&server->coordinator, peer, message, clock_now_ms());
    } else if (message->kind == MESSAGE_HEARTBEAT) {
        generation_note_alive(&server->coordinator, peer, clock_now_ms());
    }
}

static void refuse_version(struct server *server, uint64_t peer)
{
    const struct message refusal = {.kind = MESSAGE_REFUSE,
                                    .reason = STATUS_MISMATCH,
                                    .text = "another protocol version: use the same build"};
    if (channel_send(server->channel, peer, &refusal, NULL, NULL) != STATUS_OK) {
        log_debug("cannot send REFUSE: the peer is gone");
    }
}

/* Takes one message. Returns false if none comes in time. */
static bool take_one(struct server *server, int timeout_ms)
{
    struct envelope envelope;
    struct message message;
    enum status status = channel_receive(server->channel, timeout_ms, &envelope, &message);
    if (status == STATUS_OK) {
        uint64_t began_ns = trace_begin(server->channel->trace);
        hand_over(server, envelope.peer, &message);
        channel_trace_message(server->channel, TRACE_CONTROL, &message, began_ns);
        envelope_release(&envelope);
    } else if (status == STATUS_MISMATCH) {
        refuse_version(server, envelope.peer);
    }
    return status != STATUS_TIMED_OUT;
}

/* Takes waiting messages. Peers take turns, so after this many messages every peer that had sent
 * something has been heard, even if more keep coming. */
static void take_messages(struct server *server)
{
    const struct membership *membership = &server->coordinator.membership;
    uint32_t most = TAKEN_MIN + 2 * (membership->worker_count + membership->server_count);
    int timeout_ms = POLL_MS;
    for (uint32_t i = 0; i < most && take_one(server, timeout_ms); i++) {
        timeout_ms = 0;
    }
}

static void take_departures(struct server *server)
{
    uint64_t peer, now_ms = clock_now_ms();
    while (departures_take(server->departures, &peer)) {
        deadlines_note_closed(&server->coordinator, peer, now_ms);
    }
}

static void tick(struct server *server)
{
    uint64_t now_ms = clock_now_ms();
    ended_judge(&server->ended, &server->returning, server->options->job, &server->coordinator,
                now_ms);
    coordinator_tick(&server->coordinator, now_ms,
                     attention_away_ms(&server->attention, now_ms, ATTENTION_TURN_MS));
}

/* Ends the job if a signal has asked for it. */
static void take_signal(struct server *server)
{
    char reason[64];
    int signal = *server->options->is_interrupted;
    if (signal == 0) {
        return;
    }
    snprintf(reason, sizeof(reason), "the coordinator was interrupted by SIG%s",
             sigabbrev_np(signal));
    coordinator_stop(&server->coordinator, STATUS_INTERRUPTED, reason, clock_now_ms());
}

/* Tells those who manage this process that the loop goes round. One that hears nobody might as well
 * stand still, and says nothing to the launcher. */
static void say_alive(struct server *server)
{
    const struct coordinator *coordinator = &server->coordinator;
    uint64_t now_ms = clock_now_ms();
    notify_alive(server->options->notify, now_ms);
    if (!deadlines_is_deaf(coordinator, now_ms)) {
        signs_alive(&server->signs, now_ms, deadlines_patience_ms(coordinator));
    }
}

/* Whether the loop has nothing left to do: the job is over, or the next generation may begin. */
static bool is_over(const struct server *server)
{
    const struct coordinator *coordinator = &server->coordinator;
    bool may_renew =
        coordinator->state == COORDINATOR_RENEWING && !in_place_awaits(coordinator, clock_now_ms());
    return coordinator->state == COORDINATOR_OVER || may_renew;
}

static void loop(struct server *server)
{
    const struct coordinator *coordinator = &server->coordinator;
    while (!is_over(server)) {
        say_alive(server);
        take_messages(server);
        if (server->keeper != NULL) { // see server_open_keeper
            keeper_take_news(server->keeper, &server->coordinator, clock_now_ms());
        }
        take_signal(server);
        server_take_news(server);
        server_check_record(server);
        take_departures(server);
        tick(server);
        live_tick(server->live, &server->coordinator, clock_now_ms());
        if (coordinator->state >= COORDINATOR_CLOSING) {
            signs_ending(&server->signs);
        }
        in_place_ask(&server->coordinator, clock_now_ms());
    }
    signs_busy(&server->signs); // with the disk
}

/* Lets the launcher read from the run folder how the job ended, even while the kernel holds this
 * process, as it does if the disk of a mirror hangs. If that of the run folder hangs, the launcher
 * must not touch it. */
static void say_recorded(struct server *server)
{
    if (server->record_status == STATUS_OK && !server->coordinator.checkpointing.hangs) {
        signs_recorded(&server->signs);
    }
}

static enum status finish(struct server *server)
{
    // A job that could not be resumed leaves what is there as it was.
    bool has_begun = server->has_started || server->is_again || server->coordinator.resume == NULL;
    if (server->recorder != NULL && has_begun && !server->is_replaced) {
        server_finish_record(server);
        say_recorded(server);
    }
    live_ended(server->live, &server->coordinator);
    progress_closing(&server->progress, &server->coordinator);
    return server->coordinator.verdict;
}

/* There is a run folder, so it says how the job has ended. */
static enum status give_up(struct server *server, enum status status, const char *reason)
{
    coordinator_stop(&server->coordinator, status, reason, clock_now_ms());
    if (server->recorder != NULL) {
        server_finish_record(server);
    }
    return status;
}

static enum status start(struct server *server)
{
    const struct server_options *options = server->options;
    enum status status = server_hold_folder(server);
    if (status != STATUS_OK) {
        return status;
    }
    status = channel_create(&server->channel);
    if (status != STATUS_OK) {
        return status;
    }
    status = channel_secure(server->channel, options->security);
    if (status != STATUS_OK) {
        return status;
    }
    status = server_open_trace(server);
    if (status != STATUS_OK) {
        return status;
    }
    status = job_may_redeal(&server->job) ? vault_create(&server->vault) : STATUS_OK;
    if (status != STATUS_OK) {
        return status;
    }
    status = server_open_mirror(server);
    if (status != STATUS_OK) {
        return status;
    }
    status = server_open_keeper(server, 0);
    if (status != STATUS_OK) {
        return status;
    }
    status = server_check_completed(server);
    if (status != STATUS_OK) {
        return status;
    }
    status = listen_for_members(server);
    if (status != STATUS_OK) {
        return status;
    }
    status = server_open_job(server);
    if (status != STATUS_OK) {
        return status;
    }
    status = open_live(server);
    if (status != STATUS_OK) {
        return status;
    }
    status = server_open_record(server);
    if (status != STATUS_OK) {
        return status;
    }
    status = server_begin_mirror(server);
    if (status != STATUS_OK) {
        return give_up(server, status, "copies cannot be written to --mirror, as the log says");
    }
    live_print_url(server->live);
    status = announce(server);
    if (status != STATUS_OK) {
        return give_up(server, status, "the coordinator could not say where it listens");
    }
    status = start_shard(server);
    return status == STATUS_OK ? status
                               : give_up(server, status, "the coordinator's shard did not start");
}

/* Whether this process's own shard was told to join, and has not come while there was time. */
static bool awaits_shard(const struct coordinator *coordinator)
{
    const struct membership *membership = &coordinator->membership;
    uint32_t stride = coordinator->job->servers;
    for (uint32_t i = 0; coordinator->calls_back && i < membership->server_count; i += stride) {
        if (membership->servers[i].state == SLOT_FREE) {
            return true;
        }
    }
    return false;
}

/* A disk that was said to hang is not waited for. */
static void end_saver(struct server *server, bool is_recorded)
{
    bool hangs = server->coordinator.checkpointing.hangs || !is_recorded;
    if (!saver_destroy(server->saver, hangs ? 0 : server_disk_patience_ms(server))) {
        log_error("the disk has not taken the rest of a checkpoint in %s/checkpoint: what is not "
                  "whole there is left behind, and the next job that writes there removes it",
                  server->options->folder);
    }
}

static void destroy(struct server *server, bool is_over)
{
    if (server->has_shard_thread) {
        if (awaits_shard(&server->coordinator)) {
            atomic_store(&server->is_shard_forsaken, 1); // nobody answers it any more
        }
        pthread_join(server->shard_thread, NULL);
    }
    live_destroy(server->live);
    bool is_recorded = recorder_destroy(server->recorder, server_disk_patience_ms(server));
    keeper_destroy(server->keeper);
    end_saver(server, is_recorded); // wakes the channel
    server_end_mirror(server, is_over);
    vault_destroy(server->vault);
    json_decref(server->in_place_part);
    channel_destroy(server->channel, 200);
    signs_end(&server->signs);
    if (is_recorded) { // otherwise it ends with the process
        server_release_folder(server);
    }
    coordinator_finish(&server->coordinator);
    generation_finish(&server->generation);
    returning_finish(&server->returning);
    job_part_finish(&server->begun);
    sodium_memzero(server->seal_key, sizeof(server->seal_key));
    free(server);
}

enum status server_run(const struct server_options *options)
{
    struct server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        return STATUS_NO_MEMORY;
    }
    server->options = options;
    server->signs.fd = -1;
    server->job = *options->job;
    progress_init(&server->progress, options->shows_progress, options->shows_ranks);
    launcher_pipe_init(&server->launcher, options->launcher_fd);
    enum status status = start(server);
    if (status == STATUS_OK) {
        do {
            loop(server);
        } while (server_goes_on(server));
        status = finish(server);
    } else if (status == STATUS_END_OF_DATA) {
        bool has_checkpoint = server->keeper == NULL; // which has said so
        progress_nothing_left(&server->progress, options->folder,
                              has_checkpoint && server->job.epochs > 0);
        status = STATUS_OK;
    }
    destroy(server, status == STATUS_OK);
    return status;
}
