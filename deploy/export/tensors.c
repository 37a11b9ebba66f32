/* Cuts the vectors into tensors, and turns weights into the order of their new owner. */
#include "deploy/export/tensors.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { KIND_CONV2D, KIND_LINEAR, KIND_BATCH_NORM, KIND_COUNT };

static const struct kind_row {
    const char *name;
    uint32_t rank; // of the weight as it is described
    const char *torch, *keras;
} kinds[] = {
    [KIND_CONV2D] = {"conv2d", 4, "conv", "conv2d"},
    [KIND_LINEAR] = {"linear", 4, "fc", "dense"},
    [KIND_BATCH_NORM] = {"batch_norm", 1, "bn", "batch_normalization"},
};

/* What a tensor is of its layer, and what it is called there. */
enum part { PART_WEIGHT, PART_SCALE, PART_BIAS, PART_MEAN, PART_VARIANCE, PART_BATCHES };

static const struct {
    const char *torch, *keras;
} parts[] = {
    [PART_WEIGHT] = {"weight", "kernel"},
    [PART_SCALE] = {"weight", "gamma"},
    [PART_BIAS] = {"bias", NULL}, // of a batch_norm "beta"
    [PART_MEAN] = {"running_mean", "moving_mean"},
    [PART_VARIANCE] = {"running_var", "moving_variance"},
    [PART_BATCHES] = {"num_batches_tracked", NULL},
};

struct layer {
    enum kind kind;
    uint32_t number;   // of its kind, from 0
    uint32_t shape[4]; // (K, C, R, S), (K, C, H, W) or (C)
    uint64_t weight_count, channels;
    uint64_t weight, bias, statistics; // offsets
    bool has_bias;
};

struct maker {
    const struct tensor_source *source;
    enum tensor_names names;
    struct tensors tensors;
};

void tensors_finish(struct tensors *tensors)
{
    for (uint32_t i = 0; i < tensors->count; i++) {
        free(tensors->list[i].floats);
    }
    free(tensors->list);
    *tensors = (struct tensors){0};
}

static bool find_kind(const char *name, enum kind *ret_kind)
{
    for (uint32_t kind = 0; name != NULL && kind < KIND_COUNT; kind++) {
        if (strcmp(name, kinds[kind].name) == 0) {
            *ret_kind = (enum kind)kind;
            return true;
        }
    }
    return false;
}

/* Whether `count` elements from a described offset on lie within a vector of so many. */
static bool read_offset(const json_t *layer, const char *key, uint64_t count, uint64_t vector_count,
                        uint64_t *ret_offset)
{
    const json_t *offset = json_object_get(layer, key);
    if (!json_is_integer(offset) || json_integer_value(offset) < 0 || count > vector_count ||
        (uint64_t)json_integer_value(offset) > vector_count - count) {
        return false;
    }
    *ret_offset = (uint64_t)json_integer_value(offset);
    return true;
}

static bool read_shape(const json_t *shape, uint64_t count_max, struct layer *layer)
{
    uint64_t count = 1;
    uint32_t rank = kinds[layer->kind].rank;
    if (json_array_size(shape) != rank) {
        return false;
    }
    for (uint32_t i = 0; i < rank; i++) {
        const json_t *size = json_array_get(shape, i);
        json_int_t value = json_integer_value(size);
        if (!json_is_integer(size) || value < 1 || (uint64_t)value > count_max / count) {
            return false;
        }
        layer->shape[i] = (uint32_t)value;
        count *= (uint64_t)value;
    }
    layer->weight_count = count;
    layer->channels = layer->shape[0];
    return true;
}

static bool read_layer(const json_t *described, const struct tensor_source *source,
                       struct layer *ret_layer)
{
    struct layer layer = {.has_bias = json_object_get(described, "bias") != NULL};
    // A size is held in 32 bits.
    uint64_t count_max = source->value_count < UINT32_MAX ? source->value_count : UINT32_MAX;
    bool is_good =
        find_kind(json_string_value(json_object_get(described, "kind")), &layer.kind) &&
        read_shape(json_object_get(described, "shape"), count_max, &layer) &&
        read_offset(described, "weight", layer.weight_count, source->value_count, &layer.weight);
    if (is_good && layer.has_bias) {
        is_good = read_offset(described, "bias", layer.channels, source->value_count, &layer.bias);
    }
    if (is_good && layer.kind == KIND_BATCH_NORM) {
        is_good = layer.has_bias && read_offset(described, "statistics", 2 * layer.channels,
                                                source->statistic_count, &layer.statistics);
    }
    if (is_good) {
        *ret_layer = layer;
    }
    return is_good;
}

static void name_tensor(const struct maker *maker, const struct layer *layer, enum part part,
                        char ret_name[TENSOR_NAME_BYTES])
{
    const struct kind_row *kind = &kinds[layer->kind];
    if (maker->names == TENSOR_NAMES_TORCH) {
        snprintf(ret_name, TENSOR_NAME_BYTES, "%s%u.%s", kind->torch, (unsigned)layer->number + 1,
                 parts[part].torch);
        return;
    }
    char number[16] = "";
    if (layer->number > 0) {
        snprintf(number, sizeof(number), "_%u", (unsigned)layer->number);
    }
    const char *bias = layer->kind == KIND_BATCH_NORM ? "beta" : "bias";
    snprintf(ret_name, TENSOR_NAME_BYTES, "%s%s/%s", kind->keras, number,
             part == PART_BIAS ? bias : parts[part].keras);
}

/* A new tensor without elements; NULL: there is no memory. Valid until the next one. */
static struct tensor *add_tensor(struct maker *maker, const struct layer *layer, enum part part)
{
    struct tensors *tensors = &maker->tensors;
    if (tensors->count == tensors->room) {
        uint32_t room = tensors->room > 0 ? tensors->room * 2 : 64;
        struct tensor *list = reallocarray(tensors->list, room, sizeof(*list));
        if (list == NULL) {
            return NULL;
        }
        tensors->list = list;
        tensors->room = room;
    }
    struct tensor *tensor = &tensors->list[tensors->count++];
    *tensor = (struct tensor){.count = 1};
    name_tensor(maker, layer, part, tensor->name);
    return tensor;
}

static bool add_channels(struct maker *maker, const struct layer *layer, enum part part,
                         const float *values)
{
    struct tensor *tensor = add_tensor(maker, layer, part);
    assert(layer->channels > 0);
    if (tensor == NULL) {
        return false;
    }
    tensor->rank = 1;
    tensor->shape[0] = (uint32_t)layer->channels;
    tensor->count = layer->channels;
    tensor->floats = malloc(layer->channels * sizeof(float));
    if (tensor->floats == NULL) {
        return false;
    }
    memcpy(tensor->floats, values, layer->channels * sizeof(float));
    return true;
}

/* (K, C, Y, X) to (Y, X, C, K): the pixels first, as Keras has them in kernels, and in the inputs
 * of a dense layer behind a flatten. */
static void turn(const uint32_t shape[4], const float *values, float *ret_values)
{
    uint64_t outputs = shape[0], channels = shape[1];
    uint64_t pixels = (uint64_t)shape[2] * shape[3];
    for (uint64_t k = 0; k < outputs; k++) {
        for (uint64_t c = 0; c < channels; c++) {
            for (uint64_t pixel = 0; pixel < pixels; pixel++) {
                ret_values[(pixel * channels + c) * outputs + k] =
                    values[(k * channels + c) * pixels + pixel];
            }
        }
    }
}

static void shape_weight(const struct layer *layer, enum tensor_names names, struct tensor *tensor)
{
    const uint32_t *from = layer->shape;
    assert(layer->channels > 0);
    uint32_t inputs = (uint32_t)(layer->weight_count / layer->channels);
    bool is_turned = names == TENSOR_NAMES_KERAS;
    if (layer->kind == KIND_LINEAR) {
        tensor->rank = 2;
        tensor->shape[0] = is_turned ? inputs : from[0];
        tensor->shape[1] = is_turned ? from[0] : inputs;
        return;
    }
    const uint32_t turned[4] = {from[2], from[3], from[1], from[0]};
    tensor->rank = 4;
    memcpy(tensor->shape, is_turned ? turned : from, sizeof(turned));
}

static bool add_weight(struct maker *maker, const struct layer *layer)
{
    struct tensor *tensor = add_tensor(maker, layer, PART_WEIGHT);
    if (tensor == NULL) {
        return false;
    }
    const float *values = maker->source->values + layer->weight;
    shape_weight(layer, maker->names, tensor);
    tensor->count = layer->weight_count;
    tensor->floats = malloc(tensor->count * sizeof(float));
    if (tensor->floats == NULL) {
        return false;
    }
    if (maker->names == TENSOR_NAMES_KERAS) {
        turn(layer->shape, values, tensor->floats);
    } else {
        memcpy(tensor->floats, values, tensor->count * sizeof(float));
    }
    return true;
}

static bool add_norm(struct maker *maker, const struct layer *layer)
{
    const float *values = maker->source->values;
    const float *statistics = maker->source->statistics + layer->statistics;
    if (!add_channels(maker, layer, PART_SCALE, values + layer->weight) ||
        !add_channels(maker, layer, PART_BIAS, values + layer->bias) ||
        !add_channels(maker, layer, PART_MEAN, statistics) ||
        !add_channels(maker, layer, PART_VARIANCE, statistics + layer->channels)) {
        return false;
    }
    if (maker->names == TENSOR_NAMES_KERAS) {
        return true; // which does not count batches
    }
    struct tensor *tensor = add_tensor(maker, layer, PART_BATCHES);
    if (tensor == NULL) {
        return false;
    }
    tensor->whole = (int64_t)maker->source->step;
    return true;
}

static bool add_layer(struct maker *maker, const struct layer *layer)
{
    if (layer->kind == KIND_BATCH_NORM) {
        return add_norm(maker, layer);
    }
    return add_weight(maker, layer) &&
           (!layer->has_bias ||
            add_channels(maker, layer, PART_BIAS, maker->source->values + layer->bias));
}

static bool has_size(const json_t *model, const char *key, uint64_t count)
{
    const json_t *size = json_object_get(model, key);
    return json_is_integer(size) && json_integer_value(size) >= 0 &&
           (uint64_t)json_integer_value(size) == count;
}

enum status tensors_make(const json_t *model, const struct tensor_source *source,
                         enum tensor_names names, struct tensors *ret_tensors, char *ret_error,
                         size_t error_size)
{
    const json_t *layers = json_object_get(model, "layers");
    uint32_t numbers[KIND_COUNT] = {0};
    struct maker maker = {.source = source, .names = names};
    size_t count = json_array_size(layers);
    if (!has_size(model, "values", source->value_count) ||
        !has_size(model, "statistics", source->statistic_count) || count == 0 ||
        count > TENSOR_NUMBER_MAX) {
        snprintf(ret_error, error_size,
                 "the description of the model is not that of these %llu parameters and %llu "
                 "statistics",
                 (unsigned long long)source->value_count,
                 (unsigned long long)source->statistic_count);
        return STATUS_MALFORMED;
    }
    for (size_t i = 0; i < count; i++) {
        struct layer layer;
        if (!read_layer(json_array_get(layers, i), source, &layer)) {
            snprintf(ret_error, error_size,
                     "layer %zu of the description of the model makes no sense", i + 1);
            tensors_finish(&maker.tensors);
            return STATUS_MALFORMED;
        }
        layer.number = numbers[layer.kind]++;
        if (!add_layer(&maker, &layer)) {
            snprintf(ret_error, error_size, "no memory for the model's tensors");
            tensors_finish(&maker.tensors);
            return STATUS_NO_MEMORY;
        }
    }
    *ret_tensors = maker.tensors;
    return STATUS_OK;
}
