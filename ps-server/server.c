/* The coordinator's loop: receives messages, calls the coordinator, does what it asks for. */
#include "ps-server/server.h"

#include "common/base/attention.h"
#include "common/base/clock.h"
#include "common/base/departures.h"
#include "common/base/log.h"
#include "common/channel/channel.h"
#include "common/transport/port_range.h"
#include "ps-server/coordinator/coordinator.h"
#include "ps-server/coordinator/deadlines.h"
#include "ps-server/coordinator/launcher_news.h"
#include "ps-server/record/progress.h"
#include "ps-server/record/recorder.h"
#include "ps-server/shard/shard_service.h"

#include <sodium.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLL_MS           50
#define TAKEN_MIN         64
#define TURN_MS           250                  // a turn of a healthy loop takes less
#define CONTROL_FRAME_MAX (UINT64_C(16) << 20) // far above any header and any SUM

struct server {
    const struct server_options *options;
    struct channel *channel;
    struct coordinator coordinator;
    struct attention attention;
    struct departures *departures; // of the transport
    struct recorder *recorder;     // NULL: no run folder
    struct progress progress;
    struct launcher_pipe launcher;
    enum status record_status; // of the first file that could not be written
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    char job_text[JOB_TEXT_BYTES];
    unsigned char seal_key[WIRE_SEAL_KEY_BYTES]; // of a job whose data travel in clear

    pthread_t shard_thread;
    bool has_shard_thread;
    struct shard_service_options shard;
};

static void port_send(void *context, uint64_t peer, const struct message *message)
{
    struct server *server = context;
    if (channel_send(server->channel, peer, message, NULL, NULL) != STATUS_OK) {
        log_debug("cannot send %s: the member is gone", message_kind_name(message->kind));
    }
}

static enum presence port_look(void *context, struct sighting *sighting)
{
    (void)context;
    return presence_look(sighting);
}

static void port_log(void *context, bool is_error, const char *sentence)
{
    struct server *server = context;
    progress_break(&server->progress);
    log_write(is_error ? LOG_ERROR : LOG_INFO, "%s", sentence);
}

static void note_record(struct server *server, enum status status)
{
    if (server->record_status == STATUS_OK) {
        server->record_status = status;
    }
}

static void port_started(void *context)
{
    struct server *server = context;
    progress_started(&server->progress, &server->coordinator);
    if (server->recorder != NULL) {
        note_record(server, recorder_write_job(server->recorder, &server->coordinator));
    }
}

static void port_switched(void *context)
{
    struct server *server = context;
    progress_switched(&server->progress, &server->coordinator);
}

static void port_reported(void *context, uint32_t rank, const struct message *message)
{
    struct server *server = context;
    uint64_t now_ms = clock_now_ms();
    if (server->recorder != NULL && server->record_status == STATUS_OK) {
        note_record(server, recorder_add_metrics(server->recorder, &server->coordinator, rank,
                                                 message, now_ms));
    }
    progress_reported(&server->progress, &server->coordinator, now_ms);
}

static void port_epoch_closed(void *context, uint32_t epoch)
{
    struct server *server = context;
    progress_epoch(&server->progress, &server->coordinator, epoch);
}

static enum status announce(const struct server *server)
{
    int fd = server->options->announce_fd;
    if (server->options->shows_progress && fd < 0) {
        printf("waiting for %u worker%s: worker --server %s%s\n", server->options->job->workers,
               server->options->job->workers == 1 ? "" : "s", server->endpoint,
               server->options->security->keys != NULL ? " --keys FILE" : "");
        fflush(stdout);
    }
    char said[TRANSPORT_ENDPOINT_BYTES + 32];
    snprintf(said, sizeof(said), "listening at %s", server->endpoint);
    notify_ready(server->options->notify, said);
    if (fd < 0) {
        return STATUS_OK;
    }
    char line[TRANSPORT_ENDPOINT_BYTES + 1];
    int size = snprintf(line, sizeof(line), "%s\n", server->endpoint);
    if (write(fd, line, (size_t)size) != size) {
        log_error("cannot announce the endpoint on file descriptor %d (--announce-fd)", fd);
        return STATUS_IO;
    }
    close(fd);
    return STATUS_OK;
}

static const atomic_int never_interrupted = 0;

static void *run_shard(void *data)
{
    const struct shard_service_options *options = data;
    pthread_setname_np(pthread_self(), "shard");
    if (shard_service_run(options) != STATUS_OK) {
        log_debug("shard 0 ended early"); // the coordinator has heard why, and says so
    }
    return NULL;
}

static enum status start_shard(struct server *server)
{
    const struct server_options *options = server->options;
    if (options->job->servers == 0) {
        return STATUS_OK;
    }
    server->shard = (struct shard_service_options){
        .coordinator = server->endpoint,
        .address = options->address,
        .port_range = options->port_range,
        .security = options->security,
        .index = 0,
        .join_timeout_ms = (uint32_t)(1000 * options->job->start_timeout),
        // A signal is the coordinator's to handle: it stops its shard with the others.
        .is_interrupted = &never_interrupted,
    };
    if (pthread_create(&server->shard_thread, NULL, run_shard, &server->shard) != 0) {
        log_error("cannot start the shard's thread");
        return STATUS_NO_MEMORY;
    }
    server->has_shard_thread = true;
    return STATUS_OK;
}

static enum status open_server(struct server *server)
{
    const struct server_options *options = server->options;
    const struct endpoints_wish wish = {
        .address = options->address, .port = options->port, .port_range = options->port_range};
    transport_limit_frames(server->channel->transport, CONTROL_FRAME_MAX);
    server->departures = transport_note_departures(server->channel->transport);
    enum status status =
        options->is_local ? transport_bind(server->channel->transport, "ipc://*", server->endpoint)
                          : endpoints_bind_tcp(server->channel->transport, &wish, server->endpoint);
    if (status != STATUS_OK) {
        return status;
    }
    randombytes_buf(&server->channel->job_id, sizeof(server->channel->job_id));
    status = job_encode(options->job, server->job_text, sizeof(server->job_text));
    if (status != STATUS_OK) {
        return status;
    }
    struct coordinator_port port_functions = {
        .context = server,
        .look = port_look,
        .send = port_send,
        .log = port_log,
        .started = port_started,
        .switched = port_switched,
        .reported = port_reported,
        .epoch_closed = port_epoch_closed,
    };
    status = coordinator_init(&server->coordinator, options->job, server->job_text, &port_functions,
                              clock_now_ms());
    if (status == STATUS_OK && strcmp(options->job->security, "auth-only") == 0) {
        randombytes_buf(server->seal_key, sizeof(server->seal_key));
        server->coordinator.seal_key = server->seal_key;
    }
    return status;
}

static void take_launcher_news(struct server *server)
{
    struct launcher_news news;
    while (launcher_pipe_next(&server->launcher, &news)) {
        launcher_news_apply(&news, &server->coordinator, clock_now_ms());
    }
}

/* Takes one message; false if none comes in time. */
static bool take_one(struct server *server, int timeout_ms)
{
    struct envelope envelope;
    struct message message;
    enum status status = channel_receive(server->channel, timeout_ms, &envelope, &message);
    if (status == STATUS_OK) {
        bool is_ours = message.kind == MESSAGE_JOIN || message.job_id == server->channel->job_id;
        if (is_ours) {
            coordinator_receive(&server->coordinator, envelope.peer, &message, clock_now_ms());
        }
        envelope_release(&envelope);
    } else if (status == STATUS_MISMATCH) {
        struct message refusal = {.kind = MESSAGE_REFUSE,
                                  .reason = STATUS_MISMATCH,
                                  .text = "another protocol version: use the same build"};
        port_send(server, envelope.peer, &refusal);
    }
    return status != STATUS_TIMED_OUT;
}

/* Takes waiting messages. Peers are received from in turn, so after this many messages every peer
 * that had sent something was heard, even if more keep coming. */
static void take_all(struct server *server)
{
    const struct membership *membership = &server->coordinator.membership;
    uint32_t most = TAKEN_MIN + 2 * (membership->worker_count + membership->server_count);
    int timeout_ms = POLL_MS;
    for (uint32_t i = 0; i < most && take_one(server, timeout_ms); i++) {
        timeout_ms = 0;
    }
}

static void tick(struct server *server)
{
    uint64_t peer, now_ms = clock_now_ms();
    while (departures_take(server->departures, &peer)) {
        deadlines_note_closed(&server->coordinator, peer, now_ms);
    }
    coordinator_tick(&server->coordinator, now_ms,
                     attention_away_ms(&server->attention, now_ms, TURN_MS));
}

static void loop(struct server *server)
{
    struct coordinator *coordinator = &server->coordinator;
    server->attention.looked_ms = coordinator->created_ms;
    while (coordinator->state != COORDINATOR_OVER) {
        notify_alive(server->options->notify, clock_now_ms());
        take_all(server);
        if (*server->options->is_interrupted != 0) {
            char reason[64];
            snprintf(reason, sizeof(reason), "the coordinator was interrupted by SIG%s",
                     sigabbrev_np(*server->options->is_interrupted));
            coordinator_stop(coordinator, STATUS_INTERRUPTED, reason, clock_now_ms());
        }
        take_launcher_news(server);
        if (server->record_status != STATUS_OK) {
            coordinator_stop(coordinator, server->record_status, recorder_error(server->recorder),
                             clock_now_ms());
        }
        tick(server);
    }
}

static enum status finish(struct server *server)
{
    struct coordinator *coordinator = &server->coordinator;
    if (server->recorder == NULL) {
        progress_closing(&server->progress, coordinator);
        return coordinator->verdict;
    }
    if (server->record_status == STATUS_OK) {
        note_record(server, recorder_close_metrics(server->recorder, coordinator));
    }
    if (coordinator->started_ms == 0) {
        note_record(server, recorder_write_job(server->recorder, coordinator));
    } else {
        note_record(server, recorder_write_details(server->recorder, coordinator));
    }
    if (coordinator->verdict == STATUS_OK && server->record_status != STATUS_OK) {
        coordinator_amend(coordinator, server->record_status, recorder_error(server->recorder));
    }
    // Last: it says how the job has ended, and the exit code says the same.
    enum status status = recorder_write_summary(server->recorder, coordinator);
    if (status != STATUS_OK && coordinator->verdict == STATUS_OK) {
        coordinator_amend(coordinator, status, recorder_error(server->recorder));
    }
    progress_closing(&server->progress, coordinator);
    return coordinator->verdict;
}

enum status server_run(const struct server_options *options)
{
    struct server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        return STATUS_NO_MEMORY;
    }
    server->options = options;
    progress_init(&server->progress, options->shows_progress);
    launcher_pipe_init(&server->launcher, options->launcher_fd);
    enum status status = channel_create(&server->channel);
    if (status == STATUS_OK) {
        status = channel_secure(server->channel, options->security);
    }
    if (status == STATUS_OK) {
        status = open_server(server);
    }
    if (status == STATUS_OK && options->folder[0] != '\0') {
        status = recorder_create(options->folder, &server->recorder);
    }
    if (status == STATUS_OK) {
        status = announce(server);
    }
    if (status == STATUS_OK) {
        status = start_shard(server);
    }
    if (status == STATUS_OK) {
        loop(server);
        status = finish(server);
    }
    if (server->has_shard_thread) {
        pthread_join(server->shard_thread, NULL);
    }
    recorder_destroy(server->recorder);
    channel_destroy(server->channel, 200);
    coordinator_finish(&server->coordinator);
    sodium_memzero(server->seal_key, sizeof(server->seal_key));
    free(server);
    return status;
}
