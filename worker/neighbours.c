/* Connections to the places that the coordinator named. */
#include "worker/neighbours.h"

#include "common/endpoints.h"
#include "common/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status connect_place(struct channel *channel, const char *transport, const char *place,
                                 uint64_t *ret_peer)
{
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    enum status status = endpoints_choose(place, transport, transport_host_id(), endpoint);
    if (status != STATUS_OK) {
        log_error("no way to reach %s with --transport %s", place, transport);
        return status;
    }
    return transport_connect(channel->transport, endpoint, ret_peer);
}

static const char *skip_lines(const char *text, uint32_t count)
{
    for (uint32_t i = 0; i < count && *text != '\0'; i++) {
        size_t size = strcspn(text, "\n");
        text += size + (text[size] == '\n');
    }
    return text;
}

const char *neighbours_workers(const char *places, uint32_t server_count)
{
    return skip_lines(places, server_count);
}

enum status neighbours_connect(struct channel *channel, const struct job *job,
                               const struct neighbours_named *named,
                               struct neighbours *ret_neighbours)
{
    uint32_t shard_count = job_shard_count(job);
    uint32_t expected = shard_count + (job_has_mode(job, "ring") && job->workers > 1 ? 1 : 0);
    struct neighbours neighbours = {
        .peers = calloc(expected + 1, sizeof(*neighbours.peers)),
        .server_count = shard_count,
    };
    if (neighbours.peers == NULL) {
        return STATUS_NO_MEMORY;
    }
    const char *line = named->places;
    while (neighbours.count < expected && *line != '\0') {
        if (neighbours.count == shard_count && named->has_all_workers) {
            line = skip_lines(line, (named->rank + 1) % job->workers);
        }
        size_t size = strcspn(line, "\n");
        char place[ENDPOINTS_PLACE_BYTES];
        snprintf(place, sizeof(place), "%.*s", (int)size, line);
        enum status status =
            connect_place(channel, job->transport, place, &neighbours.peers[neighbours.count]);
        if (status != STATUS_OK) {
            neighbours_free(&neighbours);
            return status;
        }
        neighbours.count++;
        line += size + (line[size] == '\n');
    }
    if (neighbours.count != expected) {
        log_error("the coordinator named %u peers instead of %u", neighbours.count, expected);
        neighbours_free(&neighbours);
        return STATUS_MISMATCH;
    }
    *ret_neighbours = neighbours;
    return STATUS_OK;
}

enum status neighbours_offer(struct channel *channel, const struct neighbours *neighbours)
{
    for (uint32_t i = 0; i < neighbours->count; i++) {
        if (!transport_is_near(channel->transport, neighbours->peers[i])) {
            continue;
        }
        enum status status = channel_offer(channel, neighbours->peers[i]);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

void neighbours_free(struct neighbours *neighbours)
{
    free(neighbours->peers);
    *neighbours = (struct neighbours){0};
}
