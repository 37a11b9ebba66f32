/* oneDNN 2.x in few words: primitives with their memory objects. The library's operation
 * descriptors (removed in 3.x) appear in conv2d.c alone. */
#ifndef WORKER_DEVICE_CPU_ONEDNN_H
#define WORKER_DEVICE_CPU_ONEDNN_H

#include "worker/device/cpu/node.h"

#include <oneapi/dnnl/dnnl.h>

#define ONEDNN_ARGS_MAX 8

/* A primitive and what it works on. Zeroed is empty. */
struct onednn_call {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[ONEDNN_ARGS_MAX]; // memory objects: owned
    int arg_count;
};

/* Takes the primitive descriptor: makes its primitive, and notes what scratch it needs. */
enum status onednn_call_create(struct node_context *context, dnnl_primitive_desc_t desc,
                               struct onednn_call *ret_call);
void onednn_call_destroy(struct onednn_call *call);

/* Adds an argument; `data` may change later by onednn_call_point. */
enum status onednn_call_add(struct node_context *context, struct onednn_call *call, int argument,
                            const dnnl_memory_desc_t *desc, const void *data);
enum status onednn_call_point(struct onednn_call *call, int argument, const void *data);
enum status onednn_call_run(struct node_context *context, const struct onednn_call *call);

/* Copies between two layouts of one tensor. Empty if they are the same. */
enum status onednn_reorder_create(struct node_context *context, const dnnl_memory_desc_t *from_desc,
                                  const dnnl_memory_desc_t *to_desc, const void *from,
                                  const void *to, struct onednn_call *ret_call);

/* Attributes that all primitives here have: scratch from the caller, and a relu behind if asked. */
enum status onednn_attributes_create(bool has_relu, dnnl_primitive_attr_t *ret_attributes);

/* The layout of a tensor that is said to have so many channels: its own, or with their padding.
 * Packed: (N, H, W, C), whatever its block. */
enum status onednn_describe_tensor(const struct tensor *tensor, uint32_t channels, bool is_packed,
                                   dnnl_memory_desc_t *ret_desc);

/* Channels in a block that the library likes best on this machine. */
uint32_t onednn_block(void);

/* STATUS_DEVICE, logged with what was attempted, unless `result` is success. */
enum status onednn_status(dnnl_status_t result, const char *what);

#endif
