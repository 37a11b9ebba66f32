/* Weights and biases as the libraries want them: channels beside each other, in the type of
 * activations, each in a place that is as aligned as memory of its own. Parameters lie behind each
 * other in the flat vector, as floats, taps beside each other. One launch copies those of many
 * operations. Where the GPU makes the updates, each update writes the weights as well, so that only
 * the first forward copies them (updates.h).
 *
 * Gradients of weights come back likewise. Their places are taken in the order of backward, and
 * from the beginning again where there would be more than GRADIENT_BYTES of them, or than the
 * largest takes: then those that lie there are copied first. */
#ifndef WORKER_DEVICE_CUDA_WEIGHTS_H
#define WORKER_DEVICE_CUDA_WEIGHTS_H

#include "worker/device/cuda/context.h"

/* Gives gradients their places, when all nodes are there. */
void weights_place(struct node_context *context);

/* Device memory for the tables of what is copied where; after that. */
enum status weights_bind(struct node_context *context);
void weights_finish(struct node_context *context); // zeroed is fine

/* Queues the copies of those that lie in a span of the parameters. */
enum status weights_take(const struct node_context *context, size_t begin, size_t end);

/* Queues the copies of gradients that have been computed, to the flat vector. */
enum status weights_return(struct node_context *context);

#endif
