/* Primitives with their memory objects. */
#include "worker/device/cpu/onednn.h"

#include "common/log.h"
#include "worker/device/cpu/bf16.h"

#include <assert.h>

enum status onednn_status(dnnl_status_t result, const char *what)
{
    if (result == dnnl_success) {
        return STATUS_OK;
    }
    log_error("oneDNN cannot %s: status %d", what, (int)result);
    return result == dnnl_out_of_memory ? STATUS_NO_MEMORY : STATUS_DEVICE;
}

uint32_t onednn_block(void)
{
    dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    if ((isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core) {
        return 16;
    }
    return (isa & dnnl_cpu_isa_avx2) == dnnl_cpu_isa_avx2 ? 8 : 1;
}

enum status onednn_attributes_create(bool has_relu, dnnl_primitive_attr_t *ret_attributes)
{
    dnnl_primitive_attr_t attributes;
    dnnl_post_ops_t post_ops = NULL;
    enum status status =
        onednn_status(dnnl_primitive_attr_create(&attributes), "create attributes");
    if (status != STATUS_OK) {
        return status;
    }
    dnnl_status_t result =
        dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    if (result == dnnl_success && has_relu) {
        result = dnnl_post_ops_create(&post_ops);
    }
    if (result == dnnl_success && has_relu) {
        result = dnnl_post_ops_append_eltwise(post_ops, 1.0f, dnnl_eltwise_relu, 0, 0);
    }
    if (result == dnnl_success && has_relu) {
        result = dnnl_primitive_attr_set_post_ops(attributes, post_ops);
    }
    if (post_ops != NULL) {
        dnnl_post_ops_destroy(post_ops);
    }
    if (result != dnnl_success) {
        dnnl_primitive_attr_destroy(attributes);
        return onednn_status(result, "set attributes");
    }
    *ret_attributes = attributes;
    return STATUS_OK;
}

enum status onednn_describe_tensor(const struct tensor *tensor, uint32_t channels, bool is_packed,
                                   dnnl_memory_desc_t *ret_desc)
{
    const dnnl_dims_t dims = {tensor->batch, channels, tensor->shape.rows, tensor->shape.columns};
    bool is_bf16 = tensor_is_bf16(tensor);
    dnnl_format_tag_t tag = is_packed || is_bf16  ? dnnl_acdb
                            : tensor->block == 16 ? dnnl_aBcd16b
                            : tensor->block == 8  ? dnnl_aBcd8b
                                                  : dnnl_abcd;
    return onednn_status(
        dnnl_memory_desc_init_by_tag(ret_desc, 4, dims, is_bf16 ? dnnl_bf16 : dnnl_f32, tag),
        "describe a tensor");
}

enum status onednn_call_create(struct node_context *context, dnnl_primitive_desc_t desc,
                               struct onednn_call *ret_call)
{
    struct onednn_call call = {0};
    enum status status =
        onednn_status(dnnl_primitive_create(&call.primitive, desc), "create a primitive");
    if (status != STATUS_OK) {
        dnnl_primitive_desc_destroy(desc);
        return status;
    }
    const dnnl_memory_desc_t *scratch =
        dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    size_t bytes = scratch != NULL ? dnnl_memory_desc_get_size(scratch) : 0;
    if (bytes > 0) {
        status = onednn_call_add(context, &call, DNNL_ARG_SCRATCHPAD, scratch, NULL);
    }
    if (bytes > context->scratch_bytes) {
        context->scratch_bytes = bytes;
    }
    dnnl_primitive_desc_destroy(desc);
    if (status != STATUS_OK) {
        onednn_call_destroy(&call);
        return status;
    }
    *ret_call = call;
    return STATUS_OK;
}

void onednn_call_destroy(struct onednn_call *call)
{
    for (int i = 0; i < call->arg_count; i++) {
        dnnl_memory_destroy(call->args[i].memory);
    }
    if (call->primitive != NULL) {
        dnnl_primitive_destroy(call->primitive);
    }
    *call = (struct onednn_call){0};
}

/* The library writes only through arguments that are results; its interface does not tell. */
static void *writable(const void *data)
{
    union {
        const void *in;
        void *out;
    } cast = {.in = data};
    return cast.out;
}

enum status onednn_call_add(struct node_context *context, struct onednn_call *call, int argument,
                            const dnnl_memory_desc_t *desc, const void *data)
{
    assert(call->arg_count < ONEDNN_ARGS_MAX);
    dnnl_memory_t memory;
    void *handle = data != NULL ? writable(data) : DNNL_MEMORY_NONE;
    enum status status = onednn_status(dnnl_memory_create(&memory, desc, context->engine, handle),
                                       "create a memory object");
    if (status != STATUS_OK) {
        return status;
    }
    call->args[call->arg_count++] = (dnnl_exec_arg_t){argument, memory};
    return STATUS_OK;
}

enum status onednn_call_point(struct onednn_call *call, int argument, const void *data)
{
    for (int i = 0; i < call->arg_count; i++) {
        if (call->args[i].arg == argument) {
            return onednn_status(dnnl_memory_set_data_handle(call->args[i].memory, writable(data)),
                                 "set a memory object");
        }
    }
    return STATUS_OK; // a primitive that has no such argument needs no such memory
}

enum status onednn_call_run(struct node_context *context, const struct onednn_call *call)
{
    if (call->primitive == NULL) {
        return STATUS_OK;
    }
    return onednn_status(
        dnnl_primitive_execute(call->primitive, context->stream, call->arg_count, call->args),
        "run a primitive");
}

enum status onednn_reorder_create(struct node_context *context, const dnnl_memory_desc_t *from_desc,
                                  const dnnl_memory_desc_t *to_desc, const void *from,
                                  const void *to, struct onednn_call *ret_call)
{
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_desc_t desc;
    enum status status = onednn_attributes_create(false, &attributes);
    if (status != STATUS_OK) {
        return status;
    }
    status = onednn_status(dnnl_reorder_primitive_desc_create(&desc, from_desc, context->engine,
                                                              to_desc, context->engine, attributes),
                           "reorder a tensor");
    dnnl_primitive_attr_destroy(attributes);
    if (status != STATUS_OK) {
        return status;
    }
    struct onednn_call call;
    status = onednn_call_create(context, desc, &call);
    if (status != STATUS_OK) {
        return status;
    }
    status = onednn_call_add(context, &call, DNNL_ARG_FROM, from_desc, from);
    if (status == STATUS_OK) {
        status = onednn_call_add(context, &call, DNNL_ARG_TO, to_desc, to);
    }
    if (status != STATUS_OK) {
        onednn_call_destroy(&call);
        return status;
    }
    *ret_call = call;
    return STATUS_OK;
}
