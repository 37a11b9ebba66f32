/* Descriptors of cuDNN's graph interface: tensors, operations, heuristics, plans. */
#include "worker/device/cuda/dnn.h"

#include "worker/device/cuda/report.h"

#include <stdio.h>
#include <string.h>

#define DIMS           4
#define DIMS_SPACE     2
#define OPERATIONS_MAX 3
#define CONFIGS_MAX    64
#define NOTES_MAX      CUDNN_NUMERICAL_NOTE_TYPE_COUNT

// What operands are called in a plan's pack.
enum uid { UID_X = 1, UID_W, UID_Y, UID_BIAS, UID_CONV, UID_SUM, UID_COUNT };

/* Descriptors of one operation graph, to be destroyed together. */
struct pieces {
    cudnnBackendDescriptor_t list[16];
    uint32_t count;
    cudnnStatus_t status; // of the first that failed
};

static bool is_sound(struct pieces *pieces, cudnnStatus_t status)
{
    if (pieces->status == CUDNN_STATUS_SUCCESS) {
        pieces->status = status;
    }
    return pieces->status == CUDNN_STATUS_SUCCESS;
}

static cudnnBackendDescriptor_t begin(struct pieces *pieces, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t descriptor = NULL;
    if (pieces->status == CUDNN_STATUS_SUCCESS &&
        is_sound(pieces, cudnnBackendCreateDescriptor(type, &descriptor))) {
        pieces->list[pieces->count++] = descriptor;
    }
    return descriptor;
}

static void set(struct pieces *pieces, cudnnBackendDescriptor_t descriptor,
                cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                const void *values)
{
    if (pieces->status == CUDNN_STATUS_SUCCESS) {
        is_sound(pieces, cudnnBackendSetAttribute(descriptor, name, type, count, values));
    }
}

static void finish(struct pieces *pieces, cudnnBackendDescriptor_t descriptor)
{
    if (pieces->status == CUDNN_STATUS_SUCCESS) {
        is_sound(pieces, cudnnBackendFinalize(descriptor));
    }
}

static void destroy_pieces(struct pieces *pieces)
{
    while (pieces->count > 0) {
        cudnnBackendDestroyDescriptor(pieces->list[--pieces->count]);
    }
}

/* ==========================================================================================
 * Tensors and operations
 * ========================================================================================== */

static cudnnDataType_t type_of(enum precision precision)
{
    return precision == PRECISION_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

/* (n, c, h, w) of a tensor whose channels lie beside each other. */
static cudnnBackendDescriptor_t add_tensor(struct pieces *pieces, int64_t uid, cudnnDataType_t type,
                                           const int64_t dims[DIMS], bool is_virtual)
{
    const int64_t strides[DIMS] = {dims[1] * dims[2] * dims[3], 1, dims[1] * dims[3], dims[1]};
    const int64_t alignment = 16;
    cudnnBackendDescriptor_t tensor = begin(pieces, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(pieces, tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(pieces, tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(pieces, tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, DIMS, dims);
    set(pieces, tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, DIMS, strides);
    set(pieces, tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    set(pieces, tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    finish(pieces, tensor);
    return tensor;
}

static cudnnBackendDescriptor_t add_conv(struct pieces *pieces, const struct dnn_conv *conv)
{
    const int64_t space = DIMS_SPACE;
    const int64_t padding[] = {conv->padding, conv->padding};
    const int64_t strides[] = {conv->stride, conv->stride}, dilations[] = {1, 1};
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnnBackendDescriptor_t descriptor = begin(pieces, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(pieces, descriptor, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &space);
    set(pieces, descriptor, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(pieces, descriptor, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1,
        &mode);
    set(pieces, descriptor, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, space, padding);
    set(pieces, descriptor, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, space, padding);
    set(pieces, descriptor, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, space, dilations);
    set(pieces, descriptor, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, space,
        strides);
    finish(pieces, descriptor);
    return descriptor;
}

/* Names of a pass's attributes. */
struct pass_row {
    cudnnBackendDescriptorType_t operation;
    cudnnBackendAttributeName_t conv, x, w, y, alpha, beta;
};

static const struct pass_row pass_rows[] = {
    [DNN_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [DNN_DATA_GRADIENT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [DNN_WEIGHT_GRADIENT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

/* y = mode(x, b), element by element; b may be NULL. */
static cudnnBackendDescriptor_t add_pointwise(struct pieces *pieces, cudnnPointwiseMode_t mode,
                                              cudnnBackendDescriptor_t x,
                                              cudnnBackendDescriptor_t b,
                                              cudnnBackendDescriptor_t y)
{
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t pointwise = begin(pieces, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(pieces, pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(pieces, pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
    finish(pieces, pointwise);
    cudnnBackendDescriptor_t operation =
        begin(pieces, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    const cudnnBackendAttributeType_t descriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR;
    set(pieces, operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, descriptor, 1, &pointwise);
    set(pieces, operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, descriptor, 1, &x);
    if (b != NULL) {
        set(pieces, operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, descriptor, 1, &b);
    }
    set(pieces, operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, descriptor, 1, &y);
    finish(pieces, operation);
    return operation;
}

/* What the operations of a pass work on. */
struct operands {
    cudnnBackendDescriptor_t x, w, y;
    cudnnBackendDescriptor_t result; // of the convolution: y, or what follows reads it
};

/* The bias and the relu behind a forward convolution, up to y; returns how many operations. */
static int64_t add_epilogue(struct pieces *pieces, const struct dnn_conv *conv,
                            cudnnDataType_t type, const struct operands *operands,
                            cudnnBackendDescriptor_t *ret_operations)
{
    const int64_t y_dims[] = {conv->batch, conv->outputs, conv->y_rows, conv->y_columns};
    const int64_t bias_dims[] = {1, conv->outputs, 1, 1};
    cudnnBackendDescriptor_t result = operands->result;
    int64_t count = 0;
    if (conv->has_bias) {
        cudnnBackendDescriptor_t bias = add_tensor(pieces, UID_BIAS, type, bias_dims, false);
        cudnnBackendDescriptor_t sum = operands->y;
        if (conv->has_relu) {
            sum = add_tensor(pieces, UID_SUM, CUDNN_DATA_FLOAT, y_dims, true);
        }
        ret_operations[count++] = add_pointwise(pieces, CUDNN_POINTWISE_ADD, result, bias, sum);
        result = sum;
    }
    if (conv->has_relu) {
        ret_operations[count++] =
            add_pointwise(pieces, CUDNN_POINTWISE_RELU_FWD, result, NULL, operands->y);
    }
    return count;
}

static cudnnBackendDescriptor_t add_convolution(struct pieces *pieces, const struct dnn_conv *conv,
                                                enum dnn_pass pass, const struct operands *operands)
{
    const struct pass_row *row = &pass_rows[pass];
    const float one = 1, zero = 0;
    const cudnnBackendAttributeType_t descriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR;
    cudnnBackendDescriptor_t description = add_conv(pieces, conv);
    cudnnBackendDescriptor_t operation = begin(pieces, row->operation);
    set(pieces, operation, row->conv, descriptor, 1, &description);
    set(pieces, operation, row->x, descriptor, 1, &operands->x);
    set(pieces, operation, row->w, descriptor, 1, &operands->w);
    set(pieces, operation, row->y, descriptor, 1, &operands->result);
    set(pieces, operation, row->alpha, CUDNN_TYPE_FLOAT, 1, &one);
    set(pieces, operation, row->beta, CUDNN_TYPE_FLOAT, 1, &zero);
    finish(pieces, operation);
    return operation;
}

/* The operations of a pass, in order; returns how many. */
static int64_t add_operations(struct pieces *pieces, const struct dnn_target *target,
                              const struct dnn_conv *conv, enum dnn_pass pass,
                              cudnnBackendDescriptor_t ret_operations[OPERATIONS_MAX])
{
    const cudnnDataType_t type = type_of(target->precision);
    const int64_t x_dims[] = {conv->batch, conv->inputs, conv->x_rows, conv->x_columns};
    const int64_t w_dims[] = {conv->outputs, conv->inputs, conv->window, conv->window};
    const int64_t y_dims[] = {conv->batch, conv->outputs, conv->y_rows, conv->y_columns};
    bool is_alone = pass != DNN_FORWARD || (!conv->has_bias && !conv->has_relu);
    struct operands operands = {
        .x = add_tensor(pieces, UID_X, type, x_dims, false),
        .w = add_tensor(pieces, UID_W, type, w_dims, false),
        .y = add_tensor(pieces, UID_Y, type, y_dims, false),
    };
    operands.result = operands.y;
    if (!is_alone) {
        operands.result = add_tensor(pieces, UID_CONV, CUDNN_DATA_FLOAT, y_dims, true);
    }
    ret_operations[0] = add_convolution(pieces, conv, pass, &operands);
    return is_alone ? 1 : 1 + add_epilogue(pieces, conv, type, &operands, ret_operations + 1);
}

/* ==========================================================================================
 * Plans
 * ========================================================================================== */

/* Whether an engine keeps to what the target asks for. Tensor cores round floats to tf32. */
static bool is_allowed(const struct dnn_target *target, cudnnBackendDescriptor_t config,
                       char *ret_name, size_t name_size)
{
    cudnnBackendDescriptor_t engine = NULL;
    cudnnBackendNumericalNote_t notes[NOTES_MAX];
    int64_t count = 0, index = 0;
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) !=
        CUDNN_STATUS_SUCCESS) {
        return false;
    }
    bool is_known =
        cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 1, &count, &engine) == CUDNN_STATUS_SUCCESS &&
        cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                 CUDNN_TYPE_NUMERICAL_NOTE, NOTES_MAX, &count,
                                 notes) == CUDNN_STATUS_SUCCESS;
    bool is_allowed = is_known;
    for (int64_t i = 0; is_known && i < count; i++) {
        bool is_rough = notes[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
                        notes[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
                        notes[i] == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13;
        bool is_random = notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
        bool is_tensor_core = notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        is_allowed = is_allowed && !is_rough && (!is_random || target->allows_nondeterministic) &&
                     (!is_tensor_core || target->precision != PRECISION_FP32);
    }
    cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count,
                             &index);
    snprintf(ret_name, name_size, "%lld", (long long)index);
    cudnnBackendDestroyDescriptor(engine);
    return is_allowed;
}

static bool make_plan(const struct dnn_target *target, cudnnBackendDescriptor_t config,
                      struct dnn_plan *ret_plan)
{
    struct dnn_plan plan = {0};
    int64_t count = 0, bytes = 0;
    memcpy(plan.engine, ret_plan->engine, sizeof(plan.engine));
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan.plan) !=
        CUDNN_STATUS_SUCCESS) {
        return false;
    }
    cudnnStatus_t status =
        target->handle != NULL
            ? cudnnBackendSetAttribute(plan.plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
                                       CUDNN_TYPE_HANDLE, 1, &target->handle)
            : cudnnBackendSetAttribute(plan.plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target->described);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnnBackendSetAttribute(plan.plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnnBackendFinalize(plan.plan);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnnBackendGetAttribute(plan.plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                          CUDNN_TYPE_INT64, 1, &count, &bytes);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &plan.pack);
    }
    if (status != CUDNN_STATUS_SUCCESS) {
        dnn_plan_destroy(&plan);
        return false;
    }
    plan.workspace_bytes = (size_t)bytes;
    *ret_plan = plan;
    return true;
}

/* Configurations that the heuristics of a mode propose, best first; returns how many. */
static int64_t ask_heuristics(const struct dnn_target *target, cudnnBackendDescriptor_t graph,
                              cudnnBackendHeurMode_t mode,
                              cudnnBackendDescriptor_t configs[CONFIGS_MAX])
{
    struct pieces pieces = {.status = CUDNN_STATUS_SUCCESS};
    int64_t count = 0;
    cudnnBackendDescriptor_t heuristics = begin(&pieces, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set(&pieces, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR,
        1, &graph);
    set(&pieces, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (target->handle == NULL) {
        set(&pieces, heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
            &target->described);
    }
    finish(&pieces, heuristics);
    if (pieces.status == CUDNN_STATUS_SUCCESS &&
        cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS_MAX, &count,
                                 configs) != CUDNN_STATUS_SUCCESS) {
        count = 0;
    }
    destroy_pieces(&pieces);
    return count < CONFIGS_MAX ? count : CONFIGS_MAX;
}

/* The first proposal of a mode that is allowed and can be planned. */
static bool find_plan(const struct dnn_target *target, cudnnBackendDescriptor_t graph,
                      cudnnBackendHeurMode_t mode, struct dnn_plan *ret_plan)
{
    cudnnBackendDescriptor_t configs[CONFIGS_MAX] = {NULL};
    bool is_found = false;
    for (uint32_t i = 0; i < CONFIGS_MAX; i++) {
        if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[i]) !=
            CUDNN_STATUS_SUCCESS) {
            configs[i] = NULL;
        }
    }
    int64_t count = ask_heuristics(target, graph, mode, configs);
    for (int64_t i = 0; i < count && !is_found; i++) {
        is_found = is_allowed(target, configs[i], ret_plan->engine, sizeof(ret_plan->engine)) &&
                   make_plan(target, configs[i], ret_plan);
    }
    for (uint32_t i = 0; i < CONFIGS_MAX; i++) {
        if (configs[i] != NULL) {
            cudnnBackendDestroyDescriptor(configs[i]);
        }
    }
    return is_found;
}

enum status dnn_plan_conv(const struct dnn_target *target, const struct dnn_conv *conv,
                          enum dnn_pass pass, struct dnn_plan *ret_plan)
{
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    struct pieces pieces = {.status = CUDNN_STATUS_SUCCESS};
    cudnnBackendDescriptor_t operations[OPERATIONS_MAX];
    int64_t count = add_operations(&pieces, target, conv, pass, operations);
    cudnnBackendDescriptor_t graph = begin(&pieces, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (target->handle != NULL) {
        set(&pieces, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
            &target->handle);
    }
    set(&pieces, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
        operations);
    finish(&pieces, graph);
    bool is_found = false;
    *ret_plan = (struct dnn_plan){0};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]) && !is_found; i++) {
        is_found =
            pieces.status == CUDNN_STATUS_SUCCESS && find_plan(target, graph, modes[i], ret_plan);
    }
    destroy_pieces(&pieces);
    return is_found ? STATUS_OK : STATUS_UNSUPPORTED;
}

void dnn_plan_destroy(struct dnn_plan *plan)
{
    if (plan->pack != NULL) {
        cudnnBackendDestroyDescriptor(plan->pack);
    }
    if (plan->plan != NULL) {
        cudnnBackendDestroyDescriptor(plan->plan);
    }
    *plan = (struct dnn_plan){0};
}

enum status dnn_plan_run(const struct dnn_target *target, struct dnn_plan *plan,
                         const struct dnn_operands *operands)
{
    const int64_t uids[] = {UID_X, UID_W, UID_Y, UID_BIAS};
    void *const pointers[] = {operands->x, operands->w, operands->y, operands->bias};
    const int64_t count = operands->bias != NULL ? 4 : 3;
    cudnnStatus_t status = cudnnBackendSetAttribute(plan->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                                                    CUDNN_TYPE_INT64, count, uids);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnnBackendSetAttribute(plan->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                          CUDNN_TYPE_VOID_PTR, count, pointers);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnnBackendSetAttribute(plan->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                                          CUDNN_TYPE_VOID_PTR, 1, &operands->workspace);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnnBackendFinalize(plan->pack);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnnBackendExecute(target->handle, plan->plan, plan->pack);
    }
    if (status != CUDNN_STATUS_SUCCESS) {
        report_error("cuDNN cannot run a convolution: %s", cudnnGetErrorString(status));
        return STATUS_DEVICE;
    }
    return STATUS_OK;
}

enum status dnn_describe_device(const char *json, cudnnBackendDescriptor_t *ret_described)
{
    cudnnBackendDescriptor_t described = NULL;
    cudnnStatus_t status =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &described);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnnBackendSetAttribute(described, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                          CUDNN_TYPE_CHAR, (int64_t)strlen(json), json);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnnBackendFinalize(described);
    }
    if (status != CUDNN_STATUS_SUCCESS) {
        dnn_forget_device(described);
        report_error("cuDNN does not take the description of a device: %s",
                     cudnnGetErrorString(status));
        return STATUS_UNSUPPORTED;
    }
    *ret_described = described;
    return STATUS_OK;
}

void dnn_forget_device(cudnnBackendDescriptor_t described)
{
    if (described != NULL) {
        cudnnBackendDestroyDescriptor(described);
    }
}
