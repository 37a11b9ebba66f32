/* Describes the plan of a network as JSON, by jansson. */
#include "worker/model/description.h"

#include "worker/model/models.h"
#include "worker/model/network.h"

#include <jansson.h>

#include <stdlib.h>

static json_t *describe_shape(const struct op *op)
{
    switch (op->kind) {
    case OP_CONV2D:
        return json_pack("[i, i, i, i]", (int)op->y.channels, (int)op->x.channels, (int)op->window,
                         (int)op->window);
    case OP_LINEAR:
        return json_pack("[i, i, i, i]", (int)op->y.channels, (int)op->x.channels, (int)op->x.rows,
                         (int)op->x.columns);
    case OP_BATCH_NORM:
        return json_pack("[i]", (int)op->x.channels);
    case OP_RELU:
    case OP_MAX_POOL:
    case OP_DROPOUT:
    case OP_ADD:
    case OP_SUBSAMPLE:
    case OP_PAD:
    case OP_GLOBAL_POOL:
    case OP_SOFTMAX_LOSS:
        break;
    }
    return NULL;
}

static json_t *describe_layer(const struct op *op)
{
    json_t *layer = json_pack("{s:s, s:o, s:I}", "kind", op_kind_name(op->kind), "shape",
                              describe_shape(op), "weight", (json_int_t)op->weight);
    bool is_good = layer != NULL;
    if (is_good && op->has_bias) {
        is_good = json_object_set_new(layer, "bias", json_integer((json_int_t)op->bias)) == 0;
    }
    if (is_good && op->kind == OP_BATCH_NORM) {
        is_good =
            json_object_set_new(layer, "epsilon", json_real((double)op->epsilon)) == 0 &&
            json_object_set_new(layer, "statistics", json_integer((json_int_t)op->statistics)) == 0;
    }
    if (!is_good) {
        json_decref(layer);
        return NULL;
    }
    return layer;
}

static json_t *describe_layers(const struct network_plan *plan)
{
    json_t *layers = json_array();
    for (uint32_t i = 0; i < plan->op_count && layers != NULL; i++) {
        if (layer_weight_count(&plan->ops[i]) > 0 &&
            json_array_append_new(layers, describe_layer(&plan->ops[i])) != 0) {
            json_decref(layers);
            layers = NULL;
        }
    }
    return layers;
}

enum status description_make(const char *model, struct shape input, uint32_t class_count,
                             char **ret_text)
{
    const struct network *network = models_find(model);
    struct network_plan *plan = malloc(sizeof(*plan));
    uint32_t bad_layer;
    if (plan == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (network == NULL ||
        network_make_plan(network, input, class_count, plan, &bad_layer) != STATUS_OK) {
        free(plan);
        return STATUS_INVALID;
    }
    json_t *whole =
        json_pack("{s:s, s:[i, i, i], s:i, s:I, s:I, s:o}", "model", network->name, "input",
                  (int)input.channels, (int)input.rows, (int)input.columns, "classes",
                  (int)class_count, "values", (json_int_t)plan->value_count, "statistics",
                  (json_int_t)plan->statistic_count, "layers", describe_layers(plan));
    free(plan);
    char *text = whole != NULL ? json_dumps(whole, JSON_COMPACT) : NULL;
    json_decref(whole);
    if (text == NULL) {
        return STATUS_NO_MEMORY;
    }
    *ret_text = text;
    return STATUS_OK;
}
