/* Plans of cuDNN's graph interface: heuristics, engines, and how a plan runs. */
#include "worker/device/cuda/dnn.h"

#include "worker/device/cuda/dnn_graph.h"
#include "worker/device/cuda/report.h"

#include <stdio.h>
#include <string.h>

#define CONFIGS_MAX  64
#define OPERANDS_MAX 6
#define NOTES_MAX    CUDNN_NUMERICAL_NOTE_TYPE_COUNT

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
    struct dnn_pieces pieces = {.status = CUDNN_STATUS_SUCCESS};
    int64_t count = 0;
    cudnnBackendDescriptor_t heuristics = dnn_begin(&pieces, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    dnn_set(&pieces, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    dnn_set(&pieces, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (target->handle == NULL) {
        dnn_set(&pieces, heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target->described);
    }
    dnn_end(&pieces, heuristics);
    if (pieces.status == CUDNN_STATUS_SUCCESS &&
        cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS_MAX, &count,
                                 configs) != CUDNN_STATUS_SUCCESS) {
        count = 0;
    }
    dnn_destroy_pieces(&pieces);
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
    struct dnn_pieces pieces = {.status = CUDNN_STATUS_SUCCESS};
    cudnnBackendDescriptor_t graph = dnn_add_graph(&pieces, target, conv, pass);
    bool is_found = false;
    *ret_plan = (struct dnn_plan){0};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]) && !is_found; i++) {
        is_found =
            pieces.status == CUDNN_STATUS_SUCCESS && find_plan(target, graph, modes[i], ret_plan);
    }
    dnn_destroy_pieces(&pieces);
    return is_found ? STATUS_OK : STATUS_UNSUPPORTED;
}

void dnn_plan_destroy(struct dnn_plan *plan)
{
    if (plan->plan != NULL) {
        cudnnBackendDestroyDescriptor(plan->plan);
    }
    *plan = (struct dnn_plan){0};
}

/* Names and places of a pass's operands, without those that there are none of; returns how many. */
static int64_t name_operands(const struct dnn_operands *operands, int64_t ret_uids[OPERANDS_MAX],
                             void *ret_pointers[OPERANDS_MAX])
{
    const struct {
        enum dnn_uid uid;
        void *pointer;
    } rows[OPERANDS_MAX] = {
        {DNN_UID_X, operands->x},       {DNN_UID_W, operands->w},
        {DNN_UID_Y, operands->y},       {DNN_UID_BIAS, operands->bias},
        {DNN_UID_SUMS, operands->sums}, {DNN_UID_SQUARE_SUMS, operands->square_sums},
    };
    int64_t count = 0;
    for (uint32_t i = 0; i < OPERANDS_MAX; i++) {
        if (rows[i].pointer != NULL) {
            ret_uids[count] = rows[i].uid;
            ret_pointers[count++] = rows[i].pointer;
        }
    }
    return count;
}

/* The operands as the library takes them. It does not take others once a pack is finalized. */
static cudnnBackendDescriptor_t add_pack(struct dnn_pieces *pieces,
                                         const struct dnn_operands *operands)
{
    int64_t uids[OPERANDS_MAX];
    void *pointers[OPERANDS_MAX];
    const int64_t count = name_operands(operands, uids, pointers);
    cudnnBackendDescriptor_t pack = dnn_begin(pieces, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    dnn_set(pieces, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, uids);
    dnn_set(pieces, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
            pointers);
    dnn_set(pieces, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
            &operands->workspace);
    dnn_end(pieces, pack);
    return pack;
}

enum status dnn_plan_run(const struct dnn_target *target, const struct dnn_plan *plan,
                         const struct dnn_operands *operands)
{
    struct dnn_pieces pieces = {.status = CUDNN_STATUS_SUCCESS};
    cudnnBackendDescriptor_t pack = add_pack(&pieces, operands);
    cudnnStatus_t status = pieces.status;
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnnBackendExecute(target->handle, plan->plan, pack);
    }
    dnn_destroy_pieces(&pieces);
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
