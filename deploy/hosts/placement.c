/* Assigns ranks and servers to hosts. */
#include "deploy/hosts/placement.h"

#include "common/job/carriers.h"
#include "common/job/job_modes.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* The first host from this one on that is not away, round the list; there is one. */
static size_t next_present(const struct hosts *hosts, size_t host)
{
    while (hosts->list[host % hosts->count].is_away) {
        host++;
    }
    return host % hosts->count;
}

enum status placement_make(const struct hosts *hosts, const struct job *job, size_t coordinator,
                           struct placement *ret_placement, char ret_error[OPTION_ERROR_BYTES])
{
    assert(coordinator < hosts->count);
    struct placement *placement = ret_placement;
    uint32_t slots = hosts_slots(hosts);
    uint32_t processes = job_carriers(job).processes;
    if (processes > slots) {
        snprintf(ret_error, OPTION_ERROR_BYTES,
                 "%u worker%s are asked for, but the hosts have %u slot%s: ask for fewer with "
                 "%s, or give hosts more (HOST:SLOTS)",
                 processes, processes < job->workers ? " processes" : "s", slots,
                 slots == 1 ? "" : "s",
                 processes < job->workers ? "--processes" : "--workers or --processes");
        return STATUS_INVALID;
    }
    *placement = (struct placement){.worker_count = processes, .server_count = job_ps_count(job)};
    uint32_t process = 0;
    for (size_t host = 0; host < hosts->count; host++) {
        while (!hosts->list[host].is_away && process < processes &&
               placement->local_size[host] < hosts->list[host].slots) {
            placement->host_of_worker[process] = host;
            placement->local_rank[process++] = placement->local_size[host]++;
        }
    }
    size_t host = coordinator;
    placement->host_of_server[0] = coordinator;
    for (uint32_t i = job_first_server(job); i < placement->server_count; i++, host++) {
        host = next_present(hosts, host);
        placement->host_of_server[i] = host;
    }
    return STATUS_OK;
}

static bool has_server(const struct placement *placement, size_t host)
{
    for (uint32_t i = 0; i < placement->server_count; i++) {
        if (placement->host_of_server[i] == host) {
            return true;
        }
    }
    return false;
}

bool placement_uses(const struct placement *placement, size_t host)
{
    return placement->local_size[host] > 0 || has_server(placement, host);
}

static bool is_next(const struct placement *placement, size_t from, size_t to)
{
    for (uint32_t rank = 0; rank < placement->worker_count; rank++) {
        uint32_t next = (rank + 1) % placement->worker_count;
        if (placement->host_of_worker[rank] == from && placement->host_of_worker[next] == to) {
            return true;
        }
    }
    return false;
}

bool placement_connects(const struct placement *placement, const struct job *job, size_t from,
                        size_t to)
{
    if (from == to || !placement_uses(placement, from) || !placement_uses(placement, to)) {
        return false;
    }
    bool are_workers = placement->local_size[from] > 0 && placement->local_size[to] > 0;
    bool goes_round = job->all_reduce == ALL_REDUCE_CHOICE_RING;
    return to == placement->host_of_server[0] ||
           (job_has_servers(job) && placement->local_size[from] > 0 && has_server(placement, to)) ||
           (job_has_mode(job, MODE_RING) && are_workers &&
            (!goes_round || is_next(placement, from, to)));
}
