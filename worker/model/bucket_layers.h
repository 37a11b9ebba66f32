/* What the layers of a bucket are called. Pure. */
#ifndef WORKER_MODEL_BUCKET_LAYERS_H
#define WORKER_MODEL_BUCKET_LAYERS_H

#include "worker/device/device.h"

#include <stddef.h>
#include <stdint.h>

/* The operations `first` to `end` - 1, of which those with parameters are layers. Layers are
 * numbered from 1, in the order of forward; they come as backward computes them: "linear 5, linear
 * 4", or "linear 5 to conv2d 1" where there are more than three. "" if there is none. */
void bucket_layers_write(const struct op *ops, uint32_t first, uint32_t end, char *ret_text,
                         size_t text_size);

/* The layer that an operation belongs to: "conv2d 2". One without parameters belongs to the layer
 * before it, or, where there is none, to the first. "" if there are no layers. */
void bucket_layers_name(const struct op *ops, uint32_t op_count, uint32_t op, char *ret_text,
                        size_t text_size);

#endif
