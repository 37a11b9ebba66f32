/* cuBLASLt's matrix products, and the handles of both libraries. */
#include "tests/worker/device/cuda_fake/libraries.h"
#include "tests/worker/device/cuda_fake/stream.h"

#include <cublasLt.h>
#include <cudnn.h>

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORKSPACE_SCRIBBLE 4096 // bytes at both ends

struct description {
    cublasOperation_t a, b;
    bool is_loaded; // what computes it: the first run does that
};

/* Columns lie behind each other. */
struct matrix {
    cudaDataType_t type;
    uint64_t rows, columns;
};

/* D = op(A) op(B) */
struct product {
    struct description description;
    struct matrix a, b, d;
    const void *from_a, *from_b;
    void *to, *workspace;
    size_t workspace_bytes;
};

static void *must_allocate(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

/* The element of op(matrix) in a row and a column. */
FAKE_ARITHMETIC static inline float element_of(const struct matrix *matrix, bool is_flipped,
                                               const float *values, uint64_t row, uint64_t column)
{
    return is_flipped ? values[row * matrix->rows + column] : values[column * matrix->rows + row];
}

FAKE_ARITHMETIC static void multiply(const struct product *p, const float *from_a,
                                     const float *from_b, float *to)
{
    bool flips_a = p->description.a == CUBLAS_OP_T, flips_b = p->description.b == CUBLAS_OP_T;
    uint64_t inner = flips_a ? p->a.rows : p->a.columns;
    for (uint64_t column = 0; column < p->d.columns; column++) {
        for (uint64_t row = 0; row < p->d.rows; row++) {
            float sum = 0;
            for (uint64_t k = 0; k < inner; k++) {
                sum += element_of(&p->a, flips_a, from_a, row, k) *
                       element_of(&p->b, flips_b, from_b, k, column);
            }
            to[column * p->d.rows + row] = sum;
        }
    }
}

/* What the library may do to its workspace. */
static void scribble(void *workspace, size_t bytes)
{
    size_t end = bytes < WORKSPACE_SCRIBBLE ? bytes : WORKSPACE_SCRIBBLE;
    memset(workspace, 0xFF, end);
    memset((char *)workspace + bytes - end, 0xFF, end);
}

static float *take(const struct matrix *matrix, const void *values)
{
    return fake_take(values, matrix->type == CUDA_R_16BF, matrix->rows * matrix->columns);
}

static void run_product(void *context)
{
    const struct product *p = context;
    size_t count = p->d.rows * p->d.columns;
    float *a = take(&p->a, p->from_a), *b = take(&p->b, p->from_b);
    float *d = must_allocate(count * sizeof(*d));
    scribble(p->workspace, p->workspace_bytes);
    multiply(p, a, b, d);
    fake_give(p->to, p->d.type == CUDA_R_16BF, d, count);
    free(a);
    free(b);
    free(d);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                              const void *alpha, const void *from_a, cublasLtMatrixLayout_t a,
                              const void *from_b, cublasLtMatrixLayout_t b, const void *beta,
                              const void *from_c, cublasLtMatrixLayout_t c, void *to,
                              cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algorithm,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    struct description *known = (struct description *)(void *)description;
    const struct product product = {
        .description = *known,
        .a = *(const struct matrix *)(const void *)a,
        .b = *(const struct matrix *)(const void *)b,
        .d = *(const struct matrix *)(const void *)d,
        .from_a = from_a,
        .from_b = from_b,
        .to = to,
        .workspace = workspace,
        .workspace_bytes = workspace_bytes,
    };
    assert(handle != NULL && algorithm != NULL && from_c == to && c == d);
    assert(*(const float *)alpha == 1 && *(const float *)beta == 0);
    return fake_library_run(&known->is_loaded) == cudaSuccess &&
                   fake_stream_launch(stream, run_product, &product, sizeof(product)) == cudaSuccess
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *ret_description,
                                        cublasComputeType_t compute, cudaDataType_t scale)
{
    (void)compute;
    assert(scale == CUDA_R_32F);
    *ret_description = must_allocate(sizeof(struct description));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size)
{
    struct description *known = (void *)description;
    assert(size == sizeof(cublasOperation_t));
    assert(attribute == CUBLASLT_MATMUL_DESC_TRANSA || attribute == CUBLASLT_MATMUL_DESC_TRANSB);
    *(attribute == CUBLASLT_MATMUL_DESC_TRANSA ? &known->a : &known->b) =
        *(const cublasOperation_t *)value;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description)
{
    free(description);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *ret_layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t stride)
{
    struct matrix *matrix = must_allocate(sizeof(*matrix));
    assert((uint64_t)stride == rows);
    *matrix = (struct matrix){type, rows, columns};
    *ret_layout = (void *)matrix;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *ret_preference)
{
    *ret_preference = must_allocate(1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t size)
{
    (void)attribute;
    assert(preference != NULL && value != NULL && size > 0);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int *ret_count)
{
    assert(handle != NULL && description != NULL && a != NULL && b != NULL && c == d);
    assert(preference != NULL && asked == 1);
    memset(&results[0], 0, sizeof(results[0]));
    *ret_count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *ret_handle)
{
    *ret_handle = must_allocate(1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return 0;
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    (void)status;
    return "an error of the fake library";
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *ret_handle)
{
    *ret_handle = must_allocate(sizeof(struct cudnnContext));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion(void)
{
    return 0;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    (void)status;
    return "an error of the fake library";
}
