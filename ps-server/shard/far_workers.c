/* Paces answers to remote workers, and gives them credits for pushes. */
#include "ps-server/shard/far_workers.h"

#include "common/base/log.h"

#include <stdlib.h>
#include <string.h>

enum status far_workers_create(struct channel *channel, const struct job *job,
                               struct far_workers *ret_far)
{
    const struct carriers carriers = job_carriers(job);
    *ret_far = (struct far_workers){.channel = channel};
    transport_fit_answers(channel->transport);
    ret_far->taken = calloc(carriers.processes, sizeof(*ret_far->taken));
    ret_far->given = calloc(carriers.processes, sizeof(*ret_far->given));
    if (ret_far->taken == NULL || ret_far->given == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = callers_init(&ret_far->callers, carriers, job->connections);
    return status == STATUS_OK
               ? pacer_create(channel, carriers.processes, PACER_QUIETEST_LANE, &ret_far->pacer)
               : status;
}

void far_workers_destroy(struct far_workers *far)
{
    credits_finish(&far->credits);
    pacer_destroy(far->pacer);
    callers_finish(&far->callers);
    free(far->taken);
    free(far->given);
}

void far_workers_begin_phase(struct far_workers *far)
{
    size_t size = far->callers.carriers.processes * sizeof(uint64_t);
    memset(far->taken, 0, size);
    memset(far->given, 0, size);
}

void far_workers_note_taken(struct far_workers *far, uint32_t rank)
{
    far->taken[carriers_process(far->callers.carriers, rank)]++;
}

enum status far_workers_answer(struct far_workers *far, uint32_t rank,
                               const struct message *message, bool is_stable)
{
    void (*release)(void *) = is_stable ? payload_keep : NULL;
    const struct lanes *lanes = callers_lanes(&far->callers, rank);
    uint64_t peer = lanes_of_bucket(lanes, message->bucket); // by which it was asked for
    uint32_t process = carriers_process(far->callers.carriers, rank);
    far->given[process]++;
    return is_stable && far->callers.is_far[process]
               ? pacer_send(far->pacer, process, lanes, message, release, NULL)
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
        uint64_t peer = lanes_of_bucket(callers_lanes(&far->callers, credit.rank), credit.bucket);
        if (callers_is_far(&far->callers, credit.rank) &&
            channel_send(far->channel, peer, &taken, NULL, NULL) != STATUS_OK) {
            log_info("cannot send TAKEN: the worker of rank %u is gone", credit.rank);
        }
    }
}
