/* Connects to the others, maps their memory, and makes the exchange of each phase. */
#include "worker/link/link_phases.h"

#include "common/base/log.h"
#include "common/job/job_modes.h"
#include "worker/link/link_alone.h"

#include <stdio.h>
#include <string.h>

/* All that was exchanged in the last phase has come: see exchange_drain. */
static void replace_exchange(struct link *link, struct exchange *exchange)
{
    pthread_mutex_lock(&link->mutex);
    struct exchange *old = link->exchange;
    link->exchange = exchange;
    pthread_mutex_unlock(&link->mutex);
    exchange_destroy(old);
}

/* While the trainer's threads compute, this thread talks to peers over the network. */
static bool has_far_peer(const struct exchange_options *options)
{
    for (uint32_t i = 0; i < options->peer_count; i++) {
        const struct lanes *lanes = &options->peers[i];
        if (lanes->count > 0 && !transport_is_near(options->channel->transport, lanes->peers[0])) {
            return true;
        }
    }
    return false;
}

/* Whether the phase goes on where a job that is resumed has stopped: servers have what they need.
 */
static bool is_resumed(const struct link *link)
{
    return link->member.begin_step > 0 &&
           link->phases.list[link->phase_index].begin == link->member.begin_step;
}

static enum status create_exchange(struct link *link, const struct message *message,
                                   void (*post_ready)(void *context, uint32_t first,
                                                      uint32_t count))
{
    const struct phase *phase = &link->phases.list[link->phase_index];
    struct neighbours *neighbours = &link->neighbours;
    const struct codec *codec = &link->prepared.codec;
    bool is_ring = phase->mode.kind == MODE_RING;
    struct exchange_options options = {
        .mode = phase->mode.kind,
        .rank = link->ranks.first,
        .world = link->job.workers,
        .processes = link->carriers.processes,
        .left_out = link->carriers.left_out,
        .vectors = link->prepared.vectors,
        .layout = link->layout,
        .params = link->prepared.params,
        .grads = link->prepared.grads,
        .device =
            link->prepared.device_memory != NULL ? link->prepared.device_memory->vectors : NULL,
        .is_unsynchronised = phase->is_unsynchronised,
        .takes_means = !is_ring && !job_servers_update(&link->job),
        .is_restored = is_resumed(link),
        .first_step = phase_rounds_before(phase, link->job.sync_every),
        .watched = link->prepared.watched,
        .watched_count = link->prepared.watched_count,
        .codec = codec->kind != CODEC_NONE ? *codec : link->job.compress,
        .group = link->group_memory.group,
        .limits = message->start->limits,
        .devices_id = link->nccl.has_id ? link->nccl.id : NULL,
        .peers = is_ring ? neighbours->workers : neighbours->shards,
        .peer_count = is_ring ? neighbours->worker_count : neighbours->shard_count,
        .callers = &neighbours->callers,
        .states = link->states,
        .state_count = link->state_count,
        .channel = link->channel,
        .post_ready = post_ready,
        .context = link,
    };
    struct exchange *exchange;
    enum status status = exchange_create(&options, &exchange);
    if (status != STATUS_OK) {
        log_error("cannot exchange in mode %s: %s", mode_text(phase->mode).text,
                  status_text(status));
        return status;
    }
    if (has_far_peer(&options)) {
        channel_go_far(link->channel);
    }
    replace_exchange(link, exchange);
    return STATUS_OK;
}

static enum status connect_to_others(struct link *link, const struct message *message)
{
    const struct neighbours_named named = {
        .places = message->text,
        .all_reduce = message->start->all_reduce,
        .process = link->process,
    };
    if (link->prepared.device_memory != NULL) {
        channel_share_device(link->channel, link->prepared.region, link->prepared.device_memory);
    } else if (endpoints_may_share(link->job.transport)) {
        channel_share(link->channel, link->prepared.region);
    }
    return neighbours_connect(&link->neighbours, link->channel, &link->job, &named);
}

static enum status send_tried(struct link *link)
{
    const struct all_reduce_path path = probe_path(&link->probe);
    const struct message tried = {
        .kind = MESSAGE_TRIED,
        .rank = link->ranks.first,
        .reason = link->map_refusal,
        .path = &path,
    };
    probe_finish(&link->probe);
    return channel_send(link->channel, link->member.coordinator, &tried, NULL, NULL);
}

enum status link_try(struct link *link, const struct message *message)
{
    const struct job *job = &link->job;
    uint32_t next = (link->process + 1) % link->carriers.processes;
    if (link->carriers.processes == 1 || !job_has_mode(job, MODE_RING) || link->probe.is_running) {
        return STATUS_OK; // what a coordinator of ours does not ask for
    }
    enum status status = connect_to_others(link, message);
    if (status != STATUS_OK) {
        return status;
    }
    if (message->start->all_reduce == ALL_REDUCE_SHARED) {
        const char *places = neighbours_skip(message->text, job_shard_count(job));
        link->map_refusal =
            job->workers > ALL_REDUCE_SHARED_MAX
                ? STATUS_UNSUPPORTED
                : group_memory_map(&link->group_memory, places, link->prepared.region);
    }
    return probe_begin(&link->probe, link->channel, link->neighbours.workers[next].peers[0]);
}

/* Little or nothing comes back on the connections to the next worker. So the transport cannot learn
 * the length of the path from them, as it does from others. */
static void fit_connections(struct link *link)
{
    const struct all_reduce_path path = probe_path(&link->probe);
    uint32_t next = (link->process + 1) % link->carriers.processes;
    const struct lanes *lanes = &link->neighbours.workers[next];
    for (uint32_t i = 0; i < lanes->count; i++) {
        transport_fit(link->channel->transport, lanes->peers[i], path.bandwidth,
                      (uint32_t)(2 * path.latency_ns / 1000));
    }
}

enum status link_probe(struct link *link, uint64_t peer, const struct message *message)
{
    bool is_over;
    enum status status = probe_take(&link->probe, link->channel, peer, message, &is_over);
    if (status != STATUS_OK || !is_over) {
        return status;
    }
    fit_connections(link);
    return send_tried(link);
}

/* The phases of the job, and the one that this worker begins with. */
static enum status plan_phases(struct link *link)
{
    char why[OPTION_ERROR_BYTES];
    enum status status =
        phases_of(&link->job, link->prepared.train_samples, &link->phases, why, sizeof(why));
    if (status != STATUS_OK) {
        log_error("%s", why); // the trainer has found it before
        return status;
    }
    uint64_t begin = link->member.begin_step;
    return begin > 0 ? phases_resume(&link->job, &link->phases, begin, &link->phase_index)
                     : STATUS_OK;
}

/* What the first phase needs beside its exchange. */
static enum status prepare_first(struct link *link, const struct message *message)
{
    enum status status = connect_to_others(link, message);
    if (status == STATUS_OK && message->start->all_reduce == ALL_REDUCE_SHARED) {
        status = group_memory_begin(&link->group_memory, link->layout, link->prepared.vectors);
    }
    return status;
}

/* Cuts the buckets of the phase. */
static enum status cut_buckets(struct link *link, uint64_t bucket_bytes)
{
    bool is_first = link->layout == NULL;
    if (!is_first && bucket_bytes == link->bucket_bytes) {
        return STATUS_OK;
    }
    if (link->group_memory.group != NULL) {
        log_error("the buckets of an all-reduce in shared memory cannot change");
        return STATUS_MALFORMED; // what a coordinator of ours does not ask for
    }
    struct layout *layout = &link->layouts[link->layout == &link->layouts[0]];
    layout_merge(link->prepared.layout, bucket_bytes, layout);
    link->layout = layout;
    link->bucket_bytes = bucket_bytes;
    return STATUS_OK;
}

/* Where this worker's GPU joins the others', if NCCL adds up. */
static enum status take_nccl(struct link *link, const struct message *message)
{
    bool is_due = job_has_nccl(&link->job), has_id = message->nccl != NULL && message->nccl->has_id;
    if (is_due != has_id) {
        log_error("the coordinator %s where to meet by NCCL",
                  is_due ? "does not say" : "unasked says");
        return STATUS_MALFORMED; // none of ours
    }
    link->nccl = has_id ? *message->nccl : (struct wire_nccl){0};
    return STATUS_OK;
}

enum status link_begin_phase(struct link *link, const struct message *message,
                             void (*post_ready)(void *context, uint32_t first, uint32_t count))
{
    bool is_first = link->layout == NULL;
    if (is_first) {
        enum status planned = plan_phases(link);
        if (planned != STATUS_OK) {
            return planned;
        }
    }
    if (message->start->phase != link->phase_index) {
        return STATUS_OK; // not due: no coordinator of this program sends it
    }
    link_alone_note_start(link, message);
    enum status status = take_nccl(link, message);
    if (status != STATUS_OK) {
        return status;
    }
    status = cut_buckets(link, message->start->bucket_bytes);
    if (status != STATUS_OK) {
        return status;
    }
    status = is_first ? prepare_first(link, message) : STATUS_OK;
    if (status != STATUS_OK) {
        return status;
    }
    trace_begin_phase(link->channel->trace,
                      link->phases.list[link->phase_index].begin + link->prepared.begin_step,
                      link->job.sync_every);
    status = create_exchange(link, message, post_ready);
    return status == STATUS_OK ? member_connected(&link->member) : status;
}

void link_describe_ranks(const struct link *link, char ret_text[LINK_RANKS_BYTES])
{
    struct rank_block ranks = link->ranks;
    if (ranks.count == 1) {
        snprintf(ret_text, LINK_RANKS_BYTES, "rank %u of %u", ranks.first, link->job.workers);
    } else {
        snprintf(ret_text, LINK_RANKS_BYTES, "ranks %u to %u of %u", ranks.first,
                 ranks.first + ranks.count - 1, link->job.workers);
    }
}

/* Whoever has started this process by hand looks at it. */
static void say_part(const struct link *link)
{
    char ranks[LINK_RANKS_BYTES];
    uint64_t of_program = link->prepared.begin_step, of_job = link->member.begin_step;
    link_describe_ranks(link, ranks);
    log_info("takes part as worker %u: %s, from step %llu", link->number, ranks,
             (unsigned long long)(of_job > of_program ? of_job : of_program));
}

enum status link_run_phase(struct link *link)
{
    // By now the shards of this phase have memory of their own to offer.
    bool has_servers = link->phases.list[link->phase_index].mode.kind != MODE_RING;
    enum status status = neighbours_offer(link->channel, &link->neighbours, has_servers);
    if (status == STATUS_OK && link->phase_index == 0) {
        say_part(link);
    }
    return status == STATUS_OK ? exchange_start(link->exchange) : status;
}

/* The transports that values take to one peer of the phase and back. */
static uint32_t transports_to(const struct exchange_options *options, uint64_t peer)
{
    if (!transport_is_near(options->channel->transport, peer)) {
        return WIRE_TRANSPORT_TCP;
    }
    if (options->device != NULL) {
        return WIRE_TRANSPORT_GPU;
    }
    bool is_coded = options->codec.kind != CODEC_NONE;
    bool is_spared = channel_spares(options->channel, peer);
    // Encoded values are sent. Servers answer unsynchronised workers with plain values.
    bool has_values = !is_coded || options->is_unsynchronised;
    return (is_spared && has_values ? WIRE_TRANSPORT_SHM : 0u) |
           (!is_spared || is_coded ? WIRE_TRANSPORT_IPC : 0u);
}

void link_note_broken(struct link *link, uint64_t now_ms)
{
    enum member_role role;
    uint32_t index;
    if (link->exchange == NULL) {
        return;
    }
    bool has_servers = link->exchange->options.mode != MODE_RING; // the trainer may be in the next
    if (neighbours_find_broken(&link->neighbours, has_servers, link->channel->transport,
                               link->departures, &role, &index)) {
        member_note_broken(&link->member, role, index, now_ms);
    }
}

uint32_t link_transports(const struct link *link)
{
    uint32_t transports = 0;
    if (link->exchange == NULL) {
        return transports;
    }
    const struct exchange_options *options = &link->exchange->options;
    if (options->mode == MODE_RING && options->devices_id != NULL) {
        return WIRE_TRANSPORT_NCCL;
    }
    if (options->mode == MODE_RING && options->group != NULL) {
        return link->exchange->has_met ? WIRE_TRANSPORT_GPU : WIRE_TRANSPORT_SHM;
    }
    for (uint32_t i = 0; i < options->peer_count; i++) {
        const struct lanes *lanes = &options->peers[i];
        transports |= lanes->count > 0 ? transports_to(options, lanes->peers[0]) : 0u;
    }
    return transports;
}
