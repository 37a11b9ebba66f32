/* Places of servers and workers, as lines. */
#include "ps-server/topology.h"

#include "common/endpoints.h"

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

static bool asks_for(const struct job *job, const char *algorithm)
{
    return strcmp(job->all_reduce, algorithm) == 0;
}

/* Whether every worker is to connect to every other. */
static bool may_meet(const struct job *job)
{
    return job->workers <= ALL_REDUCE_DIRECT_MAX || asks_for(job, "direct");
}

void topology_begin(const struct job *job, const struct membership *membership,
                    struct topology *ret_topology, bool *ret_needs_trial)
{
    bool is_ring = !job_has_mode(job, "ring") || job->workers == 1 || asks_for(job, "ring");
    bool has_codes = strcmp(job->compress, "none") != 0; // what is not sent cannot be compressed
    bool may_share = !has_codes && endpoints_may_share(job->transport) && is_one_host(membership) &&
                     job->workers <= ALL_REDUCE_SHARED_MAX;
    *ret_topology = (struct topology){.all_reduce = ALL_REDUCE_RING};
    if (!is_ring && may_share) {
        ret_topology->all_reduce = ALL_REDUCE_SHARED;
    } else if (!is_ring && may_meet(job)) {
        ret_topology->all_reduce = ALL_REDUCE_DIRECT;
        ret_topology->direct_floats_max = asks_for(job, "direct") ? UINT64_MAX : 0;
    }
    *ret_needs_trial = ret_topology->all_reduce == ALL_REDUCE_SHARED ||
                       (ret_topology->all_reduce == ALL_REDUCE_DIRECT && asks_for(job, "auto"));
}

void topology_note(struct topology *topology, uint32_t rank, const struct message *message)
{
    bool is_first = topology->latency_ns == 0;
    if (message->reason != STATUS_OK && !topology->cannot_map) {
        topology->cannot_map = true;
        topology->refuser = rank;
    }
    if (is_first || message->latency_ns > topology->latency_ns) {
        topology->latency_ns = message->latency_ns;
    }
    if (is_first || message->bandwidth < topology->bandwidth) {
        topology->bandwidth = message->bandwidth;
    }
}

enum status topology_decide(const struct job *job, struct topology *topology)
{
    bool is_shared = topology->all_reduce == ALL_REDUCE_SHARED;
    if (is_shared && !topology->cannot_map) {
        return STATUS_OK;
    }
    if (is_shared && strcmp(job->transport, "shm") == 0) {
        return STATUS_UNREACHABLE;
    }
    topology->all_reduce = ALL_REDUCE_DIRECT;
    topology->direct_floats_max =
        asks_for(job, "direct")
            ? UINT64_MAX
            : all_reduce_direct_bytes(job->workers, topology->latency_ns, topology->bandwidth) /
                  sizeof(float);
    if (topology->direct_floats_max == 0 || !may_meet(job)) {
        topology->all_reduce = ALL_REDUCE_RING;
        topology->direct_floats_max = 0;
    }
    return STATUS_OK;
}

void topology_describe(const struct topology *topology, char *ret_text, size_t text_size)
{
    if (topology->all_reduce != ALL_REDUCE_DIRECT || topology->direct_floats_max == UINT64_MAX) {
        snprintf(ret_text, text_size, "%s", all_reduce_name(topology->all_reduce));
        return;
    }
    snprintf(ret_text, text_size, "direct up to %.2f MiB, ring above (%.0f us, %.0f MB/s)",
             (double)topology->direct_floats_max * sizeof(float) / (1 << 20),
             (double)topology->latency_ns / 1e3, (double)topology->bandwidth / 1e6);
}

/* False, and the text as it was, if it does not fit. */
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
    if (job_has_mode(job, "ring") && algorithm != ALL_REDUCE_RING) {
        for (uint32_t i = 0; i < membership->worker_count; i++) {
            fits = fits && add_line(membership->workers[i].place, ret_text, text_size);
        }
    } else if (job_has_mode(job, "ring")) {
        const struct slot *next = &membership->workers[(rank + 1) % membership->worker_count];
        fits = fits && add_line(next->place, ret_text, text_size);
    }
    if (!fits) {
        ret_text[0] = '\0';
    }
}
