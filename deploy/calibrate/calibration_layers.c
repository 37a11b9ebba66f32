/* Takes layers from a timeline, by their names or by buckets. */
#include "deploy/calibrate/calibration_layers.h"

#include "deploy/calibrate/calibration_cores.h"
#include "deploy/calibrate/fit.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* The rest of the step comes first, as a layer without parameters. */
static void list_layers(const struct model_layers *model, struct costs *costs)
{
    costs->layers[0] = (struct cost_layer){.parameters = 0};
    costs->layer_count = 1;
    for (uint32_t i = 0; i < model->count; i++) {
        costs->layers[costs->layer_count++] =
            (struct cost_layer){.parameters = model->list[i].parameters};
    }
}

/* A timeline with layers: their names are those of the model. What lies between layers is added to
 * the rest. */
static void take_named(const struct observation *seen, const struct model_layers *model,
                       struct costs *costs)
{
    struct cost_layer *layers = costs->layers;
    layers[0].forward_s = seen->piece_s[OBSERVED_REST] + seen->piece_s[OBSERVED_FORWARD];
    layers[0].forward_spread = seen->spreads.others;
    for (uint32_t b = 0; b < LAYOUT_BUCKETS_MAX; b++) {
        layers[0].forward_s += seen->piece_s[OBSERVED_BUCKETS + b];
    }
    for (uint32_t i = 0; i < model->count; i++) {
        for (uint32_t j = 0; j < seen->layer_count; j++) {
            if (strcmp(model->list[i].name, seen->layers[j].name) == 0) {
                layers[1 + i].forward_s = seen->piece_s[OBSERVED_LAYERS + 2 * j];
                layers[1 + i].backward_s = seen->piece_s[OBSERVED_LAYERS + 2 * j + 1];
                layers[1 + i].forward_spread = seen->spreads.forward[j];
                layers[1 + i].backward_spread = seen->spreads.backward[j];
            }
        }
    }
}

/* A timeline without: forward is shared out by parameters, and backward of each bucket as well. How
 * the spread of such a piece would be, nothing says, so layers have none. */
static enum status take_unnamed(const struct calibration_run *run, struct costs *costs)
{
    const struct observation *seen = &run->observation;
    struct layout layout;
    uint64_t offset = 0;
    enum status status =
        costs_make_layout(costs, (uint64_t)(run->bucket_mb * 1024 * 1024), &layout);
    if (status != STATUS_OK) {
        return status;
    }
    costs->layers[0].forward_s = seen->piece_s[OBSERVED_REST];
    for (uint32_t i = 1; i < costs->layer_count; i++) {
        struct cost_layer *layer = &costs->layers[i];
        const struct span span = {offset, layer->parameters};
        offset += layer->parameters;
        layer->forward_s = seen->piece_s[OBSERVED_FORWARD] * (double)layer->parameters /
                           (double)layout.value_count;
        for (uint32_t b = 0; b < layout.bucket_count; b++) {
            double share = (double)span_intersect(span, layout.buckets[b]).count /
                           (double)layout.buckets[b].count;
            layer->backward_s += share * seen->piece_s[OBSERVED_BUCKETS + b];
        }
    }
    return STATUS_OK;
}

/* Layers take what passes, also while something else has their core, and steps what cores work,
 * where timelines say it. So spreads of layers that come to more than the step's, although each is
 * for itself, are made smaller. They also stay below half of what predict refuses, which a step
 * that was stopped for a while might reach. */
static void bound_spreads(struct costs *costs)
{
    double layers_s = costs_layers_deviation_s(costs);
    double most_s =
        fmin(spread_deviation_s(&costs->spread), COSTS_SPREAD_MAX / 2 * costs_compute_s(costs));
    for (uint32_t i = 0; i < costs->layer_count && layers_s > most_s; i++) {
        struct cost_layer *layer = &costs->layers[i];
        spread_scale(&layer->forward_spread, most_s / layers_s);
        spread_scale(&layer->backward_spread, most_s / layers_s);
        if (most_s <= 0) {
            layer->forward_spread.kind = layer->backward_spread.kind = SPREAD_NONE;
        }
    }
}

/* From pieces of a step to shares of the least step, and the spread on top of it. */
static void scale(const struct calibration_run *run, double speed_share, struct costs *costs)
{
    const struct observation *seen = &run->observation;
    double share = calibration_core_share(run) * speed_share, all_s = costs_compute_s(costs);
    struct fit_spread fit = fit_spread(seen->step_s, seen->step_count);
    costs->errors.compute = fit_mean_error(seen->step_s, seen->step_count);
    costs->spread = fit.spread;
    spread_scale(&costs->spread, share);
    for (uint32_t i = 0; i < costs->layer_count && all_s > 0; i++) {
        double factor = share * fit.least_s / all_s;
        cost_layer_scale(&costs->layers[i], factor, factor);
    }
    bound_spreads(costs);
}

enum status calibration_layers_make(const struct calibration_run *run,
                                    const struct model_layers *model, double speed_share,
                                    struct costs *costs)
{
    list_layers(model, costs);
    costs->whole_layers = run->observation.layer_count > 0;
    if (costs->whole_layers) {
        take_named(&run->observation, model, costs);
    } else {
        enum status status = take_unnamed(run, costs);
        if (status != STATUS_OK) {
            return status;
        }
    }
    scale(run, speed_share, costs);
    return STATUS_OK;
}
