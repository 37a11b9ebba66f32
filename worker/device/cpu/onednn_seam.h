/* What oneDNN 2 and 3 have different names or types for: onednn_v2.c or onednn_v3.c, of which meson
 * builds the one that fits the installed library. All else is the same in both, and nobody else
 * knows which one it is.
 *
 * 2 has operation descriptors, from which it makes primitive descriptors, and memory descriptors
 * that are plain structs. 3 makes primitive descriptors at once, and its memory descriptors are
 * objects with owners. So none of either appears here: a layout is a value, and what the library
 * likes best is asked of a primitive, and answered by a memory object. Nothing here logs. */
#ifndef WORKER_DEVICE_CPU_ONEDNN_SEAM_H
#define WORKER_DEVICE_CPU_ONEDNN_SEAM_H

#include <oneapi/dnnl/dnnl.h>

#include <stdbool.h>
#include <stddef.h>

/* A tensor as the library is told of it. */
struct onednn_layout {
    int dim_count; // 0: there is no such tensor
    dnnl_dims_t dims;
    dnnl_data_type_t type;
    dnnl_format_tag_t tag; // dnnl_format_tag_any: as the primitive likes it best
};

/* One pass of a convolution. x and y stand for their gradients as well. */
struct onednn_convolution {
    dnnl_prop_kind_t kind; // forward_training, backward_data or backward_weights
    dnnl_alg_kind_t algorithm;
    struct onednn_layout x, y, bias, weights, weight_grads;
    dnnl_dims_t strides, padding;
};

/* The caller's: a primitive descriptor. dnnl_unimplemented if there is no such convolution. `hint`:
 * that of the forward pass, for a gradient; NULL otherwise. */
dnnl_status_t onednn_seam_describe_convolution(const struct onednn_convolution *convolution,
                                               dnnl_engine_t engine,
                                               const_dnnl_primitive_attr_t attributes,
                                               const_dnnl_primitive_desc_t hint,
                                               dnnl_primitive_desc_t *ret_desc);

/* The caller's: a primitive descriptor of a copy between the layouts of two memory objects. */
dnnl_status_t onednn_seam_describe_reorder(const_dnnl_memory_t from, const_dnnl_memory_t to,
                                           dnnl_engine_t engine,
                                           const_dnnl_primitive_attr_t attributes,
                                           dnnl_primitive_desc_t *ret_desc);

/* The caller's: a memory object. `data` is borrowed, or DNNL_MEMORY_NONE. */
dnnl_status_t onednn_seam_create_memory(const struct onednn_layout *layout, dnnl_engine_t engine,
                                        void *data, dnnl_memory_t *ret_memory);

/* The same for an argument in the layout that the primitive wants it in, without data. *ret_bytes
 * is what it takes; 0: the primitive has no such argument, and there is no object. */
dnnl_status_t onednn_seam_create_wanted_memory(const_dnnl_primitive_t primitive, int argument,
                                               dnnl_engine_t engine, dnnl_memory_t *ret_memory,
                                               size_t *ret_bytes);

/* Whether the memory object's layout is this one. */
dnnl_status_t onednn_seam_has_layout(const_dnnl_memory_t memory, const struct onednn_layout *layout,
                                     bool *ret_has);

dnnl_status_t onednn_seam_append_relu(dnnl_post_ops_t post_ops);

#endif
