/* Reads a worker's description of a model. */
#include "deploy/calibrate/model_layers.h"

#include <stdio.h>

/* Where the parameters of a layer begin: those of all layers lie one after the other. */
static json_int_t begin_of(const json_t *layer)
{
    const json_t *weight = json_object_get(layer, "weight");
    return json_is_integer(weight) ? json_integer_value(weight) : -1;
}

enum status model_layers_read(const json_t *description, struct model_layers *ret_layers)
{
    const json_t *layers = json_object_get(description, "layers");
    json_int_t all = json_integer_value(json_object_get(description, "values"));
    size_t count = json_array_size(layers);
    if (count == 0 || count >= COSTS_LAYERS_MAX || begin_of(json_array_get(layers, 0)) != 0) {
        return STATUS_MALFORMED;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *layer = json_array_get(layers, i);
        const char *kind = json_string_value(json_object_get(layer, "kind"));
        json_int_t begin = begin_of(layer);
        json_int_t end = i + 1 < count ? begin_of(json_array_get(layers, i + 1)) : all;
        if (kind == NULL || begin < 0 || end <= begin) {
            return STATUS_MALFORMED;
        }
        struct model_layer *own = &ret_layers->list[i];
        snprintf(own->name, sizeof(own->name), "%.40s %zu", kind, i + 1);
        own->parameters = (uint64_t)(end - begin);
    }
    ret_layers->count = (uint32_t)count;
    ret_layers->parameters = (uint64_t)all;
    return STATUS_OK;
}
