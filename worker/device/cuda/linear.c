/* Linear layers, by cuBLASLt, on samples as they lie: (H, W, C), so that weights (K, C, H, W) are
 * copied to (K, H, W, C). The library counts columns first; what it takes for a matrix (I, K) is
 * our (K, I). */
#include "worker/device/cuda/context.h"
#include "worker/device/cuda/host/report.h"

#include <stdlib.h>

#define WORKSPACE_BYTES ((size_t)32 << 20) // what NVIDIA advises for Hopper

/* One matrix product: D (m, n) = op(A) op(B), over k. */
struct product {
    cublasLtMatmulDesc_t description;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algorithm;
};

struct linear {
    struct node base;
    struct product forward, data, weights;
    size_t weight_at;  // see cuda_reserve_weights
    uint32_t gradient; // see cuda_reserve_gradient
};

static struct linear *linear_of(struct node *node)
{
    return (struct linear *)node;
}

static void product_destroy(struct product *product)
{
    if (product->description != NULL) {
        cublasLtMatmulDescDestroy(product->description);
    }
    cublasLtMatrixLayout_t layouts[] = {product->a, product->b, product->d};
    for (uint32_t i = 0; i < 3; i++) {
        if (layouts[i] != NULL) {
            cublasLtMatrixLayoutDestroy(layouts[i]);
        }
    }
}

static void linear_destroy(struct node *node)
{
    struct linear *linear = linear_of(node);
    product_destroy(&linear->forward);
    product_destroy(&linear->data);
    product_destroy(&linear->weights);
    free(linear);
}

/* Sizes of a product; rows of A and B before they are transposed follow. */
struct sizes {
    size_t m, n, k;
    bool transposes_a, transposes_b;
    bool has_float_result;
};

static enum status check(cublasStatus_t status, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS) {
        return STATUS_OK;
    }
    report_error("cuBLASLt cannot %s: %s", what, cublasLtGetStatusString(status));
    return status == CUBLAS_STATUS_ALLOC_FAILED ? STATUS_NO_MEMORY : STATUS_DEVICE;
}

static cublasStatus_t describe_product(const struct node_context *context, const struct sizes *s,
                                       struct product *product)
{
    bool is_bf16 = context->type == CUDA_TYPE_BF16;
    cudaDataType_t type = is_bf16 ? CUDA_R_16BF : CUDA_R_32F;
    cudaDataType_t result_type = s->has_float_result ? CUDA_R_32F : type;
    cublasComputeType_t compute = context->dnn.precision == PRECISION_TF32
                                      ? CUBLAS_COMPUTE_32F_FAST_TF32
                                      : CUBLAS_COMPUTE_32F;
    cublasOperation_t a = s->transposes_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t b = s->transposes_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    size_t a_rows = s->transposes_a ? s->k : s->m, a_columns = s->transposes_a ? s->m : s->k;
    size_t b_rows = s->transposes_b ? s->n : s->k, b_columns = s->transposes_b ? s->k : s->n;
    cublasStatus_t status = cublasLtMatmulDescCreate(&product->description, compute, CUDA_R_32F);
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = cublasLtMatmulDescSetAttribute(product->description, CUBLASLT_MATMUL_DESC_TRANSA,
                                                &a, sizeof(a));
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = cublasLtMatmulDescSetAttribute(product->description, CUBLASLT_MATMUL_DESC_TRANSB,
                                                &b, sizeof(b));
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = cublasLtMatrixLayoutCreate(&product->a, type, a_rows, a_columns, (int64_t)a_rows);
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = cublasLtMatrixLayoutCreate(&product->b, type, b_rows, b_columns, (int64_t)b_rows);
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = cublasLtMatrixLayoutCreate(&product->d, result_type, s->m, s->n, (int64_t)s->m);
    }
    return status;
}

/* Without split sums, whose order may change: CUBLASLT_REDUCTION_SCHEME_NONE repeats its bits. */
static enum status product_create(const struct node_context *context, const struct sizes *sizes,
                                  struct product *product)
{
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found;
    const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE;
    const size_t workspace = WORKSPACE_BYTES;
    int count = 0;
    cublasStatus_t status = describe_product(context, sizes, product);
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = cublasLtMatmulPreferenceCreate(&preference);
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace));
    }
    if (status == CUBLAS_STATUS_SUCCESS && !context->dnn.allows_nondeterministic) {
        status = cublasLtMatmulPreferenceSetAttribute(preference,
                                                      CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                      &reductions, sizeof(reductions));
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = cublasLtMatmulAlgoGetHeuristic(context->blas, product->description, product->a,
                                                product->b, product->d, product->d, preference, 1,
                                                &found, &count);
    }
    if (preference != NULL) {
        cublasLtMatmulPreferenceDestroy(preference);
    }
    if (status == CUBLAS_STATUS_SUCCESS && count == 0) {
        status = CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
        product->algorithm = found.algo;
    }
    return check(status, "plan a matrix product");
}

static enum status product_run(const struct node_context *context, const struct product *product,
                               const void *a, const void *b, void *d)
{
    const float one = 1, zero = 0;
    return check(cublasLtMatmul(context->blas, product->description, &one, a, product->a, b,
                                product->b, &zero, d, product->d, d, product->d,
                                &product->algorithm, context->workspace, WORKSPACE_BYTES,
                                context->stream),
                 "multiply matrices");
}

static size_t input_count(const struct op *op)
{
    return (size_t)op->x.channels * op->x.rows * op->x.columns;
}

static enum status linear_forward(struct node *node)
{
    struct node_context *context = node->context;
    const struct op *op = &node->op;
    enum status status = product_run(context, &linear_of(node)->forward,
                                     cuda_weights_at(context, linear_of(node)->weight_at),
                                     node->x->data, node->y->data);
    if (status == STATUS_OK) {
        status = cuda_check(kernel_bias(context->type, context->params + op->bias, node->y->data,
                                        op->y.channels, node->has_relu, tensor_count(node->y),
                                        context->stream),
                            "add a bias");
    }
    return status;
}

static enum status linear_backward(struct node *node)
{
    struct node_context *context = node->context;
    const struct linear *linear = linear_of(node);
    const struct op *op = &node->op;
    void *dweights = NULL;
    if (node->has_relu && !node->y->is_grad_masked) {
        enum status status =
            cuda_check(kernel_mask_positive(context->type, node->y->grad, node->y->data,
                                            tensor_count(node->y), context->stream),
                       "mask a gradient");
        if (status != STATUS_OK) {
            return status;
        }
    }
    enum status status = cuda_sum_rows(context, node->y->grad, context->batch, op->y.channels,
                                       context->grads + op->bias);
    if (status != STATUS_OK) {
        return status;
    }
    status = cuda_begin_gradient(context, linear->gradient, &dweights);
    if (status != STATUS_OK) {
        return status;
    }
    status = product_run(context, &linear->weights, node->x->data, node->y->grad, dweights);
    if (status != STATUS_OK || node->x->is_pixels) {
        return status;
    }
    return product_run(context, &linear->data, cuda_weights_at(context, linear->weight_at),
                       node->y->grad, node->x->grad);
}

static const struct node_ops linear_ops = {
    .forward = linear_forward,
    .backward = linear_backward,
    .destroy = linear_destroy,
};

static enum status create_products(struct linear *linear)
{
    const struct node_context *context = linear->base.context;
    size_t inputs = input_count(&linear->base.op), outputs = linear->base.op.y.channels;
    size_t samples = context->batch;
    const struct sizes forward = {.m = outputs, .n = samples, .k = inputs, .transposes_a = true};
    const struct sizes data = {.m = inputs, .n = samples, .k = outputs};
    const struct sizes weights = {
        .m = inputs, .n = outputs, .k = samples, .transposes_b = true, .has_float_result = true};
    enum status status = product_create(context, &forward, &linear->forward);
    if (status == STATUS_OK && context->is_trained) {
        status = product_create(context, &weights, &linear->weights);
    }
    if (status == STATUS_OK && context->is_trained && !linear->base.x->is_pixels) {
        status = product_create(context, &data, &linear->data);
    }
    return status;
}

enum status cuda_create_linear(struct node *base, struct node **ret_node)
{
    struct linear *linear = calloc(1, sizeof(*linear));
    if (linear == NULL) {
        return STATUS_NO_MEMORY;
    }
    struct node_context *context = base->context;
    linear->base = *base;
    linear->base.ops = &linear_ops;
    linear->base.keeps_x = true;
    linear->base.keeps_y = base->has_relu;
    struct cuda_weight_row row = {.flat = base->op.weight,
                                  .count = op_weight_count(&base->op),
                                  .inputs = base->op.x.channels,
                                  .taps = (size_t)base->op.x.rows * base->op.x.columns};
    linear->weight_at = cuda_reserve_weights(context, &row);
    row.is_float = true;
    linear->gradient = context->is_trained ? cuda_reserve_gradient(context, &row) : 0;
    // Without a device there is nobody to ask: see cuda_program_try.
    enum status status = context->blas != NULL ? create_products(linear) : STATUS_OK;
    if (status != STATUS_OK) {
        linear_destroy(&linear->base);
        return status;
    }
    context->workspace_bytes =
        context->workspace_bytes < WORKSPACE_BYTES ? WORKSPACE_BYTES : context->workspace_bytes;
    cuda_reserve_sums(context, context->batch, base->op.y.channels);
    *ret_node = &linear->base;
    return STATUS_OK;
}
