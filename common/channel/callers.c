/* Gives the ranks of a process to the first connection that claims them. */
#include "common/channel/callers.h"

#include <stdlib.h>

enum status callers_init(struct callers *callers, struct carriers carriers, uint32_t lane_count)
{
    *callers = (struct callers){
        .lanes = calloc(carriers.processes, sizeof(*callers->lanes)),
        .is_far = calloc(carriers.processes, sizeof(*callers->is_far)),
        .carriers = carriers,
        .lane_count = lane_count,
    };
    return callers->lanes != NULL && callers->is_far != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

void callers_finish(struct callers *callers)
{
    free(callers->is_far);
    free(callers->lanes);
    *callers = (struct callers){0};
}

/* Which process the connection is. False: none so far. */
static bool find_process(const struct callers *callers, uint64_t peer, uint32_t *ret_process)
{
    for (uint32_t i = 0; i < callers->carriers.processes; i++) {
        if (lanes_have(&callers->lanes[i], peer)) {
            *ret_process = i;
            return true;
        }
    }
    return false;
}

enum status callers_meet(struct callers *callers, const struct message *message, uint64_t peer,
                         bool *ret_is_new)
{
    const struct wire_hello *hello = message->hello;
    uint32_t lane_count = hello->is_far ? callers->lane_count : 1;
    if (message->rank >= callers->carriers.ranks || hello->lane >= lane_count) {
        return STATUS_MALFORMED;
    }
    uint32_t process = carriers_process(callers->carriers, message->rank);
    if (carriers_block(callers->carriers, process).first != message->rank) {
        return STATUS_MALFORMED;
    }
    struct lanes *lanes = &callers->lanes[process];
    bool is_first = lanes->count == 0;
    bool is_theirs =
        !is_first && callers->is_far[process] == hello->is_far && lanes->peers[hello->lane] == peer;
    if (is_theirs) {
        *ret_is_new = false;
        return STATUS_OK;
    }
    bool is_taken = !is_first && (callers->is_far[process] != hello->is_far ||
                                  lanes->peers[hello->lane] != LANES_NONE);
    uint32_t known;
    if (is_taken || find_process(callers, peer, &known)) {
        return STATUS_DENIED;
    }
    for (; lanes->count < lane_count; lanes->count++) {
        lanes->peers[lanes->count] = LANES_NONE;
    }
    lanes->peers[hello->lane] = peer;
    callers->is_far[process] = hello->is_far;
    *ret_is_new = true;
    return STATUS_OK;
}

bool callers_are(const struct callers *callers, uint32_t rank, uint64_t peer)
{
    return rank < callers->carriers.ranks && lanes_have(callers_lanes(callers, rank), peer);
}

const struct lanes *callers_lanes(const struct callers *callers, uint32_t rank)
{
    return &callers->lanes[carriers_process(callers->carriers, rank)];
}

bool callers_is_far(const struct callers *callers, uint32_t rank)
{
    return callers->is_far[carriers_process(callers->carriers, rank)];
}

bool callers_take_departed(const struct callers *callers, struct departures *departures,
                           uint32_t *ret_process)
{
    uint64_t peer;
    while (departures_take(departures, &peer)) {
        if (find_process(callers, peer, ret_process)) {
            return true;
        }
    }
    return false;
}
