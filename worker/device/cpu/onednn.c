/* Primitives with their memory objects. */
#include "worker/device/cpu/onednn.h"

#include "common/base/log.h"
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

/* What all primitives here have: scratch from the caller, and a relu behind if asked. */
static enum status create_attributes(bool has_relu, dnnl_primitive_attr_t *ret_attributes)
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
        result = onednn_seam_append_relu(post_ops);
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

struct onednn_layout onednn_layout_of(const struct tensor *tensor, uint32_t channels,
                                      bool is_packed)
{
    bool is_bf16 = tensor_is_bf16(tensor);
    return (struct onednn_layout){
        .dim_count = 4,
        .dims = {tensor->batch, channels, tensor->shape.rows, tensor->shape.columns},
        .type = is_bf16 ? dnnl_bf16 : dnnl_f32,
        .tag = is_packed || is_bf16  ? dnnl_acdb
               : tensor->block == 16 ? dnnl_aBcd16b
               : tensor->block == 8  ? dnnl_aBcd8b
                                     : dnnl_abcd,
    };
}

static void append(struct onednn_call *call, int argument, dnnl_memory_t memory)
{
    assert(call->arg_count < ONEDNN_ARGS_MAX);
    call->args[call->arg_count++] = (dnnl_exec_arg_t){argument, memory};
}

/* Adds to `call`, as its argument `name`, what `argument` of `wanting` is in the layout that its
 * primitive wants. */
static enum status add_wanted(struct node_context *context, struct onednn_call *call, int name,
                              const struct onednn_call *wanting, int argument, size_t *ret_bytes)
{
    dnnl_memory_t memory;
    size_t bytes = 0;
    dnnl_status_t result = onednn_seam_create_wanted_memory(wanting->primitive, argument,
                                                            context->engine, &memory, &bytes);
    enum status status = onednn_status(result, "create a memory object for a primitive");
    if (status != STATUS_OK) {
        return status;
    }
    if (bytes > 0) {
        append(call, name, memory);
    }
    *ret_bytes = bytes;
    return STATUS_OK;
}

enum status onednn_call_add_wanted(struct node_context *context, struct onednn_call *call,
                                   int argument, size_t *ret_bytes)
{
    return add_wanted(context, call, argument, call, argument, ret_bytes);
}

/* Takes the primitive descriptor: makes the call's primitive, and notes what scratch it needs. */
static enum status make_primitive(struct node_context *context, struct onednn_call *call,
                                  dnnl_primitive_desc_t desc)
{
    size_t bytes;
    enum status status =
        onednn_status(dnnl_primitive_create(&call->primitive, desc), "create a primitive");
    dnnl_primitive_desc_destroy(desc);
    if (status == STATUS_OK) {
        status = onednn_call_add_wanted(context, call, DNNL_ARG_SCRATCHPAD, &bytes);
    }
    if (status == STATUS_OK && bytes > context->scratch_bytes) {
        context->scratch_bytes = bytes;
    }
    return status;
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
                            const struct onednn_layout *layout, const void *data)
{
    dnnl_memory_t memory;
    void *handle = data != NULL ? writable(data) : DNNL_MEMORY_NONE;
    enum status status =
        onednn_status(onednn_seam_create_memory(layout, context->engine, handle, &memory),
                      "create a memory object");
    if (status == STATUS_OK) {
        append(call, argument, memory);
    }
    return status;
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

enum status onednn_call_has_layout(const struct onednn_call *call, int argument,
                                   const struct onednn_layout *layout, bool *ret_has)
{
    *ret_has = false;
    for (int i = 0; i < call->arg_count; i++) {
        if (call->args[i].arg == argument) {
            return onednn_status(onednn_seam_has_layout(call->args[i].memory, layout, ret_has),
                                 "compare layouts");
        }
    }
    return STATUS_OK;
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

/* A gradient's descriptor wants one of the forward pass, of the same algorithm, as its hint. */
static dnnl_status_t describe_with_hint(const struct onednn_convolution *convolution,
                                        dnnl_engine_t engine,
                                        const_dnnl_primitive_attr_t attributes,
                                        dnnl_primitive_desc_t *ret_desc)
{
    struct onednn_convolution forward = *convolution;
    dnnl_primitive_desc_t hint;
    forward.kind = dnnl_forward_training;
    dnnl_status_t result =
        onednn_seam_describe_convolution(&forward, engine, attributes, NULL, &hint);
    if (result != dnnl_success) {
        return result;
    }
    result = onednn_seam_describe_convolution(convolution, engine, attributes, hint, ret_desc);
    dnnl_primitive_desc_destroy(hint);
    return result;
}

enum status onednn_convolution_create(struct node_context *context,
                                      const struct onednn_convolution *convolution, bool has_relu,
                                      struct onednn_call *ret_call)
{
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_desc_t desc;
    enum status status = create_attributes(has_relu, &attributes);
    if (status != STATUS_OK) {
        return status;
    }
    dnnl_status_t result =
        convolution->kind == dnnl_forward_training
            ? onednn_seam_describe_convolution(convolution, context->engine, attributes, NULL,
                                               &desc)
            : describe_with_hint(convolution, context->engine, attributes, &desc);
    dnnl_primitive_attr_destroy(attributes);
    if (result == dnnl_unimplemented) {
        return STATUS_UNSUPPORTED;
    }
    status = onednn_status(result, "describe a convolution");
    if (status != STATUS_OK) {
        return status;
    }
    struct onednn_call call = {0};
    status = make_primitive(context, &call, desc);
    if (status != STATUS_OK) {
        onednn_call_destroy(&call);
        return status;
    }
    *ret_call = call;
    return STATUS_OK;
}

/* The memory objects of a copy, of which the one on the primitive's side has no data yet. */
static enum status add_sides(struct node_context *context, const struct onednn_copy *copy,
                             struct onednn_call *call)
{
    size_t bytes;
    enum status status = onednn_call_add(context, call, copy->is_back ? DNNL_ARG_TO : DNNL_ARG_FROM,
                                         copy->layout, copy->data);
    if (status != STATUS_OK) {
        return status;
    }
    status = add_wanted(context, call, copy->is_back ? DNNL_ARG_FROM : DNNL_ARG_TO, copy->call,
                        copy->argument, &bytes);
    assert(status != STATUS_OK || bytes > 0); // the primitive has that argument
    return status;
}

/* The call has its two sides. */
static enum status describe_copy(struct node_context *context, const struct onednn_copy *copy,
                                 const struct onednn_call *call, dnnl_primitive_desc_t *ret_desc)
{
    dnnl_primitive_attr_t attributes;
    const_dnnl_memory_t plain = call->args[0].memory, wanted = call->args[1].memory;
    enum status status = create_attributes(false, &attributes);
    if (status != STATUS_OK) {
        return status;
    }
    dnnl_status_t result =
        onednn_seam_describe_reorder(copy->is_back ? wanted : plain, copy->is_back ? plain : wanted,
                                     context->engine, attributes, ret_desc);
    dnnl_primitive_attr_destroy(attributes);
    return onednn_status(result, "describe a copy");
}

enum status onednn_copy_create(struct node_context *context, const struct onednn_copy *copy,
                               struct onednn_call *ret_call)
{
    struct onednn_call call = {0};
    dnnl_primitive_desc_t desc;
    enum status status = add_sides(context, copy, &call);
    if (status == STATUS_OK) {
        status = describe_copy(context, copy, &call, &desc);
    }
    if (status == STATUS_OK) {
        status = make_primitive(context, &call, desc);
    }
    if (status != STATUS_OK) {
        onednn_call_destroy(&call);
        return status;
    }
    *ret_call = call;
    return STATUS_OK;
}
