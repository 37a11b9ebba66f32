/* The seam to oneDNN 3.x. */
#include "worker/device/cpu/onednn_seam.h"

/* Owned; NULL: there is no such tensor. */
struct descriptors {
    dnnl_memory_desc_t x, y, bias, weights, weight_grads;
};

static dnnl_status_t describe(const struct onednn_layout *layout, dnnl_memory_desc_t *ret_desc)
{
    return dnnl_memory_desc_create_with_tag(ret_desc, layout->dim_count, layout->dims, layout->type,
                                            layout->tag);
}

static void destroy(dnnl_memory_desc_t desc)
{
    if (desc != NULL) {
        dnnl_memory_desc_destroy(desc);
    }
}

static void destroy_all(const struct descriptors *all)
{
    destroy(all->x);
    destroy(all->y);
    destroy(all->bias);
    destroy(all->weights);
    destroy(all->weight_grads);
}

/* What it has made is the caller's also if it fails. */
static dnnl_status_t describe_all(const struct onednn_convolution *convolution,
                                  struct descriptors *ret_all)
{
    const struct {
        const struct onednn_layout *layout;
        dnnl_memory_desc_t *desc;
    } rows[] = {
        {&convolution->x, &ret_all->x},
        {&convolution->y, &ret_all->y},
        {&convolution->bias, &ret_all->bias},
        {&convolution->weights, &ret_all->weights},
        {&convolution->weight_grads, &ret_all->weight_grads},
    };
    *ret_all = (struct descriptors){0};
    dnnl_status_t result = dnnl_success;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && result == dnnl_success; i++) {
        if (rows[i].layout->dim_count > 0) {
            result = describe(rows[i].layout, rows[i].desc);
        }
    }
    return result;
}

/* Zero is no dilation; windows are not dilated here. */
static const dnnl_dims_t no_dilation = {0};

dnnl_status_t onednn_seam_describe_convolution(const struct onednn_convolution *convolution,
                                               dnnl_engine_t engine,
                                               const_dnnl_primitive_attr_t attributes,
                                               const_dnnl_primitive_desc_t hint,
                                               dnnl_primitive_desc_t *ret_desc)
{
    struct descriptors all;
    dnnl_alg_kind_t algorithm = convolution->algorithm;
    const dnnl_dim_t *strides = convolution->strides, *padding = convolution->padding;
    dnnl_status_t result = describe_all(convolution, &all);
    if (result != dnnl_success) {
        destroy_all(&all);
        return result;
    }
    if (convolution->kind == dnnl_backward_data) {
        result = dnnl_convolution_backward_data_primitive_desc_create(
            ret_desc, engine, algorithm, all.x, all.weights, all.y, strides, no_dilation, padding,
            padding, hint, attributes);
    } else if (convolution->kind == dnnl_backward_weights) {
        result = dnnl_convolution_backward_weights_primitive_desc_create(
            ret_desc, engine, algorithm, all.x, all.weight_grads, all.bias, all.y, strides,
            no_dilation, padding, padding, hint, attributes);
    } else {
        result = dnnl_convolution_forward_primitive_desc_create(
            ret_desc, engine, convolution->kind, algorithm, all.x, all.weights, all.bias, all.y,
            strides, no_dilation, padding, padding, attributes);
    }
    destroy_all(&all); // the primitive descriptor has copies
    return result;
}

dnnl_status_t onednn_seam_describe_reorder(const_dnnl_memory_t from, const_dnnl_memory_t to,
                                           dnnl_engine_t engine,
                                           const_dnnl_primitive_attr_t attributes,
                                           dnnl_primitive_desc_t *ret_desc)
{
    const_dnnl_memory_desc_t from_desc, to_desc; // the memory objects'
    dnnl_status_t result = dnnl_memory_get_memory_desc(from, &from_desc);
    if (result == dnnl_success) {
        result = dnnl_memory_get_memory_desc(to, &to_desc);
    }
    if (result != dnnl_success) {
        return result;
    }
    return dnnl_reorder_primitive_desc_create(ret_desc, from_desc, engine, to_desc, engine,
                                              attributes);
}

dnnl_status_t onednn_seam_create_memory(const struct onednn_layout *layout, dnnl_engine_t engine,
                                        void *data, dnnl_memory_t *ret_memory)
{
    dnnl_memory_desc_t desc;
    dnnl_status_t result = describe(layout, &desc);
    if (result != dnnl_success) {
        return result;
    }
    result = dnnl_memory_create(ret_memory, desc, engine, data);
    dnnl_memory_desc_destroy(desc); // the memory object has a copy
    return result;
}

dnnl_status_t onednn_seam_create_wanted_memory(const_dnnl_primitive_t primitive, int argument,
                                               dnnl_engine_t engine, dnnl_memory_t *ret_memory,
                                               size_t *ret_bytes)
{
    const_dnnl_primitive_desc_t primitive_desc; // the primitive's, as is what it answers
    dnnl_status_t result = dnnl_primitive_get_primitive_desc(primitive, &primitive_desc);
    if (result != dnnl_success) {
        return result;
    }
    const_dnnl_memory_desc_t desc =
        dnnl_primitive_desc_query_md(primitive_desc, dnnl_query_exec_arg_md, argument);
    size_t bytes = desc != NULL ? dnnl_memory_desc_get_size(desc) : 0;
    if (bytes > 0) {
        result = dnnl_memory_create(ret_memory, desc, engine, DNNL_MEMORY_NONE);
    }
    if (result == dnnl_success) {
        *ret_bytes = bytes;
    }
    return result;
}

dnnl_status_t onednn_seam_has_layout(const_dnnl_memory_t memory, const struct onednn_layout *layout,
                                     bool *ret_has)
{
    dnnl_memory_desc_t wanted;
    const_dnnl_memory_desc_t desc; // the memory object's
    dnnl_status_t result = describe(layout, &wanted);
    if (result != dnnl_success) {
        return result;
    }
    result = dnnl_memory_get_memory_desc(memory, &desc);
    if (result == dnnl_success) {
        *ret_has = dnnl_memory_desc_equal(desc, wanted) != 0;
    }
    dnnl_memory_desc_destroy(wanted);
    return result;
}

dnnl_status_t onednn_seam_append_relu(dnnl_post_ops_t post_ops)
{
    return dnnl_post_ops_append_eltwise(post_ops, dnnl_eltwise_relu, 0, 0);
}
