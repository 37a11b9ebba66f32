/* What programs of several processes do with each other: sums among their GPUs, by words or by
 * NCCL, and memory that servers of the host reach. */
#include "worker/device/cuda/program_state.h"

#include <assert.h>

enum status cuda_program_expose(struct program *base, struct program_exposed *ret_exposed)
{
    struct cuda_program *program = (struct cuda_program *)base;
    int gpu = 0;
    enum status status = cuda_check((int)cudaGetDevice(&gpu), "ask which GPU it is");
    if (status != STATUS_OK) {
        return status;
    }
    status = updates_flush(&program->updates, &program->transfer);
    if (status != STATUS_OK) {
        return status;
    }
    program->updates.keeps_weights = false;
    status = transfer_send_params(&program->transfer, false);
    if (status != STATUS_OK) {
        return status;
    }
    status = cuda_check((int)cudaStreamSynchronize(program->transfer.up), "copy parameters");
    if (status != STATUS_OK) {
        return status;
    }
    program->is_exposed = program->updates.is_ahead = true;
    *ret_exposed = (struct program_exposed){
        .memory = program->vectors,
        .size = program->vector_bytes,
        .params = program->context.params,
        .grads = program->context.grads,
        .kept = program->kept,
        .kept_stride = program->kept_stride,
        .gpu = (uint32_t)gpu,
    };
    return STATUS_OK;
}

enum status cuda_program_share(struct program *base, unsigned char ret_share[PROGRAM_SHARE_BYTES])
{
    const struct cuda_program *program = (const struct cuda_program *)base;
    return peers_share(program->context.grads, program->vectors, program->value_count, ret_share);
}

void cuda_program_part(struct program *base)
{
    struct cuda_program *program = (struct cuda_program *)base;
    if (cuda_has_peers(program)) {
        peers_await_end(&program->peers, &program->transfer);
    }
    peers_finish(&program->peers);
}

enum status cuda_program_meet(struct program *base, const struct program_peers *options)
{
    struct cuda_program *program = (struct cuda_program *)base;
    enum status status = peers_meet(&program->peers, options, program->context.grads,
                                    program->value_count, program->transfer.down);
    if (status != STATUS_OK) {
        peers_finish(&program->peers);
    } else if (program->replay.is_on) {
        peers_try_capture(&program->peers, program->transfer.down);
    }
    return status;
}

enum status cuda_program_join(struct program *base, const struct program_joining *joining)
{
    struct cuda_program *program = (struct cuda_program *)base;
    return peers_join(&program->peers, &program->collective, joining);
}

void cuda_program_stop(struct program *base)
{
    collective_stop(&((struct cuda_program *)base)->collective);
}

enum status cuda_program_sum(struct program *base, const struct program_sum *sum)
{
    struct cuda_program *program = (struct cuda_program *)base;
    assert(program->keeps_gradients && cuda_has_peers(program));
    return peers_sum_joined(&program->peers, &program->transfer, sum);
}
