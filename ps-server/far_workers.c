/* A pacer for what goes to them, credits for what comes. */
#include "ps-server/far_workers.h"

#include "common/log.h"

#include <stdlib.h>

enum status far_workers_create(struct channel *channel, uint32_t worker_count,
                               struct far_workers *ret_far)
{
    *ret_far = (struct far_workers){
        .channel = channel,
        .peers = calloc(worker_count, sizeof(*ret_far->peers)),
        .is_far = calloc(worker_count, sizeof(*ret_far->is_far)),
    };
    return ret_far->peers != NULL && ret_far->is_far != NULL
               ? pacer_create(channel, worker_count, &ret_far->pacer)
               : STATUS_NO_MEMORY;
}

void far_workers_destroy(struct far_workers *far)
{
    credits_finish(&far->credits);
    pacer_destroy(far->pacer);
    free(far->is_far);
    free(far->peers);
}

enum status far_workers_answer(struct far_workers *far, uint32_t rank,
                               const struct message *message, bool is_stable)
{
    void (*release)(void *) = is_stable ? payload_keep : NULL;
    uint64_t peer = far->peers[rank];
    return is_stable && far->is_far[rank]
               ? pacer_send(far->pacer, rank, peer, message, release, NULL)
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
        if (far->is_far[credit.rank] &&
            channel_send(far->channel, far->peers[credit.rank], &taken, NULL, NULL) != STATUS_OK) {
            log_warn("cannot send TAKEN: worker=%u is gone", credit.rank);
        }
    }
}
