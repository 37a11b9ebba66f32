/* Plans as text: the library writes down which engine a plan has, how that is set, and what it has
 * compiled, and makes the same plan of it again. */
#include "worker/device/cuda/dnn/dnn_kept.h"

#include "worker/device/cuda/dnn/dnn_graph.h"
#include "worker/device/cuda/dnn/dnn_key.h"
#include "worker/device/cuda/host/plan_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What plans are kept under. */
static bool write_key(const struct dnn_target *target, const struct dnn_conv *conv,
                      enum dnn_pass pass, const struct dnn_engine *engine,
                      char ret_key[DNN_KEY_BYTES])
{
    char what[DNN_ENGINE_BYTES + 32];
    snprintf(what, sizeof(what), "the plan of engine %s", engine->text);
    return dnn_write_key(target, conv, pass, what, ret_key);
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

bool dnn_find_kept(const struct dnn_target *target, const struct dnn_conv *conv, enum dnn_pass pass,
                   const struct dnn_engine *engine, struct dnn_plan *ret_plan)
{
    char key[DNN_KEY_BYTES];
    int64_t bytes = 0;
    char *text = write_key(target, conv, pass, engine, key) ? plan_cache_read(key) : NULL;
    if (text == NULL) {
        return false;
    }
    struct dnn_plan plan = {.is_kept = true};
    bool is_found = read_plan(target, text, &plan.plan, &bytes) == CUDNN_STATUS_SUCCESS;
    if (is_found) {
        plan.workspace_bytes = (size_t)bytes;
        snprintf(plan.engine, sizeof(plan.engine), "%.*s", (int)strcspn(engine->text, " "),
                 engine->text);
        *ret_plan = plan;
    }
    free(text);
    return is_found;
}

void dnn_keep_plan(const struct dnn_target *target, const struct dnn_conv *conv, enum dnn_pass pass,
                   const struct dnn_engine *engine, const struct dnn_plan *plan)
{
    char key[DNN_KEY_BYTES];
    int64_t size = 0;
    if (plan->is_kept || !write_key(target, conv, pass, engine, key) ||
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
