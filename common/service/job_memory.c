/* Works out what a server and a coordinator take.
 *
 * Counts vectors as shards create them (ps-server/shard/shard_create.c, service_phase.c), and as
 * checkpoints have them (common/channel/piece_name.h). */
#include "common/service/job_memory.h"

#include "common/job/carriers.h"
#include "common/job/checkpoints.h"
#include "common/job/job_modes.h"
#include "common/optimizer/optimizer.h"
#include "common/plan/order.h"
#include "common/transport/endpoints.h"

#include <stdbool.h>

#define BASE_BYTES (UINT64_C(18) << 20) // of a process of ps beside its vectors, as measured

/* Versions of the parameters that a seeded order keeps; 0: none. */
static uint64_t versions_of(const struct job *job)
{
    struct order order;
    char why[OPTION_ERROR_BYTES];
    bool is_drawn =
        order_parse(job->order, &order, why, sizeof(why)) == STATUS_OK && order.kind != ORDER_FREE;
    return is_drawn ? order_staleness_max(&order, job->workers) + 1 : 0;
}

static bool updates_on_push(const struct job *job)
{
    return job_has_mode(job, MODE_PS_SSP) || job_has_mode(job, MODE_PS_ASYNC);
}

static bool has_codes(const struct job *job)
{
    return job->compress.kind != CODEC_NONE;
}

static bool has_views(const struct job *job)
{
    return job->delay_model == DELAY_MODEL_PER_WORKER;
}

/* What checkpoints have of a server beside parameters and states. */
static uint64_t kept_besides(const struct job *job)
{
    uint64_t versions = has_views(job) ? 0 : versions_of(job);
    uint64_t squares = job->remedy == REMEDY_DC_ADAPTIVE;
    return updates_on_push(job) ? squares + (versions > 0 ? versions - 1 : 0) : 0;
}

uint64_t job_memory_of_copy(const struct job *job, uint64_t value_bytes)
{
    uint64_t owners = job->sync_every > 1 ? job->workers : 1; // of states
    uint64_t vectors = 1 + owners * optimizer_states_of(job->optimizer) + kept_besides(job);
    if (has_codes(job)) { // errors of each rank, and what all know
        vectors += job->workers + job_has_mode(job, MODE_PS_SYNC);
    }
    return vectors * value_bytes;
}

/* What a shard keeps where every push is an update. */
static uint64_t vectors_on_push(const struct job *job, uint64_t states)
{
    uint64_t versions = versions_of(job), workers = job->workers;
    bool needs_reads = job->remedy == REMEDY_DC || job->remedy == REMEDY_DC_ADAPTIVE;
    uint64_t vectors = (job->gradients_per_update > 1) + (needs_reads ? workers : 0) +
                       (job->remedy == REMEDY_DC_ADAPTIVE);
    return vectors + (has_views(job) ? (versions + 1 + states) * workers + 1 : versions);
}

/* What a process receives and sends at once, in vectors of its share. */
static uint64_t vectors_on_their_way(const struct job *job, bool may_share)
{
    bool is_held = !may_share || has_codes(job);               // until the mean is there
    bool is_copied = !may_share && job_is_unsynchronised(job); // what answers have
    return (uint64_t)job->workers * (is_held + is_copied);
}

uint64_t job_memory_of_server(const struct job *job, uint64_t value_bytes)
{
    bool may_share = endpoints_may_share(job->transport), makes_updates = job_servers_update(job);
    if (!job_has_servers(job) || job->servers == 0 || job_has_gpu_servers(job)) {
        return 0;
    }
    uint64_t share = value_bytes / job->servers;
    uint64_t states =
        makes_updates && job->sync_every <= 1 ? optimizer_states_of(job->optimizer) : 0;
    uint64_t vectors = 1 + states + vectors_on_their_way(job, may_share);
    if (updates_on_push(job)) {
        vectors += vectors_on_push(job, states);
    }
    if (job_is_unsynchronised(job)) {
        uint64_t answers = job->workers * (share / job->server_threads);
        vectors += job->eval == EVALUATION_EPOCH; // the parameters of the last mark
        vectors += may_share && answers <= JOB_MEMORY_ANSWERS_MAX ? job->workers : 0;
    }
    if (checkpoints_are_on(job)) { // a snapshot, while it is sent
        vectors += 1 + states + kept_besides(job);
    }
    uint64_t codes = has_codes(job) ? share * CODEC_VALUE_BYTES_MAX / sizeof(float) + 2 * share : 0;
    return BASE_BYTES + vectors * share + codes;
}

uint32_t job_memory_copies(const struct job *job, enum job_memory_mirror mirror)
{
    static const uint32_t counts[] = {
        [JOB_MEMORY_NO_MIRROR] = 2, [JOB_MEMORY_MIRROR] = 3, [JOB_MEMORY_MIRROR_IN_MEMORY] = 6};
    return job_may_redeal(job) ? counts[mirror] : 0;
}

uint64_t job_memory_of_coordinator(const struct job *job, enum job_memory_mirror mirror,
                                   uint64_t value_bytes)
{
    uint64_t bytes =
        job_first_server(job) == 0 ? job_memory_of_server(job, value_bytes) : BASE_BYTES;
    bytes = bytes > BASE_BYTES ? bytes : BASE_BYTES;
    return bytes + job_memory_copies(job, mirror) * job_memory_of_copy(job, value_bytes);
}
