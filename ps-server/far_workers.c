/* A pacer for what goes to them, credits for what comes. */
#include "ps-server/far_workers.h"

#include "common/log.h"

#include <stdlib.h>

enum status far_workers_create(struct channel *channel, const struct job *job,
                               struct far_workers *ret_far)
{
    *ret_far = (struct far_workers){
        .channel = channel,
        .lanes = calloc(job->workers, sizeof(*ret_far->lanes)),
        .is_far = calloc(job->workers, sizeof(*ret_far->is_far)),
        .worker_count = job->workers,
        .lane_count = job->connections,
    };
    transport_fit_answers(channel->transport);
    return ret_far->lanes != NULL && ret_far->is_far != NULL
               ? pacer_create(channel, job->workers, PACER_QUIETEST_LANE, &ret_far->pacer)
               : STATUS_NO_MEMORY;
}

void far_workers_destroy(struct far_workers *far)
{
    credits_finish(&far->credits);
    pacer_destroy(far->pacer);
    free(far->is_far);
    free(far->lanes);
}

enum status far_workers_meet(struct far_workers *far, const struct message *hello, uint64_t peer,
                             bool *ret_is_new)
{
    uint32_t lane_count = hello->is_far ? far->lane_count : 1;
    if (hello->rank >= far->worker_count || hello->lane >= lane_count) {
        return STATUS_MALFORMED;
    }
    struct lanes *lanes = &far->lanes[hello->rank];
    *ret_is_new = !lanes_have(lanes, peer);
    for (; lanes->count < lane_count; lanes->count++) {
        lanes->peers[lanes->count] = LANES_NONE;
    }
    lanes->peers[hello->lane] = peer;
    far->is_far[hello->rank] = hello->is_far;
    return STATUS_OK;
}

bool far_workers_know(const struct far_workers *far, uint32_t rank, uint64_t peer)
{
    return rank < far->worker_count && lanes_have(&far->lanes[rank], peer);
}

enum status far_workers_answer(struct far_workers *far, uint32_t rank,
                               const struct message *message, bool is_stable)
{
    void (*release)(void *) = is_stable ? payload_keep : NULL;
    const struct lanes *lanes = &far->lanes[rank];
    uint64_t peer = lanes_of_bucket(lanes, message->bucket); // by which it was asked for
    return is_stable && far->is_far[rank]
               ? pacer_send(far->pacer, rank, lanes, message, release, NULL)
               : channel_send(far->channel, peer, message, release, NULL);
}

void far_workers_credit(struct far_workers *far, const struct message *push)
{
    struct credit credit = {.step = push->step,
                            .bytes = push->span.count * sizeof(float),
                            .rank = push->rank,
                            .bucket = push->bucket};
    credits_add(&far->credits, &credit);
    while (credits_take(&far->credits, &credit)) {
        const struct message taken = {.kind = MESSAGE_TAKEN,
                                      .rank = credit.rank,
                                      .step = credit.step,
                                      .bucket = credit.bucket};
        uint64_t peer = lanes_of_bucket(&far->lanes[credit.rank], credit.bucket);
        if (far->is_far[credit.rank] &&
            channel_send(far->channel, peer, &taken, NULL, NULL) != STATUS_OK) {
            log_warn("cannot send TAKEN: worker=%u is gone", credit.rank);
        }
    }
}
