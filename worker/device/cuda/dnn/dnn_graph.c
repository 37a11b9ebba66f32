/* Tensors and operations of cuDNN's graph interface. */
#include "worker/device/cuda/dnn/dnn_graph.h"

#define DIMS           4
#define DIMS_SPACE     2
#define OPERATIONS_MAX 4

static bool is_sound(struct dnn_pieces *pieces, cudnnStatus_t status)
{
    if (pieces->status == CUDNN_STATUS_SUCCESS) {
        pieces->status = status;
    }
    return pieces->status == CUDNN_STATUS_SUCCESS;
}

cudnnBackendDescriptor_t dnn_begin(struct dnn_pieces *pieces, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t descriptor = NULL;
    if (pieces->status == CUDNN_STATUS_SUCCESS &&
        is_sound(pieces, cudnnBackendCreateDescriptor(type, &descriptor))) {
        pieces->list[pieces->count++] = descriptor;
    }
    return descriptor;
}

void dnn_set(struct dnn_pieces *pieces, cudnnBackendDescriptor_t descriptor,
             cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
             const void *values)
{
    if (pieces->status == CUDNN_STATUS_SUCCESS) {
        is_sound(pieces, cudnnBackendSetAttribute(descriptor, name, type, count, values));
    }
}

void dnn_end(struct dnn_pieces *pieces, cudnnBackendDescriptor_t descriptor)
{
    if (pieces->status == CUDNN_STATUS_SUCCESS) {
        is_sound(pieces, cudnnBackendFinalize(descriptor));
    }
}

void dnn_set_target(struct dnn_pieces *pieces, cudnnBackendDescriptor_t plan,
                    const struct dnn_target *target)
{
    if (target->handle != NULL) {
        dnn_set(pieces, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                &target->handle);
    } else {
        dnn_set(pieces, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                1, &target->described);
    }
}

void dnn_destroy_pieces(struct dnn_pieces *pieces)
{
    while (pieces->count > 0) {
        cudnnBackendDestroyDescriptor(pieces->list[--pieces->count]);
    }
}

static cudnnDataType_t type_of(enum precision precision)
{
    return precision == PRECISION_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

/* (n, c, h, w) of a tensor whose channels lie beside each other. */
static cudnnBackendDescriptor_t add_tensor(struct dnn_pieces *pieces, int64_t uid,
                                           cudnnDataType_t type, const int64_t dims[DIMS],
                                           bool is_virtual)
{
    const int64_t strides[DIMS] = {dims[1] * dims[2] * dims[3], 1, dims[1] * dims[3], dims[1]};
    const int64_t alignment = 16;
    cudnnBackendDescriptor_t tensor = dnn_begin(pieces, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    dnn_set(pieces, tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    dnn_set(pieces, tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    dnn_set(pieces, tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, DIMS, dims);
    dnn_set(pieces, tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, DIMS, strides);
    dnn_set(pieces, tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    dnn_set(pieces, tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    dnn_end(pieces, tensor);
    return tensor;
}

static cudnnBackendDescriptor_t add_conv(struct dnn_pieces *pieces, const struct dnn_conv *conv)
{
    const int64_t space = DIMS_SPACE;
    const int64_t padding[] = {conv->padding, conv->padding};
    const int64_t strides[] = {conv->stride, conv->stride}, dilations[] = {1, 1};
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnnBackendDescriptor_t descriptor = dnn_begin(pieces, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    dnn_set(pieces, descriptor, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &space);
    dnn_set(pieces, descriptor, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    dnn_set(pieces, descriptor, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1,
            &mode);
    dnn_set(pieces, descriptor, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, space,
            padding);
    dnn_set(pieces, descriptor, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, space,
            padding);
    dnn_set(pieces, descriptor, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, space,
            dilations);
    dnn_set(pieces, descriptor, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, space,
            strides);
    dnn_end(pieces, descriptor);
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
static cudnnBackendDescriptor_t add_pointwise(struct dnn_pieces *pieces, cudnnPointwiseMode_t mode,
                                              cudnnBackendDescriptor_t x,
                                              cudnnBackendDescriptor_t b,
                                              cudnnBackendDescriptor_t y)
{
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t pointwise = dnn_begin(pieces, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    dnn_set(pieces, pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    dnn_set(pieces, pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
    dnn_end(pieces, pointwise);
    cudnnBackendDescriptor_t operation =
        dnn_begin(pieces, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    const cudnnBackendAttributeType_t descriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR;
    dnn_set(pieces, operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, descriptor, 1,
            &pointwise);
    dnn_set(pieces, operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, descriptor, 1, &x);
    if (b != NULL) {
        dnn_set(pieces, operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, descriptor, 1, &b);
    }
    dnn_set(pieces, operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, descriptor, 1, &y);
    dnn_end(pieces, operation);
    return operation;
}

/* What the operations of a pass work on. */
struct operands {
    cudnnBackendDescriptor_t x, w, y;
    cudnnBackendDescriptor_t result; // of the convolution: y, or what follows reads it
};

/* The bias and the relu behind a forward convolution, up to y; returns how many operations. */
static int64_t add_epilogue(struct dnn_pieces *pieces, const struct dnn_conv *conv,
                            cudnnDataType_t type, const struct operands *operands,
                            cudnnBackendDescriptor_t *ret_operations)
{
    const int64_t y_dims[] = {conv->batch, conv->outputs, conv->y_rows, conv->y_columns};
    const int64_t bias_dims[] = {1, conv->outputs, 1, 1};
    cudnnBackendDescriptor_t result = operands->result;
    int64_t count = 0;
    if (conv->has_bias) {
        cudnnBackendDescriptor_t bias = add_tensor(pieces, DNN_UID_BIAS, type, bias_dims, false);
        cudnnBackendDescriptor_t sum = operands->y;
        if (conv->has_relu) {
            sum = add_tensor(pieces, DNN_UID_BIASED, CUDNN_DATA_FLOAT, y_dims, true);
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

static cudnnBackendDescriptor_t add_convolution(struct dnn_pieces *pieces,
                                                const struct dnn_conv *conv, enum dnn_pass pass,
                                                const struct operands *operands)
{
    const struct pass_row *row = &pass_rows[pass];
    const float one = 1, zero = 0;
    const cudnnBackendAttributeType_t descriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR;
    cudnnBackendDescriptor_t description = add_conv(pieces, conv);
    cudnnBackendDescriptor_t operation = dnn_begin(pieces, row->operation);
    dnn_set(pieces, operation, row->conv, descriptor, 1, &description);
    dnn_set(pieces, operation, row->x, descriptor, 1, &operands->x);
    dnn_set(pieces, operation, row->w, descriptor, 1, &operands->w);
    dnn_set(pieces, operation, row->y, descriptor, 1, &operands->result);
    dnn_set(pieces, operation, row->alpha, CUDNN_TYPE_FLOAT, 1, &one);
    dnn_set(pieces, operation, row->beta, CUDNN_TYPE_FLOAT, 1, &zero);
    dnn_end(pieces, operation);
    return operation;
}

/* The sums of y and of its squares over all but channels. */
static cudnnBackendDescriptor_t
add_statistics(struct dnn_pieces *pieces, const struct dnn_conv *conv, cudnnBackendDescriptor_t y)
{
    const int64_t dims[] = {1, conv->outputs, 1, 1};
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
    const cudnnBackendAttributeType_t descriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR;
    cudnnBackendDescriptor_t sums = add_tensor(pieces, DNN_UID_SUMS, type, dims, false);
    cudnnBackendDescriptor_t squares = add_tensor(pieces, DNN_UID_SQUARE_SUMS, type, dims, false);
    cudnnBackendDescriptor_t operation =
        dnn_begin(pieces, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
    dnn_set(pieces, operation, CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, 1,
            &mode);
    dnn_set(pieces, operation, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1,
            &type);
    dnn_set(pieces, operation, CUDNN_ATTR_OPERATION_GENSTATS_XDESC, descriptor, 1, &y);
    dnn_set(pieces, operation, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, descriptor, 1, &sums);
    dnn_set(pieces, operation, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, descriptor, 1, &squares);
    dnn_end(pieces, operation);
    return operation;
}

/* The operations of a pass, in order; returns how many. */
static int64_t add_operations(struct dnn_pieces *pieces, const struct dnn_target *target,
                              const struct dnn_conv *conv, enum dnn_pass pass,
                              cudnnBackendDescriptor_t ret_operations[OPERATIONS_MAX])
{
    const cudnnDataType_t type = type_of(target->precision);
    const int64_t x_dims[] = {conv->batch, conv->inputs, conv->x_rows, conv->x_columns};
    const int64_t w_dims[] = {conv->outputs, conv->inputs, conv->window, conv->window};
    const int64_t y_dims[] = {conv->batch, conv->outputs, conv->y_rows, conv->y_columns};
    bool is_alone = pass != DNN_FORWARD || (!conv->has_bias && !conv->has_relu);
    struct operands operands = {
        .x = add_tensor(pieces, DNN_UID_X, type, x_dims, false),
        .w = add_tensor(pieces, DNN_UID_W, type, w_dims, false),
        .y = add_tensor(pieces, DNN_UID_Y, type, y_dims, false),
    };
    operands.result = operands.y;
    if (!is_alone) {
        operands.result = add_tensor(pieces, DNN_UID_CONV, CUDNN_DATA_FLOAT, y_dims, true);
    }
    int64_t count = 0;
    ret_operations[count++] = add_convolution(pieces, conv, pass, &operands);
    if (!is_alone) {
        count += add_epilogue(pieces, conv, type, &operands, ret_operations + count);
    }
    if (pass == DNN_FORWARD && conv->has_statistics) {
        ret_operations[count++] = add_statistics(pieces, conv, operands.y);
    }
    return count;
}

cudnnBackendDescriptor_t dnn_add_graph(struct dnn_pieces *pieces, const struct dnn_target *target,
                                       const struct dnn_conv *conv, enum dnn_pass pass)
{
    cudnnBackendDescriptor_t operations[OPERATIONS_MAX];
    int64_t count = add_operations(pieces, target, conv, pass, operations);
    cudnnBackendDescriptor_t graph = dnn_begin(pieces, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (target->handle != NULL) {
        dnn_set(pieces, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
                &target->handle);
    }
    dnn_set(pieces, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
            operations);
    dnn_end(pieces, graph);
    return graph;
}
