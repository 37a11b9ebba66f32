/* Updates of parameters on the GPU, which then keeps them and the optimizer's states. */
#ifndef WORKER_DEVICE_CUDA_UPDATES_H
#define WORKER_DEVICE_CUDA_UPDATES_H

#include "worker/device/cuda/context.h"
#include "worker/device/cuda/transfer.h"

#define UPDATES_STATES_MAX 2

/* Zeroed: none are held. */
struct updates {
    uint32_t state_count;
    float *states[UPDATES_STATES_MAX];      // (value_count) each, device memory, owned
    float *host_states[UPDATES_STATES_MAX]; // likewise, host, borrowed
    size_t bytes;                           // of the states on the GPU
    bool is_held;
    bool is_ahead; // parameters and states on the GPU are newer than the host's
};

/* Reports what does not fit. What it holds is updates_finish's, also if it fails. */
enum status updates_hold(struct updates *updates, float *const *states, uint32_t state_count,
                         size_t value_count);
void updates_finish(struct updates *updates); // when nothing uses them; zeroed is fine

/* Queues an update, behind what has been queued to compute, from the gradients on the GPU. */
enum status updates_apply(struct updates *updates, const struct transfer *transfer,
                          const struct optimizer_update *update, struct cuda_span span);

/* Waits. */
enum status updates_fetch(struct updates *updates, const struct transfer *transfer);

#endif
