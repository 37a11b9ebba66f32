/* The loop around a shard: receives messages of workers, decodes them, and sends its answers. */
#include "ps-server/shard/shard_service.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/channel/channel_trace.h"
#include "common/job/carriers.h"
#include "common/job/job_modes.h"
#include "common/job/phases.h"
#include "common/security/security.h"
#include "common/transport/endpoints.h"
#include "ps-server/shard/frame_limit.h"
#include "ps-server/shard/service_state.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLL_MS   100
#define LINGER_MS 200

/* Copies an answer to where it stays as it is: a worker asks again only after it has read all of
 * the last one, so each has one buffer. False if there is none. */
static bool keep_answer(struct service *service, uint32_t rank, struct message *message)
{
    struct span span;
    if (service->answer_count == 0) {
        return false;
    }
    float *params = service->region.bytes;
    const float *part = shard_params(service->shard, message->bucket, &span);
    float *buffer = params + (1 + rank) * service->value_count + (part - params);
    shard_copy(service->shard, buffer, message->values, message->span.count);
    message->values = buffer;
    return true;
}

static uint64_t worker_peer(const struct service *service, uint32_t rank)
{
    return callers_lanes(&service->far.callers, rank)->peers[0];
}

static void note_work(void *context, enum shard_work work, uint32_t bucket, bool is_begin)
{
    static const enum trace_kind kinds[] = {[SHARD_SUM] = TRACE_SUM,
                                            [SHARD_UPDATE] = TRACE_UPDATE,
                                            [SHARD_SUM_AND_UPDATE] = TRACE_SUM_AND_UPDATE};
    struct service *service = context;
    struct trace_tape *trace = service->channel->trace;
    if (is_begin) {
        service->work_ns = trace_begin(trace);
    } else {
        trace_note_cpu(trace, service->handled_step);
        trace_end(trace, service->work_ns,
                  &(struct trace_tag){kinds[work], bucket, .step = service->handled_step});
    }
}

struct shard_watch service_watch(struct service *service)
{
    return service->channel->trace != NULL ? (struct shard_watch){note_work, service}
                                           : (struct shard_watch){0};
}

/* The step of the job that a message is of. A pull names the step that comes next, and the shard
 * computes for the one before. */
static void note_step(struct service *service, const struct message *message)
{
    const struct trace_tape *trace = service->channel->trace;
    if (trace != NULL) {
        bool is_ahead = message->kind == MESSAGE_PULL && message->step > 0;
        service->handled_step = trace_step_of(trace, message->step - is_ahead);
    }
}

static void send_to_worker(void *context, uint32_t rank, const struct message *message)
{
    struct service *service = context;
    struct message answer = *message;
    answer_encoder_encode(&service->answer_encoder, &answer);
    bool is_stable = answer.encoded != NULL || shard_values_are_stable(service->shard) ||
                     keep_answer(service, rank, &answer);
    if (service->vectors != NULL && !channel_lends(service->channel, worker_peer(service, rank))) {
        log_warn("worker=%u has asked for what it does not reach: PARAMS are not sent", rank);
        return;
    }
    if (far_workers_answer(&service->far, rank, &answer, is_stable) != STATUS_OK) {
        // The coordinator decides when a worker is lost, and says so; until then this is a fact.
        log_info("cannot send %s: the worker of rank %u is gone", message_kind_name(message->kind),
                 rank);
    }
}

static enum status meet_worker(struct service *service, const struct message *hello, uint64_t peer)
{
    bool is_new;
    enum status status = callers_meet(&service->far.callers, hello, peer, &is_new);
    if (status != STATUS_OK) {
        return status;
    }
    if (hello->hello->is_far) {
        channel_go_far(service->channel);
    }
    if (is_new && channel_has_view(service->channel, peer) &&
        channel_offer(service->channel, peer) != STATUS_OK) {
        log_info("cannot answer the worker of rank %u: it is gone", hello->rank);
    }
    return STATUS_OK;
}

/* SEED, PUSH or PULL of a worker that has said hello by this connection. */
static enum status take_data(struct service *service, const struct message *message,
                             struct envelope *envelope)
{
    struct message decoded = *message;
    bool has_values = message->kind == MESSAGE_PUSH || message->kind == MESSAGE_SEED;
    if (service->vectors != NULL && has_values && message->loan == NULL) {
        return STATUS_MALFORMED; // a GPU reads values where they are
    }
    if (!callers_are(&service->far.callers, message->rank, envelope->peer)) {
        return STATUS_DENIED;
    }
    far_workers_note_taken(&service->far, message->rank);
    enum status status = answer_encoder_decode(&service->answer_encoder, &decoded, envelope);
    if (status != STATUS_OK) {
        return status;
    }
    if (message->kind == MESSAGE_SEED) {
        answer_encoder_note_seed(&service->answer_encoder, message);
    }
    status = shard_receive(service->shard, &decoded, envelope, send_to_worker, service);
    if (status == STATUS_OK && message->kind == MESSAGE_PUSH) {
        far_workers_credit(&service->far, message);
    }
    return status;
}

/* Data of a worker. What does not belong is dropped, and the job is not disturbed. */
static void handle_data(struct service *service, const struct message *message,
                        struct envelope *envelope)
{
    enum status status = STATUS_MALFORMED;
    if (message->job_id == service->channel->job_id && service->shard != NULL) {
        status = message->kind == MESSAGE_HELLO ? meet_worker(service, message, envelope->peer)
                                                : take_data(service, message, envelope);
    }
    if (status != STATUS_OK) {
        channel_note_dropped(service->channel, envelope, message, status);
    }
}

static enum status handle_coordinator(struct service *service, const struct message *message)
{
    bool is_ready;
    if (message->kind == MESSAGE_START) {
        return service_begin_phase(service, message);
    }
    if (message->kind == MESSAGE_GO) {
        service_go(service, message); // there is nothing to do: workers speak first
        return STATUS_OK;
    }
    enum status status = service_checkpoint_handle(service, message, &is_ready);
    return status == STATUS_OK && is_ready ? member_connected(&service->member) : status;
}

static enum status handle(struct service *service, const struct message *message,
                          struct envelope *envelope)
{
    if (member_handle(&service->member, envelope, message)) {
        return STATUS_OK;
    }
    if (envelope->peer == service->member.coordinator) {
        return handle_coordinator(service, message);
    }
    handle_data(service, message, envelope);
    service_checkpoint_advance(service);
    enum status status = service->shard != NULL ? shard_fault(service->shard) : STATUS_OK;
    return status == STATUS_OK ? service_strike(service) : status;
}

/* Tells the coordinator what travelled: the closing message of a server. */
static void send_done(struct service *service)
{
    struct wire_report report = {
        .bytes_sent = service->channel->bytes_sent,
        .bytes_received = service->channel->bytes_received,
        .compute_ns = service->busy_ns,
        .total_ns = clock_now_ns() - service->started_ns,
        .backlog = service->backlog_max,
    };
    service_add_counts(service);
    report.late = service->late_count;
    if (service->staleness.total > 0) {
        report.staleness = service->staleness.counts;
        report.staleness_bins = staleness_bins(&service->staleness);
        report.staleness_sum = service->staleness.sum;
        report.staleness_max = service->staleness.max;
    }
    struct message done = {
        .kind = MESSAGE_DONE,
        .rank = service->index,
        .step = service->update_count,
        .member = &service->member.self,
        .report = &report,
    };
    if (channel_send(service->channel, service->member.coordinator, &done, NULL, NULL) !=
        STATUS_OK) {
        log_warn("could not tell the coordinator that shard %u is done", service->index);
    }
}

/* The next message: without waiting, if there is one. Counts how many came so. */
static enum status receive(struct service *service, struct envelope *envelope,
                           struct message *message)
{
    enum status status = channel_receive(service->channel, 0, envelope, message);
    if (status == STATUS_TIMED_OUT) { // after a wake there is something else to do first
        service->backlog = 0;
        status = channel_receive(service->channel, POLL_MS, envelope, message);
    }
    service->backlog += status == STATUS_OK;
    if (service->backlog > service->backlog_max) {
        service->backlog_max = service->backlog;
    }
    return status;
}

/* Sends heartbeats, which say for which worker this shard waits. */
static void tick(struct service *service, uint64_t now_ms)
{
    uint64_t version = service->shard != NULL ? shard_version(service->shard) : 0;
    const struct far_workers *far = &service->far;
    struct wire_wait wait = {.role = ROLE_WORKER, .what = WIRE_WAIT_GRADIENTS};
    uint32_t rank, process;
    if (member_is_due(&service->member, now_ms)) {
        if (service->shard != NULL &&
            callers_take_departed(&far->callers, service->departures, &process)) {
            member_note_broken(&service->member, ROLE_WORKER, process, now_ms);
        }
        bool is_waiting = service->shard != NULL && shard_awaits(service->shard, &rank);
        if (is_waiting) {
            wait.index = carriers_process(far->callers.carriers, rank);
            wait.taken = far->taken[wait.index];
            wait.given = far->given;
            wait.given_count = far->callers.carriers.processes;
        }
        member_note_wait(&service->member, is_waiting ? &wait : NULL, now_ms);
    }
    service_prepare_alone(service);
    member_tick(&service->member, now_ms, version);
    service_knock(service);
}

/* Tells the coordinator why this shard ends. */
static void leave(struct service *service, enum status status)
{
    char why[256] = "the shard cannot be held";
    const struct shard_dispute *dispute =
        service->shard != NULL ? shard_dispute(service->shard) : NULL;
    if (dispute != NULL) {
        const struct optimizer_difference *differs = &dispute->differs;
        snprintf(why, sizeof(why),
                 "in step %llu worker %u has %s=%.9g (group %u of its parameters), and worker %u "
                 "has %s=%.9g: all have to set the same before they compute gradients",
                 (unsigned long long)dispute->step, dispute->rank, differs->name, differs->value,
                 differs->group, dispute->other, differs->name, differs->other);
        log_error("%s", why);
    }
    member_leave(&service->member, status, why);
}

static enum status serve(struct service *service)
{
    service->started_ns = clock_now_ns();
    while (!service->member.is_stopped) {
        if (*service->options->is_interrupted != 0) {
            member_leave(&service->member, STATUS_INTERRUPTED, "interrupted by a signal");
            return STATUS_INTERRUPTED;
        }
        uint64_t now_ms = clock_now_ms();
        notify_alive(service->options->notify, now_ms);
        tick(service, now_ms);
        if (pacer_go_on(service->far.pacer) != STATUS_OK) {
            log_info("cannot send PARAMS: a worker is gone");
        }
        struct envelope envelope;
        struct message message;
        enum status status = receive(service, &envelope, &message);
        if (status != STATUS_OK) {
            continue;
        }
        uint64_t began_ns = clock_now_ns();
        note_step(service, &message);
        status = handle(service, &message, &envelope);
        channel_trace_message(service->channel, TRACE_SHARD_RECEIVE, &message, began_ns);
        envelope_release(&envelope);
        service->busy_ns += clock_now_ns() - began_ns;
        if (status != STATUS_OK) {
            leave(service, status);
            return status;
        }
    }
    send_done(service);
    return service->member.stop_status;
}

static enum status join(struct service *service, char *place, char *host, size_t host_size)
{
    const struct shard_service_options *options = service->options;
    gethostname(host, host_size);
    host[host_size - 1] = '\0';
    service->member = (struct member){
        .channel = service->channel,
        .self = {.role = ROLE_SERVER,
                 .has_rank = true,
                 .rank = options->number,
                 .host_id = transport_host_id(),
                 .host = host,
                 .process_id = (uint64_t)getpid(),
                 .endpoints = place,
                 .loopback = security_told_loopback(options->coordinator, options->address),
                 .launch = options->launch},
        .notify = options->notify,
        .stall_warn_ms = options->stall_warn_ms,
        .outlast_ms = options->outlast_ms,
    };
    enum status status = member_connect(&service->member, options->coordinator);
    if (status == STATUS_OK) {
        status = member_join(&service->member, options->coordinator, options->join_timeout_ms,
                             options->is_interrupted, &service->job, &service->index);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (!service->member.is_in_place) { // all go on from something else
        kept_shard_finish(options->kept);
    }
    service->departures = transport_note_departures(service->channel->transport);
    status = far_workers_create(service->channel, &service->job, &service->far);
    if (status != STATUS_OK) {
        return status;
    }
    const struct endpoints_wish wish = {.address = options->address,
                                        .port_range = options->port_range,
                                        .toward = options->coordinator};
    transport_limit_frames(service->channel->transport, frame_limit_of(&service->job));
    status = channel_listen(service->channel, service->job.transport, &wish, place);
    if (status != STATUS_OK) {
        member_leave(&service->member, status, "the data socket cannot be opened");
        return status;
    }
    return member_ready(&service->member, NULL, NULL);
}

static enum status run_generation(const struct shard_service_options *options,
                                  uint32_t *ret_outlast_ms);

static void *run_thread(void *data)
{
    const struct shard_service_options *options = data;
    pthread_setname_np(pthread_self(), "shard");
    uint32_t outlast_ms;
    // The first one of this server comes back for all.
    enum status status = run_generation(options, &outlast_ms);
    if (status != STATUS_OK && status != STATUS_AGAIN) {
        log_debug("shard %u has ended early", options->number); // it has said why
    }
    return NULL;
}

/* The other shards of this server: those behind its first one, which alone knows how many. */
static enum status start_threads(struct service *service)
{
    const struct job *job = &service->job;
    if (service->index >= job->servers || job->server_threads == 1) {
        return STATUS_OK;
    }
    // See generation.h: shards of later generations have other places, not other numbers.
    uint32_t stride = service->member.generation == 0 ? job->servers : JOB_SERVERS_MAX;
    service->threads = calloc(job->server_threads, sizeof(*service->threads));
    for (uint32_t i = 1; i < job->server_threads && service->threads != NULL; i++) {
        struct shard_thread *thread = &service->threads[i - 1];
        thread->options = *service->options;
        thread->options.number += i * stride;
        thread->options.kept += i;
        thread->options.outlast_ms = job_outlast_ms(&service->job);
        thread->options.notify = NULL; // the first one speaks for all
        if (pthread_create(&thread->id, NULL, run_thread, &thread->options) != 0) {
            break;
        }
        service->thread_count++;
    }
    if (service->thread_count + 1 < job->server_threads) {
        member_leave(&service->member, STATUS_NO_MEMORY, "it cannot start all of its threads");
        return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static void join_threads(struct service *service)
{
    for (uint32_t i = 0; i < service->thread_count; i++) {
        pthread_join(service->threads[i].id, NULL);
    }
    free(service->threads);
}

static enum status open_trace(struct service *service, const char *host)
{
    const struct job *job = &service->job;
    const struct trace_window window = job_timeline(job);
    struct trace *trace = job->timeline ? service->options->trace : NULL;
    bool is_first = service->index < job->servers; // of the process
    if (is_first && job->timeline && !trace_has_folder(trace)) {
        log_warn("the job has a timeline, and this process has no part of it: --timeline-dir says "
                 "where that would go");
    }
    if (is_first) {
        trace_describe(trace, &(struct trace_process){
                                  .role = "ps",
                                  .number = job_first_server(job) + service->index,
                                  .host = host,
                                  .host_id = transport_host_id(),
                                  .is_unsynchronised = job_is_unsynchronised(job),
                              });
    }
    return trace_open_tape(trace, TRACE_SHARD, service->index, &window, &service->channel->trace);
}

static enum status join_and_serve(struct service *service)
{
    const struct shard_service_options *options = service->options;
    char place[ENDPOINTS_PLACE_BYTES] = "", host[256];
    enum status status = channel_secure(service->channel, options->security);
    if (status != STATUS_OK) {
        return status;
    }
    status = join(service, place, host, sizeof(host));
    if (status != STATUS_OK) {
        return status;
    }
    status = open_trace(service, host);
    if (status != STATUS_OK) {
        member_leave(&service->member, status, "it has no memory for its timeline");
        return status;
    }
    status = start_threads(service);
    if (status != STATUS_OK) {
        return status;
    }
    uint32_t shard_count = job_shard_count(&service->job);
    log_info("shard %u of %u: listening at %s", service->index, shard_count, place);
    char said[64];
    snprintf(said, sizeof(said), "joined as shard %u of %u", service->index, shard_count);
    notify_ready(options->notify, said);
    return serve(service);
}

/* Until its generation of the job's processes is over. */
static enum status run_generation(const struct shard_service_options *options,
                                  uint32_t *ret_outlast_ms)
{
    struct service service = {.options = options};
    enum status status = channel_create(&service.channel);
    if (status != STATUS_OK) {
        return status;
    }
    status = join_and_serve(&service);
    // Its messages read the shard's parameters, and the shard may hold some that came.
    channel_close(service.channel, status == STATUS_AGAIN ? 0 : LINGER_MS);
    join_threads(&service);
    service_checkpoint_finish(&service);
    shard_destroy(service.shard);
    answer_encoder_finish(&service.answer_encoder);
    channel_destroy(service.channel, 0);
    service_free_region(&service);
    far_workers_destroy(&service.far);
    *ret_outlast_ms = job_outlast_ms(&service.job);
    return status;
}

enum status shard_service_run(const struct shard_service_options *options)
{
    struct shard_service_options again = *options;
    struct kept_shard kept[JOB_SERVERS_MAX] = {{.gradients = 0}}; // one for each thread, of any job
    enum status status;
    again.kept = kept;
    do {
        status = run_generation(&again, &again.outlast_ms);
    } while (status == STATUS_AGAIN);
    for (uint32_t i = 0; i < JOB_SERVERS_MAX; i++) {
        kept_shard_finish(&kept[i]);
    }
    return status;
}
