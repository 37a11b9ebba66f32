/* Connects to the places that the coordinator named. */
#include "worker/link/neighbours.h"

#include "common/base/log.h"
#include "common/job/job_modes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool neighbours_read_place(const char *line, char ret_place[ENDPOINTS_PLACE_BYTES],
                           const char **ret_next)
{
    size_t size = strcspn(line, "\n");
    snprintf(ret_place, ENDPOINTS_PLACE_BYTES, "%.*s", (int)size, line);
    *ret_next = line + size + (line[size] == '\n');
    return size > 0;
}

/* Whether the connection to a peer of another host was closed. One within a host does not break. */
static bool has_left(struct transport *transport, uint64_t peer)
{
    return !transport_is_near(transport, peer) && transport_was_closed(transport, peer);
}

static enum status connect_place(struct channel *channel, const struct job *job, const char *line,
                                 struct lanes *lanes)
{
    char place[ENDPOINTS_PLACE_BYTES];
    const char *next;
    if (lanes->count > 0) {
        return STATUS_OK;
    }
    if (!neighbours_read_place(line, place, &next)) {
        log_error("the coordinator named too few peers");
        return STATUS_MISMATCH;
    }
    bool wants_more = true;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && wants_more) {
        status = channel_meet(channel, place, job->transport, &lanes->peers[lanes->count]);
        if (status == STATUS_OK) {
            (void)has_left(channel->transport, lanes->peers[lanes->count]); // from now on
            lanes->count++;
        }
        wants_more = status == STATUS_OK && lanes->count < job->connections &&
                     !transport_is_near(channel->transport, lanes->peers[0]);
    }
    return status;
}

const char *neighbours_skip(const char *places, uint32_t count)
{
    char place[ENDPOINTS_PLACE_BYTES];
    for (uint32_t i = 0; i < count && *places != '\0'; i++) {
        (void)neighbours_read_place(places, place, &places);
    }
    return places;
}

/* Makes room for all, without connections. */
static enum status create(struct neighbours *neighbours, const struct job *job)
{
    if (neighbours->shards != NULL) {
        return STATUS_OK;
    }
    neighbours->shard_count = job_shard_count(job);
    neighbours->worker_count = job_carriers(job).processes;
    size_t count = (size_t)neighbours->shard_count + neighbours->worker_count;
    neighbours->shards = calloc(count, sizeof(*neighbours->shards));
    if (neighbours->shards == NULL) {
        return STATUS_NO_MEMORY;
    }
    neighbours->workers = neighbours->shards + neighbours->shard_count;
    return callers_init(&neighbours->callers, job_carriers(job), job->connections);
}

static enum status connect_workers(struct neighbours *neighbours, struct channel *channel,
                                   const struct job *job, const struct neighbours_named *named)
{
    const char *line = neighbours_skip(named->places, neighbours->shard_count);
    bool has_all = named->all_reduce == ALL_REDUCE_SHARED;
    enum status status = STATUS_OK;
    uint32_t count = neighbours->worker_count;
    for (uint32_t k = 1; k < count && status == STATUS_OK; k++) {
        uint32_t process = (named->process + k) % count;
        if (all_reduce_meets(named->all_reduce, count, k)) {
            const char *place = has_all ? neighbours_skip(line, process) : line;
            status = connect_place(channel, job, place, &neighbours->workers[process]);
            line = has_all ? line : neighbours_skip(line, 1);
        }
    }
    return status;
}

enum status neighbours_connect(struct neighbours *neighbours, struct channel *channel,
                               const struct job *job, const struct neighbours_named *named)
{
    enum status status = create(neighbours, job);
    for (uint32_t i = 0; i < neighbours->shard_count && status == STATUS_OK; i++) {
        status =
            connect_place(channel, job, neighbours_skip(named->places, i), &neighbours->shards[i]);
    }
    if (status == STATUS_OK && job_has_mode(job, MODE_RING) && neighbours->worker_count > 1) {
        status = connect_workers(neighbours, channel, job, named);
    }
    return status;
}

enum status neighbours_offer(struct channel *channel, const struct neighbours *neighbours,
                             bool has_servers)
{
    const struct lanes *peers = has_servers ? neighbours->shards : neighbours->workers;
    uint32_t count = has_servers ? neighbours->shard_count : neighbours->worker_count;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        if (peers[i].count > 0 && transport_is_near(channel->transport, peers[i].peers[0])) {
            status = channel_offer(channel, peers[i].peers[0]);
        }
    }
    return status;
}

/* Finds the first one of which a lane was closed. */
static bool find_left(const struct lanes *lanes, uint32_t count, struct transport *transport,
                      uint32_t *ret_index)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t lane = 0; lane < lanes[i].count; lane++) {
            if (has_left(transport, lanes[i].peers[lane])) {
                *ret_index = i;
                return true;
            }
        }
    }
    return false;
}

bool neighbours_find_broken(const struct neighbours *neighbours, bool has_servers,
                            struct transport *transport, struct departures *departures,
                            enum member_role *ret_role, uint32_t *ret_index)
{
    if (neighbours->shards == NULL) {
        return false; // they are not known so far
    }
    *ret_role = has_servers ? ROLE_SERVER : ROLE_WORKER;
    if (has_servers) {
        return find_left(neighbours->shards, neighbours->shard_count, transport, ret_index);
    }
    return find_left(neighbours->workers, neighbours->worker_count, transport, ret_index) ||
           callers_take_departed(&neighbours->callers, departures, ret_index);
}

void neighbours_free(struct neighbours *neighbours)
{
    callers_finish(&neighbours->callers);
    free(neighbours->shards);
    *neighbours = (struct neighbours){0};
}
