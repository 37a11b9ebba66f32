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
    bool is_ahead;      // parameters and states on the GPU are newer than the host's
    bool keeps_weights; // the libraries' weights are those of the parameters, and are to stay so

    // An update that is not yet queued: see updates_gather.
    struct cuda_span gathered; // count 0: there is none
    struct optimizer_update gathered_update;
};

/* Reports what does not fit. What it holds is updates_finish's, also if it fails. */
enum status updates_hold(struct updates *updates, float *const *states, uint32_t state_count,
                         size_t value_count);
void updates_finish(struct updates *updates); // when nothing uses them; zeroed is fine

/* Queues an update, behind what has been queued to compute, from the gradients on the GPU. */
enum status updates_apply(struct updates *updates, const struct transfer *transfer,
                          const struct optimizer_update *update, struct cuda_span span);

/* The same later: spans that lie beside each other, from the end of the vector down to its begin,
 * are one launch. A reader of what it writes has it queued before. */
enum status updates_gather(struct updates *updates, const struct transfer *transfer,
                           const struct optimizer_update *update, struct cuda_span span);
enum status updates_flush(struct updates *updates, const struct transfer *transfer);

/* Waits. */
enum status updates_fetch(struct updates *updates, const struct transfer *transfer);

#endif
