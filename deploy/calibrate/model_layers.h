/* The layers of a model and their sizes, as a worker describes them. */
#ifndef DEPLOY_CALIBRATE_MODEL_LAYERS_H
#define DEPLOY_CALIBRATE_MODEL_LAYERS_H

#include "common/base/status.h"
#include "deploy/predict/basis/costs.h"
#include "deploy/trace/timeline.h"

#include <jansson.h>

#include <stdint.h>

struct model_layer {
    char name[TIMELINE_TEXT_BYTES]; // as timelines have it: "conv2d 2"
    uint64_t parameters;
};

struct model_layers {
    struct model_layer list[COSTS_LAYERS_MAX]; // (count), in the order of forward
    uint32_t count;
    uint64_t parameters; // of all
};

/* `description` is what worker/model/description.h tells of; everything in it is checked.
 * STATUS_MALFORMED if it makes no sense. */
enum status model_layers_read(const json_t *description, struct model_layers *ret_layers);

#endif
