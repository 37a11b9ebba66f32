/* Examines launches: in the place of what cuDNN and cuBLASLt would do with a device. */
#include "tests/worker/device/cuda_described/launches.h"

#include <cublasLt.h>
#include <cudnn.h>
#include <jansson.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPERANDS_MAX      16
#define PLAN_TEXT_BYTES   (1 << 20)
#define WORKSPACE_ALIGNED 256 // what cudaMalloc promises, and the libraries expect
#define PRODUCT_ALIGNMENT 256 // what cuBLASLt's heuristics take for granted unless told otherwise

static struct launches found;

struct launches launches_take(void)
{
    struct launches taken = found;
    memset(&found, 0, sizeof(found));
    return taken;
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    if (found.defect[0] == '\0') {
        va_list values;
        va_start(values, format);
        vsnprintf(found.defect, sizeof(found.defect), format, values);
        va_end(values);
    }
}

struct range {
    int64_t name;
    uintptr_t begin, end;
};

static void check_apart(const struct range *ranges, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (ranges[i].begin < ranges[k].end && ranges[k].begin < ranges[i].end) {
                note("%s: operands %lld and %lld overlap", what, (long long)ranges[i].name,
                     (long long)ranges[k].name);
            }
        }
    }
}

static void check_alignment(const void *pointer, size_t alignment, int64_t name, const char *what)
{
    if (pointer == NULL || (uintptr_t)pointer % alignment != 0) {
        note("%s: operand %lld lies at %p, and should be aligned to %zu bytes", what,
             (long long)name, pointer, alignment);
    }
}

/* ==========================================================================================
 * cuDNN
 * ========================================================================================== */

struct pack {
    cudnnBackendDescriptor_t of;
    int64_t uids[OPERANDS_MAX], count, pointer_count;
    void *pointers[OPERANDS_MAX], *workspace;
};

static json_t *read_plan(cudnnBackendDescriptor_t plan)
{
    static char text[PLAN_TEXT_BYTES];
    int64_t bytes = 0;
    json_error_t error;
    if (cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                 CUDNN_TYPE_CHAR, sizeof(text) - 1, &bytes,
                                 text) != CUDNN_STATUS_SUCCESS) {
        note("cuDNN does not say what a plan is");
        return NULL;
    }
    text[bytes] = '\0';
    json_t *tree = json_loads(text, 0, &error);
    if (tree == NULL) {
        note("cuDNN's text of a plan cannot be read: %s", error.text);
    }
    return tree;
}

// The last one that was set: the library does not give back what a pack holds.
static struct pack last_pack;

cudnnStatus_t __real_cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void *values);
cudnnStatus_t __wrap_cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void *values);
cudnnStatus_t __wrap_cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                         cudnnBackendDescriptor_t descriptor);

/* Passes everything on; notes what a pack is told. */
cudnnStatus_t __wrap_cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void *values)
{
    cudnnStatus_t status = __real_cudnnBackendSetAttribute(descriptor, name, type, count, values);
    size_t kept = count < OPERANDS_MAX ? (size_t)count : OPERANDS_MAX;
    if (status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    if (name == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) {
        last_pack = (struct pack){.of = descriptor, .count = count};
        memcpy(last_pack.uids, values, kept * sizeof(last_pack.uids[0]));
    } else if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) {
        last_pack.pointer_count = count;
        memcpy(last_pack.pointers, values, kept * sizeof(last_pack.pointers[0]));
    } else if (name == CUDNN_ATTR_VARIANT_PACK_WORKSPACE) {
        memcpy(&last_pack.workspace, values, sizeof(last_pack.workspace));
    }
    return status;
}

static size_t bytes_of(const json_t *tensor)
{
    const char *type = json_string_value(json_object_get(tensor, "dataType"));
    size_t bytes = strcmp(type, "CUDNN_DATA_BFLOAT16") == 0 ? 2 : 4, i;
    const json_t *dim;
    json_array_foreach(json_object_get(tensor, "dim"), i, dim)
    {
        bytes *= (size_t)json_integer_value(dim);
    }
    return bytes;
}

/* Looks for a tensor's pointer; notes it in the ranges. */
static void check_operand(const struct pack *pack, const json_t *tensor, const char *what,
                          struct range *ranges, size_t *count)
{
    int64_t uid = strtoll(json_string_value(json_object_get(tensor, "name")), NULL, 10);
    size_t alignment = (size_t)json_integer_value(json_object_get(tensor, "ptrAlignment"));
    for (int64_t i = 0; i < pack->count; i++) {
        if (pack->uids[i] == uid) {
            uintptr_t begin = (uintptr_t)pack->pointers[i];
            check_alignment(pack->pointers[i], alignment, uid, what);
            ranges[(*count)++] = (struct range){uid, begin, begin + bytes_of(tensor)};
            return;
        }
    }
    note("%s: operand %lld is not in the pack", what, (long long)uid);
}

static const char *last_operation(const json_t *graph)
{
    const json_t *nodes = json_object_get(graph, "nodes");
    const json_t *last = json_array_get(nodes, json_array_size(nodes) - 1);
    const char *operation = json_string_value(json_object_get(last, "operation"));
    return operation != NULL ? operation : "";
}

static void check_convolution(const json_t *plan, const struct pack *pack, size_t workspace_bytes)
{
    const json_t *graph = json_object_get(plan, "operationGraph"), *tensor;
    const char *what = json_string_value(
        json_object_get(json_array_get(json_object_get(graph, "nodes"), 0), "operation"));
    struct range ranges[OPERANDS_MAX + 1];
    size_t count = 0, i;
    json_array_foreach(json_object_get(graph, "tensors"), i, tensor)
    {
        if (!json_is_true(json_object_get(tensor, "isVirtual")) && count < OPERANDS_MAX) {
            check_operand(pack, tensor, what, ranges, &count);
        }
    }
    if ((int64_t)count != pack->count) {
        note("%s: the pack has %lld operands, the plan %zu", what, (long long)pack->count, count);
    }
    if (workspace_bytes > 0) {
        uintptr_t begin = (uintptr_t)pack->workspace;
        check_alignment(pack->workspace, WORKSPACE_ALIGNED, 0, what);
        ranges[count++] = (struct range){0, begin, begin + workspace_bytes};
    }
    check_apart(ranges, count, what);
    found.statistics += strstr(last_operation(graph), "GEN_STATS") != NULL ? 1 : 0;
}

/* Launches nothing. */
cudnnStatus_t __wrap_cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                         cudnnBackendDescriptor_t descriptor)
{
    (void)handle;
    int64_t count = 0, workspace_bytes = 0;
    json_t *tree = read_plan(plan);
    if (last_pack.of != descriptor || last_pack.count != last_pack.pointer_count ||
        last_pack.count > OPERANDS_MAX) {
        note("a pack of %lld names and %lld pointers", (long long)last_pack.count,
             (long long)last_pack.pointer_count);
    } else if (cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                        CUDNN_TYPE_INT64, 1, &count,
                                        &workspace_bytes) != CUDNN_STATUS_SUCCESS) {
        note("cuDNN does not say what workspace a plan has");
    } else if (tree != NULL) {
        check_convolution(tree, &last_pack, (size_t)workspace_bytes);
    }
    json_decref(tree);
    found.convolutions++;
    return CUDNN_STATUS_SUCCESS;
}

/* ==========================================================================================
 * cuBLASLt
 * ========================================================================================== */

struct matrix {
    uint32_t type;
    uint64_t rows, columns;
    int64_t stride;
};

static struct matrix read_layout(cublasLtMatrixLayout_t layout)
{
    struct matrix matrix = {0};
    size_t bytes;
    if (cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_TYPE, &matrix.type,
                                         sizeof(matrix.type), &bytes) != CUBLAS_STATUS_SUCCESS ||
        cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &matrix.rows,
                                         sizeof(matrix.rows), &bytes) != CUBLAS_STATUS_SUCCESS ||
        cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_COLS, &matrix.columns,
                                         sizeof(matrix.columns), &bytes) != CUBLAS_STATUS_SUCCESS ||
        cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_LD, &matrix.stride,
                                         sizeof(matrix.stride), &bytes) != CUBLAS_STATUS_SUCCESS) {
        note("cuBLASLt does not say what a layout is");
    }
    return matrix;
}

static bool is_transposed(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t which)
{
    int32_t operation = CUBLAS_OP_N;
    size_t bytes;
    if (cublasLtMatmulDescGetAttribute(description, which, &operation, sizeof(operation), &bytes) !=
        CUBLAS_STATUS_SUCCESS) {
        note("cuBLASLt does not say what a product is");
    }
    return operation == CUBLAS_OP_T;
}

/* Whether D = op(A) op(B) has sizes that fit. */
static void check_sizes(cublasLtMatmulDesc_t description, const struct matrix *a,
                        const struct matrix *b, const struct matrix *d)
{
    bool flips_a = is_transposed(description, CUBLASLT_MATMUL_DESC_TRANSA);
    bool flips_b = is_transposed(description, CUBLASLT_MATMUL_DESC_TRANSB);
    uint64_t m = flips_a ? a->columns : a->rows, k = flips_a ? a->rows : a->columns;
    uint64_t n = flips_b ? b->rows : b->columns, other_k = flips_b ? b->columns : b->rows;
    if (m != d->rows || n != d->columns || k != other_k || m * n * k == 0) {
        note("a product of %llux%llu and %llux%llu cannot be %llux%llu", (unsigned long long)m,
             (unsigned long long)k, (unsigned long long)other_k, (unsigned long long)n,
             (unsigned long long)d->rows, (unsigned long long)d->columns);
    }
}

/* Asks of a device alone; a plan that is one is not needed to launch nothing. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int *ret_count)
{
    (void)handle;
    const struct matrix of_a = read_layout(a), of_b = read_layout(b), of_d = read_layout(d);
    uint64_t workspace_bytes = 0;
    size_t bytes;
    check_sizes(description, &of_a, &of_b, &of_d);
    if (c != d || asked < 1 ||
        cublasLtMatmulPreferenceGetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspace_bytes, sizeof(workspace_bytes),
                                             &bytes) != CUBLAS_STATUS_SUCCESS ||
        workspace_bytes == 0) {
        note("a preference without a workspace, or a result that is not added to itself");
    }
    memset(&results[0], 0, sizeof(results[0]));
    *ret_count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

static size_t matrix_bytes(const struct matrix *matrix)
{
    return (size_t)matrix->columns * (size_t)matrix->stride * (matrix->type == CUDA_R_16BF ? 2 : 4);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                              const void *alpha, const void *from_a, cublasLtMatrixLayout_t a,
                              const void *from_b, cublasLtMatrixLayout_t b, const void *beta,
                              const void *from_c, cublasLtMatrixLayout_t c, void *to,
                              cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algorithm,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    (void)handle;
    (void)alpha;
    (void)beta;
    (void)algorithm;
    (void)stream;
    const struct matrix of_a = read_layout(a), of_b = read_layout(b), of_d = read_layout(d);
    const void *const pointers[] = {from_a, from_b, to, workspace};
    const size_t sizes[] = {matrix_bytes(&of_a), matrix_bytes(&of_b), matrix_bytes(&of_d),
                            workspace_bytes};
    struct range ranges[4];
    check_sizes(description, &of_a, &of_b, &of_d);
    for (uint32_t i = 0; i < 4; i++) {
        uintptr_t begin = (uintptr_t)pointers[i];
        check_alignment(pointers[i], PRODUCT_ALIGNMENT, i, "a product");
        ranges[i] = (struct range){i, begin, begin + sizes[i]};
    }
    check_apart(ranges, 4, "a product");
    if (from_c != to || c != d) {
        note("a product is added to another matrix");
    }
    found.products++;
    return CUBLAS_STATUS_SUCCESS;
}
