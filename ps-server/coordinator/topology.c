/* Chooses the all-reduce of ring mode, and lists the addresses that each worker gets. */
#include "ps-server/coordinator/topology.h"

#include "common/base/printable.h"
#include "common/job/carriers.h"
#include "common/job/job_modes.h"
#include "common/job/phases.h"
#include "common/transport/endpoints.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_one_host(const struct membership *membership)
{
    for (uint32_t i = 1; i < membership->worker_count; i++) {
        if (membership->workers[i].host_id != membership->workers[0].host_id) {
            return false;
        }
    }
    return true;
}

/* Whether every worker may connect to every other. */
static bool may_meet(const struct job *job)
{
    return job_carriers(job).processes <= ALL_REDUCE_DIRECT_MAX ||
           job->all_reduce == ALL_REDUCE_CHOICE_DIRECT;
}

/* The best algorithm for the measured path if buckets are joined to so many bytes; 0: as they are.
 */
static enum all_reduce best_of(const struct job *job, const struct layout *layout,
                               uint64_t bucket_bytes, const struct all_reduce_path *path)
{
    const struct carriers carriers = job_carriers(job);
    struct layout joined;
    layout_merge(layout, bucket_bytes, &joined);
    const struct all_reduce_load load = {
        .workers = carriers.processes,
        .buckets = joined.bucket_count,
        .floats = joined.value_count,
        .may_meet = may_meet(job),
        // The formula of its time has one rank in each process.
        .may_halve = carriers.processes == carriers.ranks,
    };
    return all_reduce_choose(&load, path);
}

/* Buckets up to so many floats take this algorithm, unless a smaller limit holds for them. */
static void raise_limit(struct all_reduce_limits *limits, enum all_reduce algorithm,
                        uint64_t floats_max)
{
    if (algorithm == ALL_REDUCE_HALVING) {
        limits->halving_floats_max = floats_max;
    } else if (algorithm == ALL_REDUCE_DIRECT) {
        limits->direct_floats_max = floats_max;
    }
}

/* One algorithm for all buckets. Where several sizes of buckets will be tried, one for each size,
 * up to twice that size: the next one is four times as large. */
static struct all_reduce_limits best_limits(const struct job *job, const struct layout *layout,
                                            const struct all_reduce_path *path)
{
    struct all_reduce_limits limits = {0};
    if (!job_tunes_buckets(job)) {
        raise_limit(&limits, best_of(job, layout, 0, path), UINT64_MAX);
        return limits;
    }
    for (uint32_t i = 0; i < PHASES_TRIALS; i++) {
        uint64_t bytes = phases_trial_bytes(i);
        raise_limit(&limits, best_of(job, layout, bytes, path), 2 * bytes / sizeof(float));
    }
    return limits;
}

/* Chooses an algorithm by messages: the one that the options name, or the best one for what a step
 * adds up. */
static void take_messages(const struct job *job, const struct layout *layout,
                          struct topology *topology)
{
    const struct carriers carriers = job_carriers(job);
    topology->limits = (struct all_reduce_limits){0};
    switch (job->all_reduce) {
    case ALL_REDUCE_CHOICE_AUTO:
        if (layout != NULL) {
            topology->limits = best_limits(job, layout, &topology->path);
        }
        break;
    case ALL_REDUCE_CHOICE_RING:
        break; // for buckets of any size
    case ALL_REDUCE_CHOICE_DIRECT:
        topology->limits.direct_floats_max = UINT64_MAX;
        break;
    case ALL_REDUCE_CHOICE_HALVING:
        topology->limits.halving_floats_max = UINT64_MAX;
        break;
    case ALL_REDUCE_CHOICE_NCCL:
        break; // never by messages
    }
    topology->all_reduce = all_reduce_widest(&topology->limits);
    if (topology->all_reduce == ALL_REDUCE_HALVING && carriers.processes < carriers.ranks) {
        topology->all_reduce = ALL_REDUCE_DIRECT; // ranks apart by any power of two may meet
    }
}

void topology_begin(const struct job *job, const struct membership *membership,
                    struct topology *topology, bool *ret_needs_trial)
{
    bool is_ring = job_has_mode(job, MODE_RING) && job_carriers(job).processes > 1;
    bool has_codes = job->compress.kind != CODEC_NONE; // what is not sent cannot be compressed
    bool may_share = is_ring && !has_codes && !all_reduce_shuns_memory(job->all_reduce) &&
                     endpoints_may_share(job->transport) && is_one_host(membership) &&
                     job->workers <= ALL_REDUCE_SHARED_MAX;
    *topology = (struct topology){.all_reduce = ALL_REDUCE_RING, .nccl = topology->nccl};
    if (job_has_nccl(job)) {
        topology->all_reduce = ALL_REDUCE_NCCL;
    } else if (may_share) {
        topology->all_reduce = ALL_REDUCE_SHARED;
    } else if (is_ring) {
        take_messages(job, NULL, topology); // no path is measured yet
    }
    *ret_needs_trial = may_share || (is_ring && job->all_reduce == ALL_REDUCE_CHOICE_AUTO);
}

void topology_note_nccl(struct topology *topology, uint32_t rank, const struct wire_nccl *nccl)
{
    if (rank == 0) {
        topology->nccl = *nccl;
        topology->nccl.has_gpu = false; // which is nobody else's business
    }
}

void topology_note(struct topology *topology, uint32_t rank, const struct message *message)
{
    const struct all_reduce_path *found = message->path;
    struct all_reduce_path *path = &topology->path;
    bool is_first = path->latency_ns == 0;
    if (message->reason != STATUS_OK && !topology->cannot_map) {
        topology->cannot_map = true;
        topology->refuser = rank;
    }
    if (is_first || found->latency_ns > path->latency_ns) {
        path->latency_ns = found->latency_ns;
    }
    if (is_first || found->message_ns > path->message_ns) {
        path->message_ns = found->message_ns;
    }
    if (is_first || found->bandwidth < path->bandwidth) {
        path->bandwidth = found->bandwidth;
    }
}

enum status topology_decide(const struct job *job, const struct layout *layout,
                            struct topology *topology)
{
    bool is_shared = topology->all_reduce == ALL_REDUCE_SHARED;
    if (is_shared && !topology->cannot_map) {
        return STATUS_OK;
    }
    if (is_shared && job->transport == TRANSPORT_SHM) {
        return STATUS_UNREACHABLE;
    }
    take_messages(job, layout, topology);
    return STATUS_OK;
}

/* Writes the name of an algorithm with its largest bucket: "direct up to 20.0 KiB, ". Writes
 * nothing if no bucket uses it. */
static void describe_limit(enum all_reduce algorithm, uint64_t floats_max, char *text,
                           size_t text_size)
{
    size_t used = strlen(text);
    double kib = (double)floats_max * sizeof(float) / 1024;
    if (floats_max > 0) {
        snprintf(text + used, text_size - used, "%s up to %.*f %s, ", all_reduce_name(algorithm),
                 kib < 100 ? 1 : 2, kib < 100 ? kib : kib / 1024, kib < 100 ? "KiB" : "MiB");
    }
}

void topology_describe(const struct topology *topology, char *ret_text, size_t text_size)
{
    const struct all_reduce_limits *limits = &topology->limits;
    if (topology->all_reduce == ALL_REDUCE_NCCL) {
        uint32_t version = topology->nccl.version;
        snprintf(ret_text, text_size, "%s %u.%u.%u", all_reduce_name(ALL_REDUCE_NCCL),
                 version / 10000, version / 100 % 100, version % 100);
        return;
    }
    bool is_halving = limits->halving_floats_max == UINT64_MAX;
    ret_text[0] = '\0';
    if (is_halving || limits->direct_floats_max == UINT64_MAX ||
        topology->all_reduce == ALL_REDUCE_RING || topology->all_reduce == ALL_REDUCE_SHARED) {
        snprintf(ret_text, text_size, "%s",
                 all_reduce_name(is_halving ? ALL_REDUCE_HALVING : topology->all_reduce));
    } else {
        describe_limit(ALL_REDUCE_HALVING, limits->halving_floats_max, ret_text, text_size);
        describe_limit(ALL_REDUCE_DIRECT, limits->direct_floats_max, ret_text, text_size);
        size_t used = strlen(ret_text);
        snprintf(ret_text + used, text_size - used, "ring above");
    }
    if (topology->all_reduce != ALL_REDUCE_SHARED && topology->path.latency_ns > 0) {
        size_t used = strlen(ret_text);
        snprintf(ret_text + used, text_size - used, " (%.0f us, %.1f us a message, %.0f MB/s)",
                 (double)topology->path.latency_ns / 1e3, (double)topology->path.message_ns / 1e3,
                 (double)topology->path.bandwidth / 1e6);
    }
}

/* Returns false, and leaves the text as it was, if it does not fit. */
static bool add_line(const char *line, char *text, size_t text_size)
{
    size_t used = strlen(text);
    int wrote = snprintf(text + used, text_size - used, "%s\n", line);
    if (wrote < 0 || (size_t)wrote >= text_size - used) {
        text[used] = '\0';
        return false;
    }
    return true;
}

void topology_places(const struct job *job, const struct membership *membership,
                     enum all_reduce algorithm, uint32_t rank, char *ret_text, size_t text_size)
{
    bool fits = true;
    ret_text[0] = '\0';
    for (uint32_t i = 0; i < membership->server_count; i++) {
        fits = fits && add_line(membership->servers[i].place, ret_text, text_size);
    }
    bool is_shared = algorithm == ALL_REDUCE_SHARED;
    uint32_t count = job_has_mode(job, MODE_RING) ? membership->worker_count : 0;
    for (uint32_t i = is_shared ? 0 : 1; i < count && fits; i++) {
        uint32_t other = is_shared ? i : (rank + i) % count;
        if (is_shared || all_reduce_meets(algorithm, count, i)) {
            fits = add_line(membership->workers[other].place, ret_text, text_size);
        }
    }
    if (!fits) {
        ret_text[0] = '\0';
    }
}

/* Whether workers connect to members of a role. */
static bool is_called(const struct job *job, enum member_role role)
{
    return role == ROLE_SERVER || (job_has_mode(job, MODE_RING) && !job_has_nccl(job));
}

/* Whether it is on another host, or will be: of one that comes back, that is known. */
static bool is_elsewhere(const struct slot *slot, uint64_t host_id)
{
    bool is_known = slot->state != SLOT_FREE || slot->host_id != 0;
    return is_known && slot->state != SLOT_GONE && slot->host_id != host_id;
}

bool topology_hides(const struct job *job, const struct membership *membership,
                    const struct wire_member *joining)
{
    bool is_loopback = joining->loopback != NULL && joining->loopback[0] != '\0';
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        if (is_loopback && is_called(job, joining->role) &&
            is_elsewhere(&membership->workers[i], joining->host_id)) {
            return true;
        }
    }
    return false;
}

struct sender topology_hidden(const struct job *job, const struct membership *membership,
                              const struct wire_member *joining)
{
    static const enum member_role roles[] = {ROLE_WORKER, ROLE_SERVER};
    for (uint32_t k = 0; k < 2 && joining->role == ROLE_WORKER; k++) {
        struct sender at = membership_member(membership, roles[k], 0);
        for (; at.slot != NULL; at = membership_member(membership, roles[k], at.index + 1)) {
            if (is_called(job, roles[k]) && at.slot->loopback[0] != '\0' &&
                is_elsewhere(at.slot, joining->host_id)) {
                return at;
            }
        }
    }
    return (struct sender){NULL, ROLE_WORKER, 0};
}

void topology_explain_hidden(const char *loopback, char *ret_why, size_t why_size)
{
    snprintf(ret_why, why_size,
             "--bind is %.60s, a loopback address, which the workers on other hosts cannot connect "
             "to: say --bind 0.0.0.0, or an address of its host that they reach",
             loopback);
    printable_make_utf8(ret_why);
}

void topology_explain_unreached(const struct sender *hidden, char *ret_why, size_t why_size)
{
    snprintf(ret_why, why_size,
             "it cannot connect to %s %u, which listens at %.60s, a loopback address of another "
             "host: the members of the job have to be started with --bind 0.0.0.0, or an address "
             "of their host that others reach",
             role_name(hidden->role), hidden->slot->number, hidden->slot->loopback);
    printable_make_utf8(ret_why);
}
