/* Hands what the exchange asks of a device to the model. */
#include "worker/train/device_sums.h"

#include "common/job/job_modes.h"
#include "worker/train/trainer_state.h"

_Static_assert(EXCHANGE_SHARE_BYTES == PROGRAM_SHARE_BYTES, "a share is that of a program");
_Static_assert(EXCHANGE_ID_BYTES == PROGRAM_ID_BYTES, "an id is that of a program");
_Static_assert(EXCHANGE_FLAG_COUNT == PROGRAM_FLAG_COUNT, "flags are those of a program");
_Static_assert(EXCHANGE_PEERS_MAX == PROGRAM_PEERS_MAX, "as many meet as programs do");

static enum status share(void *context, unsigned char ret_share[EXCHANGE_SHARE_BYTES])
{
    return model_share(context, ret_share);
}

static enum status meet(void *context, const struct exchange_meeting *meeting)
{
    const struct program_peers peers = {
        .rank = meeting->rank,
        .world = meeting->world,
        .shares = meeting->shares,
        .flags = meeting->flags,
        .flag_bytes = meeting->flag_bytes,
        .bucket_count = meeting->bucket_count,
    };
    return model_meet(context, &peers);
}

static enum status sum(void *context, uint32_t bucket)
{
    return model_sum(context, bucket);
}

static enum status join(void *context, const struct exchange_joining *joining)
{
    const struct program_joining of_program = {
        .rank = joining->rank,
        .world = joining->world,
        .bucket_count = joining->bucket_count,
        .id = joining->id,
        .is_stopped = joining->is_stopped,
        .context = joining->context,
    };
    return model_join(context, &of_program);
}

static void stop(void *context)
{
    model_stop(context);
}

static void part(void *context)
{
    model_part(context);
}

struct exchange_device device_sums(struct model *model)
{
    return (struct exchange_device){
        .share = share,
        .meet = meet,
        .join = join,
        .stop = stop,
        .sum = sum,
        .part = part,
        .context = model,
    };
}

enum status device_sums_meet(struct trainer *trainer)
{
    bool has_nccl = job_has_nccl(trainer->job);
    bool has_several = trainer->ranks.count > 1; // whose vectors are the host's
    bool can = has_nccl || (trainer->device_updates && !has_several && trainer->job->cuda_peers &&
                            trainer->base == NULL && model_may_share(trainer->model));
    return exchange_meet(trainer->exchange, can ? &trainer->device_of_sums : NULL,
                         &trainer->device_sums);
}
