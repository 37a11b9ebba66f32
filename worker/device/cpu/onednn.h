/* oneDNN in few words: primitives with their memory objects. Nothing here, nor in what uses it,
 * says which version of the library that is: see onednn_seam.h. */
#ifndef WORKER_DEVICE_CPU_ONEDNN_H
#define WORKER_DEVICE_CPU_ONEDNN_H

#include "worker/device/cpu/node.h"
#include "worker/device/cpu/onednn_seam.h"

#include <oneapi/dnnl/dnnl.h>

#define ONEDNN_ARGS_MAX 8

/* A primitive and what it works on. Zeroed is empty. */
struct onednn_call {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[ONEDNN_ARGS_MAX]; // memory objects: owned
    int arg_count;
};

/* The pass's primitive, with a relu behind it if asked. STATUS_UNSUPPORTED, not logged: the library
 * has no such convolution. */
enum status onednn_convolution_create(struct node_context *context,
                                      const struct onednn_convolution *convolution, bool has_relu,
                                      struct onednn_call *ret_call);
void onednn_call_destroy(struct onednn_call *call);

/* Adds an argument; `data` may change later by onednn_call_point. */
enum status onednn_call_add(struct node_context *context, struct onednn_call *call, int argument,
                            const struct onednn_layout *layout, const void *data);

/* Adds one in the layout that the primitive wants it in, and says what that takes. */
enum status onednn_call_add_wanted(struct node_context *context, struct onednn_call *call,
                                   int argument, size_t *ret_bytes);

/* Whether that argument's layout is this one. */
enum status onednn_call_has_layout(const struct onednn_call *call, int argument,
                                   const struct onednn_layout *layout, bool *ret_has);
enum status onednn_call_point(struct onednn_call *call, int argument, const void *data);
enum status onednn_call_run(struct node_context *context, const struct onednn_call *call);

/* A copy of an argument of `call`, from another layout into that which its primitive wants, or
 * back. */
struct onednn_copy {
    const struct onednn_call *call;
    int argument;
    bool is_back;
    const struct onednn_layout *layout; // the other one
    const void *data;                   // in the other layout
};

/* The argument's data is set by onednn_call_point, as DNNL_ARG_TO, or of a copy back DNNL_ARG_FROM.
 */
enum status onednn_copy_create(struct node_context *context, const struct onednn_copy *copy,
                               struct onednn_call *ret_call);

/* The layout of a tensor that is said to have so many channels: its own, or with their padding.
 * Packed: (N, H, W, C), whatever its block. */
struct onednn_layout onednn_layout_of(const struct tensor *tensor, uint32_t channels,
                                      bool is_packed);

/* Channels in a block that the library likes best on this machine. */
uint32_t onednn_block(void);

/* STATUS_DEVICE, logged with what was attempted, unless `result` is success. */
enum status onednn_status(dnnl_status_t result, const char *what);

#endif
