/* The seam to oneDNN 2.x. */
#include "worker/device/cpu/onednn_seam.h"

struct descriptors {
    dnnl_memory_desc_t x, y, bias, weights, weight_grads;
};

static dnnl_status_t describe(const struct onednn_layout *layout, dnnl_memory_desc_t *ret_desc)
{
    return dnnl_memory_desc_init_by_tag(ret_desc, layout->dim_count, layout->dims, layout->type,
                                        layout->tag);
}

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
    dnnl_status_t result = dnnl_success;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && result == dnnl_success; i++) {
        result = describe(rows[i].layout, rows[i].desc); // of no dimensions: an empty one
    }
    return result;
}

dnnl_status_t onednn_seam_describe_convolution(const struct onednn_convolution *convolution,
                                               dnnl_engine_t engine,
                                               const_dnnl_primitive_attr_t attributes,
                                               const_dnnl_primitive_desc_t hint,
                                               dnnl_primitive_desc_t *ret_desc)
{
    struct descriptors all;
    dnnl_convolution_desc_t desc;
    dnnl_alg_kind_t algorithm = convolution->algorithm;
    const dnnl_dim_t *strides = convolution->strides, *padding = convolution->padding;
    const dnnl_memory_desc_t *bias = convolution->bias.dim_count > 0 ? &all.bias : NULL;
    dnnl_status_t result = describe_all(convolution, &all);
    if (result != dnnl_success) {
        return result;
    }
    if (convolution->kind == dnnl_backward_data) {
        result = dnnl_convolution_backward_data_desc_init(&desc, algorithm, &all.x, &all.weights,
                                                          &all.y, strides, padding, padding);
    } else if (convolution->kind == dnnl_backward_weights) {
        result = dnnl_convolution_backward_weights_desc_init(
            &desc, algorithm, &all.x, &all.weight_grads, bias, &all.y, strides, padding, padding);
    } else {
        result = dnnl_convolution_forward_desc_init(&desc, convolution->kind, algorithm, &all.x,
                                                    &all.weights, bias, &all.y, strides, padding,
                                                    padding);
    }
    if (result != dnnl_success) {
        return result;
    }
    return dnnl_primitive_desc_create(ret_desc, &desc, attributes, engine, hint);
}

dnnl_status_t onednn_seam_describe_reorder(const_dnnl_memory_t from, const_dnnl_memory_t to,
                                           dnnl_engine_t engine,
                                           const_dnnl_primitive_attr_t attributes,
                                           dnnl_primitive_desc_t *ret_desc)
{
    const dnnl_memory_desc_t *from_desc, *to_desc;
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
    return result == dnnl_success ? dnnl_memory_create(ret_memory, &desc, engine, data) : result;
}

dnnl_status_t onednn_seam_create_wanted_memory(const_dnnl_primitive_t primitive, int argument,
                                               dnnl_engine_t engine, dnnl_memory_t *ret_memory,
                                               size_t *ret_bytes)
{
    const_dnnl_primitive_desc_t primitive_desc;
    dnnl_status_t result = dnnl_primitive_get_primitive_desc(primitive, &primitive_desc);
    if (result != dnnl_success) {
        return result;
    }
    const dnnl_memory_desc_t *desc =
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
    const dnnl_memory_desc_t *desc;
    dnnl_status_t result = describe(layout, &wanted);
    if (result == dnnl_success) {
        result = dnnl_memory_get_memory_desc(memory, &desc);
    }
    if (result == dnnl_success) {
        *ret_has = dnnl_memory_desc_equal(desc, &wanted) != 0;
    }
    return result;
}

dnnl_status_t onednn_seam_append_relu(dnnl_post_ops_t post_ops)
{
    return dnnl_post_ops_append_eltwise(post_ops, 1.0f, dnnl_eltwise_relu, 0, 0);
}
