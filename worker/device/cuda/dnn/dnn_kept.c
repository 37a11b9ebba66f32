/* Plans as text: the library writes down which engine a plan has, how that is set, and what it has
 * compiled, and makes the same plan of it again. */
#include "worker/device/cuda/dnn/dnn_kept.h"

#include "worker/device/cuda/dnn/dnn_graph.h"
#include "worker/device/cuda/host/plan_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_BYTES    512
#define CHOICE       1 // changes with the rules of dnn_choice.c: plans by others are not taken
#define ENGINE_NAME  "\"engineId\":"
#define ENGINE_DIGIT "0123456789"

/* All that a plan depends on; false if plans are not to be kept. */
static bool write_key(const struct dnn_target *target, const struct dnn_conv *conv,
                      enum dnn_pass pass, char ret_key[KEY_BYTES])
{
    static const char *const passes[] = {
        [DNN_FORWARD] = "forward", [DNN_DATA_GRADIENT] = "data", [DNN_WEIGHT_GRADIENT] = "weights"};
    static const char *const precisions[] = {
        [PRECISION_FP32] = "fp32", [PRECISION_TF32] = "tf32", [PRECISION_BF16] = "bf16"};
    if (target->gpu == NULL) {
        return false;
    }
    int used = snprintf(
        ret_key, KEY_BYTES,
        "choice %d, cuDNN %zu, %.200s; %s of %ux%u, stride %u, padding %u, %u of %ux%ux%u to "
        "%ux%ux%u%s%s%s, %s%s",
        CHOICE, cudnnGetVersion(), target->gpu, passes[pass], conv->window, conv->window,
        conv->stride, conv->padding, conv->batch, conv->inputs, conv->x_rows, conv->x_columns,
        conv->outputs, conv->y_rows, conv->y_columns, conv->has_bias ? ", bias" : "",
        conv->has_relu ? ", relu" : "", conv->has_statistics ? ", statistics" : "",
        precisions[target->precision], target->allows_nondeterministic ? ", nondeterministic" : "");
    return used > 0 && used < KEY_BYTES && strchr(ret_key, '\n') == NULL;
}

/* A plan of its text. */
static cudnnStatus_t read_plan(const struct dnn_target *target, const char *text,
                               cudnnBackendDescriptor_t *ret_descriptor, int64_t *ret_bytes)
{
    struct dnn_pieces pieces = {.status = CUDNN_STATUS_SUCCESS};
    int64_t count = 0;
    cudnnBackendDescriptor_t plan = dnn_begin(&pieces, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    dnn_set_target(&pieces, plan, target);
    dnn_set(&pieces, plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
            (int64_t)strlen(text), text);
    dnn_end(&pieces, plan);
    cudnnStatus_t status = pieces.status;
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                          CUDNN_TYPE_INT64, 1, &count, ret_bytes);
    }
    if (status != CUDNN_STATUS_SUCCESS) {
        dnn_destroy_pieces(&pieces);
        return status;
    }
    *ret_descriptor = plan; // the only piece, and the caller's now
    return CUDNN_STATUS_SUCCESS;
}

static void name_engine(const char *text, struct dnn_plan *plan)
{
    const char *at = strstr(text, ENGINE_NAME);
    at = at != NULL ? at + strlen(ENGINE_NAME) : "?";
    size_t length = strspn(at, ENGINE_DIGIT);
    snprintf(plan->engine, sizeof(plan->engine), "%.*s", (int)(length > 0 ? length : 1), at);
}

bool dnn_find_kept(const struct dnn_target *target, const struct dnn_conv *conv, enum dnn_pass pass,
                   struct dnn_plan *ret_plan)
{
    char key[KEY_BYTES];
    int64_t bytes = 0;
    char *text = write_key(target, conv, pass, key) ? plan_cache_read(key) : NULL;
    if (text == NULL) {
        return false;
    }
    struct dnn_plan plan = {.is_kept = true};
    bool is_found = read_plan(target, text, &plan.plan, &bytes) == CUDNN_STATUS_SUCCESS;
    if (is_found) {
        plan.workspace_bytes = (size_t)bytes;
        name_engine(text, &plan);
        *ret_plan = plan;
    }
    free(text);
    return is_found;
}

void dnn_keep(const struct dnn_target *target, const struct dnn_conv *conv, enum dnn_pass pass,
              const struct dnn_plan *plan)
{
    char key[KEY_BYTES];
    int64_t size = 0;
    if (!write_key(target, conv, pass, key) ||
        cudnnBackendGetAttribute(plan->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                 CUDNN_TYPE_CHAR, 0, &size, NULL) != CUDNN_STATUS_SUCCESS ||
        size <= 0) {
        return;
    }
    char *text = calloc((size_t)size + 1, 1);
    if (text != NULL &&
        cudnnBackendGetAttribute(plan->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                 CUDNN_TYPE_CHAR, size, &size, text) == CUDNN_STATUS_SUCCESS) {
        plan_cache_write(key, text);
    }
    free(text);
}
