/* Which of the engines that cuDNN proposes for a convolution is taken. */
#include "worker/device/cuda/dnn/dnn.h"
#include "worker/device/cuda/dnn/dnn_graph.h"
#include "worker/device/cuda/dnn/dnn_kept.h"
#include "worker/device/cuda/host/report.h"

#include <stdio.h>
#include <string.h>

#define CONFIGS_MAX   64
#define NOTES_MAX     CUDNN_NUMERICAL_NOTE_TYPE_COUNT
#define FAILURE_BYTES 256

/* What became of the proposals, for the sentence that says why there is no plan. */
struct search {
    int64_t proposed, refused;   // by the library; by us, for their numerical notes
    char failure[FAILURE_BYTES]; // the first that the library met; "": none
};

/* Keeps the first failure in the library's words: the status, and what it adds to that. */
static void note_failure(struct search *search, cudnnStatus_t status)
{
    char more[FAILURE_BYTES / 2] = "";
    if (status == CUDNN_STATUS_SUCCESS || search->failure[0] != '\0') {
        return;
    }
    cudnnGetLastErrorString(more, sizeof(more));
    snprintf(search->failure, sizeof(search->failure), "%s%s%s", cudnnGetErrorString(status),
             more[0] != '\0' ? ", " : "", more);
}

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
                      struct search *search, struct dnn_plan *ret_plan)
{
    struct dnn_pieces pieces = {.status = CUDNN_STATUS_SUCCESS};
    int64_t count = 0, bytes = 0;
    cudnnBackendDescriptor_t plan = dnn_begin(&pieces, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    dnn_set_target(&pieces, plan, target);
    dnn_set(&pieces, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            1, &config);
    dnn_end(&pieces, plan);
    cudnnStatus_t status = pieces.status;
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                          CUDNN_TYPE_INT64, 1, &count, &bytes);
    }
    if (status != CUDNN_STATUS_SUCCESS) {
        note_failure(search, status);
        dnn_destroy_pieces(&pieces);
        return false;
    }
    ret_plan->plan = plan; // the only piece, and the caller's now
    ret_plan->workspace_bytes = (size_t)bytes;
    return true;
}

/* Configurations that the heuristics of a mode propose, best first; returns how many. */
static int64_t ask_heuristics(const struct dnn_target *target, cudnnBackendDescriptor_t graph,
                              cudnnBackendHeurMode_t mode,
                              cudnnBackendDescriptor_t configs[CONFIGS_MAX], struct search *search)
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
    cudnnStatus_t status = pieces.status;
    if (status == CUDNN_STATUS_SUCCESS) {
        status =
            cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS_MAX, &count, configs);
    }
    note_failure(search, status);
    dnn_destroy_pieces(&pieces);
    if (status != CUDNN_STATUS_SUCCESS) {
        return 0;
    }
    return count < CONFIGS_MAX ? count : CONFIGS_MAX;
}

/* The first proposal of a mode that is allowed and can be planned. */
static bool find_plan(const struct dnn_target *target, cudnnBackendDescriptor_t graph,
                      cudnnBackendHeurMode_t mode, struct search *search, struct dnn_plan *ret_plan)
{
    cudnnBackendDescriptor_t configs[CONFIGS_MAX] = {NULL};
    bool is_found = false;
    for (uint32_t i = 0; i < CONFIGS_MAX; i++) {
        if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[i]) !=
            CUDNN_STATUS_SUCCESS) {
            configs[i] = NULL;
        }
    }
    int64_t count = ask_heuristics(target, graph, mode, configs, search);
    search->proposed += count;
    for (int64_t i = 0; i < count && !is_found; i++) {
        if (!is_allowed(target, configs[i], ret_plan->engine, sizeof(ret_plan->engine))) {
            search->refused++;
            continue;
        }
        is_found = make_plan(target, configs[i], search, ret_plan);
    }
    for (uint32_t i = 0; i < CONFIGS_MAX; i++) {
        if (configs[i] != NULL) {
            cudnnBackendDestroyDescriptor(configs[i]);
        }
    }
    return is_found;
}

/* Why nothing was found. */
static void explain(const struct dnn_target *target, const struct search *search, char *ret_why,
                    size_t why_size)
{
    if (search->proposed == 0) {
        snprintf(ret_why, why_size, "it proposes no engine%s%s",
                 search->failure[0] != '\0' ? ": " : "", search->failure);
        return;
    }
    snprintf(ret_why, why_size, "of %lld engines that it proposes, %lld %s%s%s",
             (long long)search->proposed, (long long)search->refused,
             target->allows_nondeterministic
                 ? "round more than --precision allows"
                 : "round more than --precision allows or do not repeat their bits "
                   "(--allow-nondeterministic admits these)",
             search->failure[0] != '\0' ? ", others cannot be planned: " : "", search->failure);
}

static enum status choose(const struct dnn_target *target, const struct dnn_conv *conv,
                          enum dnn_pass pass, struct dnn_plan *ret_plan, char *ret_why,
                          size_t why_size)
{
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    struct dnn_pieces pieces = {.status = CUDNN_STATUS_SUCCESS};
    struct search search = {.proposed = 0};
    *ret_plan = (struct dnn_plan){0};
    cudnnBackendDescriptor_t graph = dnn_add_graph(&pieces, target, conv, pass);
    if (pieces.status != CUDNN_STATUS_SUCCESS) {
        note_failure(&search, pieces.status);
        snprintf(ret_why, why_size, "it does not take what is asked: %s", search.failure);
        dnn_destroy_pieces(&pieces);
        return STATUS_UNSUPPORTED;
    }
    bool is_found = false;
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]) && !is_found; i++) {
        is_found = find_plan(target, graph, modes[i], &search, ret_plan);
    }
    dnn_destroy_pieces(&pieces);
    if (!is_found) {
        explain(target, &search, ret_why, why_size);
        return STATUS_UNSUPPORTED;
    }
    return STATUS_OK;
}

enum status dnn_plan_conv(const struct dnn_target *target, const struct dnn_conv *conv,
                          enum dnn_pass pass, struct dnn_plan *ret_plan, char *ret_why,
                          size_t why_size)
{
    if (dnn_find_kept(target, conv, pass, ret_plan)) {
        return STATUS_OK;
    }
    if (conv->has_statistics) {
        report_info("cuDNN compiles a convolution of %ux%u with statistics, from %u to %u channels "
                    "of %ux%u: this takes seconds%s",
                    conv->window, conv->window, conv->inputs, conv->outputs, conv->y_rows,
                    conv->y_columns, target->gpu != NULL ? ", once on this GPU" : "");
    }
    enum status status = choose(target, conv, pass, ret_plan, ret_why, why_size);
    if (status == STATUS_OK) {
        dnn_keep(target, conv, pass, ret_plan);
    }
    return status;
}
