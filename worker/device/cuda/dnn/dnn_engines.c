/* cuDNN's engines: its heuristics' lists, engines as text, and their plans. */
#include "worker/device/cuda/dnn/dnn_engines.h"

#include "worker/device/cuda/dnn/dnn_choices.h"
#include "worker/device/cuda/dnn/dnn_graph.h"
#include "worker/device/cuda/dnn/dnn_kept.h"
#include "worker/device/cuda/host/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIGS_MAX (DNN_PROPOSALS_MAX / 2) // of one list: two go into the proposals
#define KNOBS_MAX   CUDNN_KNOB_TYPE_COUNTS
#define NOTES_MAX   CUDNN_NUMERICAL_NOTE_TYPE_COUNT
#define HABITS_MAX  CUDNN_BEHAVIOR_NOTE_TYPE_COUNT

/* Keeps the first failure in the library's words: the status, and what it adds to that. */
static void note_failure(char failure[DNN_FAILURE_BYTES], cudnnStatus_t status)
{
    char more[DNN_FAILURE_BYTES / 2] = "";
    if (status == CUDNN_STATUS_SUCCESS || failure[0] != '\0') {
        return;
    }
    cudnnGetLastErrorString(more, sizeof(more));
    snprintf(failure, DNN_FAILURE_BYTES, "%s%s%s", cudnnGetErrorString(status),
             more[0] != '\0' ? ", " : "", more);
}

/* Empty descriptors, which the library fills in; NULL where there is none. */
static void create_all(cudnnBackendDescriptorType_t type, uint32_t count,
                       cudnnBackendDescriptor_t *ret_list)
{
    for (uint32_t i = 0; i < count; i++) {
        if (cudnnBackendCreateDescriptor(type, &ret_list[i]) != CUDNN_STATUS_SUCCESS) {
            ret_list[i] = NULL;
        }
    }
}

static void destroy_all(uint32_t count, cudnnBackendDescriptor_t *list)
{
    for (uint32_t i = 0; i < count; i++) {
        if (list[i] != NULL) {
            cudnnBackendDestroyDescriptor(list[i]);
        }
    }
}

/* ==========================================================================================
 * Configurations as text
 * ========================================================================================== */

/* Whether an engine keeps to what the target asks for. Tensor cores round floats to tf32. */
static bool is_allowed(const struct dnn_target *target, cudnnBackendDescriptor_t engine)
{
    cudnnBackendNumericalNote_t notes[NOTES_MAX];
    int64_t count = 0;
    bool is_allowed = cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                               CUDNN_TYPE_NUMERICAL_NOTE, NOTES_MAX, &count,
                                               notes) == CUDNN_STATUS_SUCCESS &&
                      count <= NOTES_MAX; // a newer library may have more to say than we can hear
    for (int64_t i = 0; is_allowed && i < count; i++) {
        bool is_rough = notes[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
                        notes[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
                        notes[i] == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13;
        bool is_random = notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
        bool is_tensor_core = notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        is_allowed = !is_rough && (!is_random || target->allows_nondeterministic) &&
                     (!is_tensor_core || target->precision != PRECISION_FP32);
    }
    return is_allowed;
}

/* Whether the library compiles an engine for a plan, by NVRTC. */
static bool is_compiled(cudnnBackendDescriptor_t engine)
{
    cudnnBackendBehaviorNote_t notes[HABITS_MAX];
    int64_t count = 0;
    bool is_compiled = false;
    if (cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                 HABITS_MAX, &count, notes) != CUDNN_STATUS_SUCCESS) {
        return false;
    }
    for (int64_t i = 0; i < count && i < HABITS_MAX; i++) {
        is_compiled = is_compiled || notes[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    }
    return is_compiled;
}

/* Appends " 2=1" for each knob of a configuration; false if the library does not say, or there is
 * no room. */
static bool write_knobs(cudnnBackendDescriptor_t config, struct dnn_engine *engine)
{
    cudnnBackendDescriptor_t knobs[KNOBS_MAX];
    int64_t count = 0, ignored = 0;
    size_t used = strlen(engine->text);
    create_all(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, KNOBS_MAX, knobs);
    bool is_known = cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                             CUDNN_TYPE_BACKEND_DESCRIPTOR, KNOBS_MAX, &count,
                                             knobs) == CUDNN_STATUS_SUCCESS &&
                    count <= KNOBS_MAX;
    for (int64_t i = 0; is_known && i < count; i++) {
        cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
        int64_t value = 0;
        is_known =
            cudnnBackendGetAttribute(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                     CUDNN_TYPE_KNOB_TYPE, 1, &ignored,
                                     &type) == CUDNN_STATUS_SUCCESS &&
            cudnnBackendGetAttribute(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64,
                                     1, &ignored, &value) == CUDNN_STATUS_SUCCESS;
        int length = snprintf(engine->text + used, sizeof(engine->text) - used, " %d=%lld",
                              (int)type, (long long)value);
        is_known = is_known && length > 0 && used + (size_t)length < sizeof(engine->text);
        used += is_known ? (size_t)length : 0;
    }
    destroy_all(KNOBS_MAX, knobs);
    return is_known;
}

/* The text of a configuration; false if it does not keep to the target. */
static bool write_engine(const struct dnn_target *target, cudnnBackendDescriptor_t config,
                         struct dnn_engine *ret_engine)
{
    cudnnBackendDescriptor_t engine = NULL;
    int64_t count = 0, index = 0;
    create_all(CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1, &engine);
    bool is_fit =
        engine != NULL &&
        cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 1, &count, &engine) == CUDNN_STATUS_SUCCESS &&
        is_allowed(target, engine) &&
        cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                                 &count, &index) == CUDNN_STATUS_SUCCESS;
    snprintf(ret_engine->text, sizeof(ret_engine->text), "%lld", (long long)index);
    destroy_all(1, &engine);
    return is_fit && write_knobs(config, ret_engine);
}

/* The knobs that an engine's text sets, among the pieces. Somebody else may have written it: false
 * if it is not of that form. */
static bool add_knobs(struct dnn_pieces *pieces, const char *text, int64_t *ret_count,
                      cudnnBackendDescriptor_t ret_knobs[KNOBS_MAX])
{
    int64_t count = 0;
    while (*text == ' ') {
        char *end;
        int64_t type_number = strtoll(text + 1, &end, 10);
        if (*end != '=' || type_number < 0 || type_number >= CUDNN_KNOB_TYPE_COUNTS ||
            count == KNOBS_MAX) {
            return false;
        }
        int64_t value = strtoll(end + 1, &end, 10);
        cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)type_number;
        cudnnBackendDescriptor_t knob = dnn_begin(pieces, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
        dnn_set(pieces, knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
        dnn_set(pieces, knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value);
        dnn_end(pieces, knob);
        ret_knobs[count++] = knob;
        text = end;
    }
    *ret_count = count;
    return *text == '\0';
}

/* The configuration that a text means, among the pieces; NULL if it means none. */
static cudnnBackendDescriptor_t add_config(struct dnn_pieces *pieces,
                                           const struct dnn_target *target,
                                           cudnnBackendDescriptor_t graph,
                                           const struct dnn_engine *from, bool *ret_is_compiled)
{
    cudnnBackendDescriptor_t knobs[KNOBS_MAX];
    char *end;
    int64_t index = strtoll(from->text, &end, 10), knob_count = 0;
    if (end == from->text || !add_knobs(pieces, end, &knob_count, knobs)) {
        return NULL;
    }
    cudnnBackendDescriptor_t engine = dnn_begin(pieces, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    dnn_set(pieces, engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
            &graph);
    dnn_set(pieces, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
    if (target->handle == NULL) {
        dnn_set(pieces, engine, CUDNN_ATTR_ENGINE_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                &target->described);
    }
    dnn_end(pieces, engine);
    if (pieces->status == CUDNN_STATUS_SUCCESS && !is_allowed(target, engine)) {
        return NULL;
    }
    *ret_is_compiled = pieces->status == CUDNN_STATUS_SUCCESS && is_compiled(engine);
    cudnnBackendDescriptor_t config = dnn_begin(pieces, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    dnn_set(pieces, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
    if (knob_count > 0) {
        dnn_set(pieces, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                knob_count, knobs);
    }
    dnn_end(pieces, config);
    return config;
}

/* ==========================================================================================
 * Proposals
 * ========================================================================================== */

/* Configurations that the heuristics of a mode propose, best first; returns how many. */
static int64_t ask_heuristics(const struct dnn_target *target, cudnnBackendDescriptor_t graph,
                              cudnnBackendHeurMode_t mode,
                              cudnnBackendDescriptor_t configs[CONFIGS_MAX],
                              char failure[DNN_FAILURE_BYTES])
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
    note_failure(failure, status);
    dnn_destroy_pieces(&pieces);
    if (status != CUDNN_STATUS_SUCCESS) {
        return 0;
    }
    return count < CONFIGS_MAX ? count : CONFIGS_MAX;
}

/* The engines of one list. */
struct engine_list {
    struct dnn_engine engines[CONFIGS_MAX];
    uint32_t count;
};

static void ask(const struct dnn_target *target, cudnnBackendDescriptor_t graph,
                cudnnBackendHeurMode_t mode, struct dnn_proposals *proposals,
                struct engine_list *ret_list)
{
    cudnnBackendDescriptor_t configs[CONFIGS_MAX];
    create_all(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CONFIGS_MAX, configs);
    int64_t count = ask_heuristics(target, graph, mode, configs, proposals->failure);
    proposals->proposed += count;
    ret_list->count = 0;
    for (int64_t i = 0; i < count; i++) {
        bool is_fit = write_engine(target, configs[i], &ret_list->engines[ret_list->count]);
        ret_list->count += is_fit ? 1 : 0;
        proposals->refused += is_fit ? 0 : 1;
    }
    destroy_all(CONFIGS_MAX, configs);
}

static void add_once(struct dnn_proposals *proposals, const struct dnn_engine *engine)
{
    for (uint32_t i = 0; i < proposals->count; i++) {
        if (strcmp(proposals->list[i].text, engine->text) == 0) {
            return;
        }
    }
    proposals->list[proposals->count++] = *engine;
}

void dnn_propose(const struct dnn_target *target, const struct dnn_conv *conv, enum dnn_pass pass,
                 enum dnn_lists lists, struct dnn_proposals *proposals)
{
    struct dnn_pieces pieces = {.status = CUDNN_STATUS_SUCCESS};
    struct engine_list *found = calloc(2, sizeof(*found));
    proposals->count = 0;
    if (found == NULL) {
        return;
    }
    cudnnBackendDescriptor_t graph = dnn_add_graph(&pieces, target, conv, pass);
    note_failure(proposals->failure, pieces.status);
    if (pieces.status == CUDNN_STATUS_SUCCESS) {
        ask(target, graph,
            lists == DNN_LIST_FALLBACKS ? CUDNN_HEUR_MODE_FALLBACK : CUDNN_HEUR_MODE_A, proposals,
            &found[0]);
        if (lists == DNN_LISTS_BEST) {
            ask(target, graph, CUDNN_HEUR_MODE_B, proposals, &found[1]);
        }
    }
    dnn_destroy_pieces(&pieces);
    for (uint32_t i = 0; i < CONFIGS_MAX; i++) {
        for (uint32_t list = 0; list < 2; list++) {
            if (i < found[list].count) {
                add_once(proposals, &found[list].engines[i]);
            }
        }
    }
    free(found);
}

/* ==========================================================================================
 * Plans
 * ========================================================================================== */

/* Says what one waits for: the first one to everybody, others to who looks closer. */
static void announce(const struct dnn_target *target, const struct dnn_conv *conv)
{
    struct dnn_choices *choices = target->choices;
    bool is_first = choices != NULL && choices->compiled_count++ == 0;
    void (*say)(const char *format, ...) = is_first ? report_warn : report_info;
    say("cuDNN compiles a convolution of %ux%u%s, from %u to %u channels of %ux%u: this takes "
        "seconds%s%s",
        conv->window, conv->window, conv->has_statistics ? " with statistics" : "", conv->inputs,
        conv->outputs, conv->y_rows, conv->y_columns,
        target->gpu != NULL ? ", once on this GPU" : "",
        is_first ? ", and so do others of its kind (--log-level info names them)" : "");
}

/* Makes the plan, and hands it out of the pieces, whose last it is. */
static cudnnStatus_t make_plan(struct dnn_pieces *pieces, const struct dnn_target *target,
                               cudnnBackendDescriptor_t config, struct dnn_plan *ret_plan)
{
    int64_t count = 0, bytes = 0;
    cudnnBackendDescriptor_t plan = dnn_begin(pieces, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    dnn_set_target(pieces, plan, target);
    dnn_set(pieces, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
            &config);
    dnn_end(pieces, plan);
    cudnnStatus_t status = pieces->status;
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                          CUDNN_TYPE_INT64, 1, &count, &bytes);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        pieces->count--;
        ret_plan->plan = plan;
        ret_plan->workspace_bytes = (size_t)bytes;
    }
    return status;
}

bool dnn_plan_engine(const struct dnn_target *target, const struct dnn_conv *conv,
                     enum dnn_pass pass, const struct dnn_engine *engine, struct dnn_plan *ret_plan,
                     char failure[DNN_FAILURE_BYTES])
{
    struct dnn_pieces pieces = {.status = CUDNN_STATUS_SUCCESS};
    struct dnn_plan plan = {0};
    if (dnn_find_kept(target, conv, pass, engine, ret_plan)) {
        return true;
    }
    cudnnBackendDescriptor_t graph = dnn_add_graph(&pieces, target, conv, pass);
    bool is_made = false, compiles = false;
    cudnnBackendDescriptor_t config = add_config(&pieces, target, graph, engine, &compiles);
    if (config == NULL && pieces.status == CUDNN_STATUS_SUCCESS) {
        snprintf(failure, failure[0] == '\0' ? DNN_FAILURE_BYTES : 0,
                 "it is none that keeps to --precision and --allow-nondeterministic");
    } else {
        if (compiles) {
            announce(target, conv);
        }
        cudnnStatus_t status = make_plan(&pieces, target, config, &plan);
        note_failure(failure, status);
        is_made = status == CUDNN_STATUS_SUCCESS;
    }
    dnn_destroy_pieces(&pieces);
    if (is_made) {
        snprintf(plan.engine, sizeof(plan.engine), "%.*s", (int)strcspn(engine->text, " "),
                 engine->text);
        *ret_plan = plan;
    }
    return is_made;
}
