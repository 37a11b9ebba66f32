/* Reads costs, and shares them out among buckets. */
#include "deploy/predict/basis/costs.h"

#include "common/base/log.h"
#include "deploy/predict/basis/fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define RATE_MAX    1e12 // images per second
#define PLACE_BYTES 80   // "batches[7].layers[1023].spread"

void cost_layer_scale(struct cost_layer *layer, double forward_factor, double backward_factor)
{
    layer->forward_s *= forward_factor;
    layer->backward_s *= backward_factor;
    spread_scale(&layer->forward_spread, forward_factor);
    spread_scale(&layer->backward_spread, backward_factor);
}

/* Reads `spread`, in the place of what the layer had before. */
static enum status read_layer_spread(const struct fields *fields, json_t *object,
                                     struct cost_layer *layer)
{
    static const char *const names[] = {"forward", "backward", NULL};
    struct spread *const spreads[] = {&layer->forward_spread, &layer->backward_spread};
    char place[PLACE_BYTES], own[PLACE_BYTES + 16];
    snprintf(place, sizeof(place), "%s.spread", fields->place);
    enum status status = fields_check_names(&(struct fields){fields->file, place, object}, names);
    for (size_t i = 0; names[i] != NULL && status == STATUS_OK; i++) {
        snprintf(own, sizeof(own), "%s.%s", place, names[i]);
        *spreads[i] = (struct spread){.kind = SPREAD_NONE};
        status = spread_read(fields->file, own, json_object_get(object, names[i]), spreads[i]);
    }
    return status;
}

enum status costs_read_layer_times(const struct fields *fields, struct cost_layer *layer)
{
    json_t *spread = json_object_get(fields->object, "spread");
    double forward_s = layer->forward_s, backward_s = layer->backward_s;
    enum status status = fields_quantity(fields, "forward", QUANTITY_TIME, true, &layer->forward_s);
    if (status == STATUS_OK) {
        status = fields_quantity(fields, "backward", QUANTITY_TIME, true, &layer->backward_s);
    }
    if (status != STATUS_OK || spread != NULL) {
        return status == STATUS_OK ? read_layer_spread(fields, spread, layer) : status;
    }
    spread_scale(&layer->forward_spread, forward_s > 0 ? layer->forward_s / forward_s : 1);
    spread_scale(&layer->backward_spread, backward_s > 0 ? layer->backward_s / backward_s : 1);
    return STATUS_OK;
}

static enum status check_layer_spread(const struct fields *fields, const char *name,
                                      const struct spread *spread, double most_s)
{
    double deviation_s = spread_deviation_s(spread);
    if (!isfinite(deviation_s)) {
        return fields_refuse(fields, name, "has no standard deviation; give it a shape above 2");
    }
    return fmax(spread_mean_s(spread), deviation_s) > most_s
               ? fields_refuse(fields, name,
                               "is more than a hundred times what all layers take together; check "
                               "its unit")
               : STATUS_OK;
}

enum status costs_check_layer_spreads(const struct fields *fields, const struct costs *costs)
{
    enum status status = STATUS_OK;
    double most_s = COSTS_SPREAD_MAX * costs_compute_s(costs);
    for (uint32_t i = 0; i < costs->layer_count && status == STATUS_OK; i++) {
        const struct cost_layer *layer = &costs->layers[i];
        char place[PLACE_BYTES];
        snprintf(place, sizeof(place), "%s%slayers[%u].spread", fields->place,
                 fields->place[0] != '\0' ? "." : "", i);
        const struct fields own = {fields->file, place, NULL};
        status = check_layer_spread(&own, "forward", &layer->forward_spread, most_s);
        if (status == STATUS_OK) {
            status = check_layer_spread(&own, "backward", &layer->backward_spread, most_s);
        }
    }
    return status;
}

static enum status read_layer(const char *file, json_t *object, size_t index,
                              struct cost_layer *layer)
{
    static const char *const names[] = {"name",     "parameters", "forward",
                                        "backward", "spread",     NULL};
    char place[32];
    snprintf(place, sizeof(place), "layers[%zu]", index);
    const struct fields fields = {file, place, object};
    double parameters = 0;
    enum status status = fields_check_names(&fields, names);
    if (status == STATUS_OK) {
        status = fields_number(&fields, "parameters", 0, 1e10, true, &parameters);
    }
    if (status == STATUS_OK && floor(parameters) != parameters) {
        status = fields_refuse(&fields, "parameters", "has to be a whole number");
    }
    layer->parameters = (uint64_t)parameters;
    return status == STATUS_OK ? costs_read_layer_times(&fields, layer) : status;
}

static enum status read_layers(const struct fields *fields, struct costs *costs)
{
    const json_t *list = NULL;
    uint64_t parameters = 0;
    enum status status = fields_list(fields, "layers", true, &list);
    if (status == STATUS_OK && json_array_size(list) > COSTS_LAYERS_MAX) {
        return fields_refuse(fields, "layers", "has too many entries; join some of them");
    }
    costs->layer_count = (uint32_t)json_array_size(list);
    for (size_t i = 0; i < costs->layer_count && status == STATUS_OK; i++) {
        status = read_layer(fields->file, json_array_get(list, i), i, &costs->layers[i]);
        parameters += costs->layers[i].parameters;
    }
    if (status == STATUS_OK && parameters == 0) {
        return fields_refuse(fields, "layers", "have no parameters");
    }
    return status == STATUS_OK ? costs_check_layer_spreads(fields, costs) : status;
}

static enum status read_errors(const char *file, json_t *object, struct cost_errors *errors)
{
    static const char *const names[] = {"compute", "optimizer", "message", "sum", "carriage", NULL};
    double *const values[] = {&errors->compute, &errors->optimizer, &errors->message, &errors->sum,
                              &errors->carriage};
    const struct fields fields = {file, "errors", object};
    enum status status = object != NULL ? fields_check_names(&fields, names) : STATUS_OK;
    for (size_t i = 0; names[i] != NULL && object != NULL && status == STATUS_OK; i++) {
        status = fields_number(&fields, names[i], 0, 1, false, values[i]);
    }
    return status;
}

/* Those of a list that are there. */
struct named_quantity {
    const char *name;
    enum quantity kind;
    double *value;
};

static enum status read_quantities(const struct fields *fields, const struct named_quantity *list,
                                   size_t count)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = fields_quantity(fields, list[i].name, list[i].kind, false, list[i].value);
    }
    return status;
}

/* What cores are for. */
static enum status read_cores(const struct fields *fields, struct costs *costs)
{
    const struct named_quantity list[] = {
        {"input", QUANTITY_TIME, &costs->input_s},
        {"carriage-message", QUANTITY_TIME, &costs->carriage_message_s},
        {"carriage", QUANTITY_BANDWIDTH, &costs->carriage_bandwidth},
        {"slice", QUANTITY_TIME, &costs->slice_s},
        {"refill", QUANTITY_TIME, &costs->refill_s}};
    double threads = 1;
    enum status status = fields_number(fields, "threads", 1, 65536, false, &threads);
    if (status == STATUS_OK && floor(threads) != threads) {
        status = fields_refuse(fields, "threads", "has to be a whole number");
    }
    costs->threads = (uint32_t)threads;
    if (status == STATUS_OK) {
        status = read_quantities(fields, list, sizeof(list) / sizeof(list[0]));
    }
    if (status == STATUS_OK && costs->refill_s > 0 && costs->slice_s <= 0) {
        status = fields_refuse(fields, "refill", "needs a \"slice\", behind which it is due");
    }
    if (status == STATUS_OK) {
        status = fields_number(fields, "crowding", 1, 1000, false, &costs->crowding);
    }
    if (status == STATUS_OK) {
        status = fields_flag(fields, "messages-first", &costs->messages_first);
    }
    return status == STATUS_OK ? fields_number(fields, "turns", 1, 1000, false, &costs->turns)
                               : status;
}

/* One of its times, or what is assumed in its place. */
static enum status read_recovery_time(const struct fields *fields, const char *name,
                                      double assumed_s, double *ret_s, bool *ret_is_given)
{
    *ret_s = assumed_s;
    *ret_is_given = json_object_get(fields->object, name) != NULL;
    return *ret_is_given ? fields_quantity(fields, name, QUANTITY_TIME, true, ret_s) : STATUS_OK;
}

static enum status read_recovery(const char *file, json_t *object, struct recovery *recovery)
{
    static const char *const names[] = {"notice", "go-on", "join", "copy-every", NULL};
    const struct fields fields = {file, "recovery", object};
    enum status status = object != NULL ? fields_check_names(&fields, names) : STATUS_OK;
    if (status == STATUS_OK) {
        status = read_recovery_time(&fields, "notice", RECOVERY_NOTICE_S, &recovery->notice_s,
                                    &recovery->has_notice);
    }
    if (status == STATUS_OK) {
        status = read_recovery_time(&fields, "go-on", RECOVERY_GO_ON_S, &recovery->go_on_s,
                                    &recovery->has_go_on);
    }
    if (status == STATUS_OK) {
        status = read_recovery_time(&fields, "join", RECOVERY_JOIN_S, &recovery->join_s,
                                    &recovery->has_join);
    }
    return status == STATUS_OK
               ? read_recovery_time(&fields, "copy-every", RECOVERY_COPY_EVERY_S,
                                    &recovery->copy_every_s, &recovery->has_copy_every)
               : status;
}

/* Updates, and what is done with values and messages. */
static enum status read_exchange(const struct fields *fields, struct costs *costs)
{
    const struct named_quantity list[] = {
        {"server-optimizer", QUANTITY_TIME, &costs->server_optimizer_s},
        {"message-bandwidth", QUANTITY_BANDWIDTH, &costs->message_bandwidth},
        {"sum", QUANTITY_BANDWIDTH, &costs->sum_bandwidth},
        {"encode", QUANTITY_BANDWIDTH, &costs->encode_bandwidth},
        {"decode", QUANTITY_BANDWIDTH, &costs->decode_bandwidth}};
    enum status status =
        fields_quantity(fields, "optimizer", QUANTITY_TIME, true, &costs->optimizer_s);
    if (status == STATUS_OK) {
        status = fields_quantity(fields, "message", QUANTITY_TIME, true, &costs->message_s);
    }
    costs->has_server_optimizer = json_object_get(fields->object, "server-optimizer") != NULL;
    return status == STATUS_OK ? read_quantities(fields, list, sizeof(list) / sizeof(list[0]))
                               : status;
}

enum status costs_read_batch(const struct fields *fields, double *ret_batch)
{
    enum status status = fields_number(fields, "batch", 1, 1 << 24, true, ret_batch);
    return status == STATUS_OK && floor(*ret_batch) != *ret_batch
               ? fields_refuse(fields, "batch", "has to be a whole number")
               : status;
}

double costs_server_optimizer_s(const struct costs *costs)
{
    return costs->has_server_optimizer ? costs->server_optimizer_s : costs->optimizer_s;
}

double costs_compute_s(const struct costs *costs)
{
    double seconds = 0;
    for (uint32_t i = 0; i < costs->layer_count; i++) {
        seconds += costs->layers[i].forward_s + costs->layers[i].backward_s;
    }
    return seconds;
}

double costs_layers_deviation_s(const struct costs *costs)
{
    double squares = 0;
    for (uint32_t i = 0; i < costs->layer_count; i++) {
        double forward_s = spread_deviation_s(&costs->layers[i].forward_spread);
        double backward_s = spread_deviation_s(&costs->layers[i].backward_spread);
        squares += forward_s * forward_s + backward_s * backward_s;
    }
    return sqrt(squares);
}

double costs_layers_deviation_sum_s(const struct costs *costs)
{
    double sum_s = 0;
    for (uint32_t i = 0; i < costs->layer_count; i++) {
        sum_s += spread_deviation_s(&costs->layers[i].forward_spread) +
                 spread_deviation_s(&costs->layers[i].backward_spread);
    }
    return sum_s;
}

enum status costs_read_rate(const struct fields *fields, double batch, bool has_spread,
                            struct costs *costs)
{
    double rate = 0, own_s = costs_compute_s(costs), spread_s = spread_mean_s(&costs->spread);
    enum status status = fields_number(fields, "images-per-s", 1e-6, RATE_MAX, false, &rate);
    if (status != STATUS_OK || rate == 0) {
        return status;
    }
    if (own_s <= 0) {
        return fields_refuse(fields, "images-per-s",
                             "cannot be shared out among layers that take no time");
    }
    double rest_s = batch / rate - costs->optimizer_s - (has_spread ? spread_s : 0);
    if (rest_s <= 0) {
        return fields_refuse(fields, "images-per-s",
                             "leaves a step no time beside optimizer and spread");
    }
    double factor = rest_s / (own_s + (has_spread ? 0 : spread_s));
    for (uint32_t i = 0; i < costs->layer_count; i++) {
        cost_layer_scale(&costs->layers[i], factor, factor);
    }
    return STATUS_OK;
}

static const char *const all_names[] = {"comment",
                                        "measured",
                                        "batch",
                                        "images-per-s",
                                        "batches",
                                        "layers",
                                        "optimizer",
                                        "server-optimizer",
                                        "message",
                                        "sum",
                                        "encode",
                                        "decode",
                                        "spread",
                                        "threads",
                                        "input",
                                        "carriage",
                                        "crowding",
                                        "turns",
                                        "slice",
                                        "refill",
                                        "recovery",
                                        "launch",
                                        "errors",
                                        "conditions",
                                        "carriage-message",
                                        "messages-first",
                                        "message-bandwidth",
                                        "whole-layers",
                                        NULL};

static enum status read_all(const struct fields *fields, struct costs *costs)
{
    double batch = 0;
    enum status status = fields_check_names(fields, all_names);
    if (status == STATUS_OK) {
        status = fields_check_notes(fields, "measured");
    }
    if (status == STATUS_OK) {
        status = conditions_read(fields, &costs->conditions);
    }
    if (status == STATUS_OK) {
        status = costs_read_batch(fields, &batch);
    }
    costs->batch = (uint32_t)batch;
    costs->is_measured = json_object_get(fields->object, "measured") != NULL;
    if (status == STATUS_OK) {
        status = fields_flag(fields, "whole-layers", &costs->whole_layers);
    }
    if (status == STATUS_OK) {
        status = read_layers(fields, costs);
    }
    if (status == STATUS_OK) {
        status = read_exchange(fields, costs);
    }
    if (status == STATUS_OK) {
        status = read_cores(fields, costs);
    }
    if (status == STATUS_OK) {
        status = spread_read(fields->file, "spread", json_object_get(fields->object, "spread"),
                             &costs->spread);
    }
    if (status == STATUS_OK) {
        status = costs_read_rate(fields, batch, true, costs);
    }
    if (status == STATUS_OK) {
        status =
            read_errors(fields->file, json_object_get(fields->object, "errors"), &costs->errors);
    }
    if (status == STATUS_OK) {
        status = launch_costs_read(fields->file, json_object_get(fields->object, "launch"),
                                   &costs->launch);
    }
    return status == STATUS_OK
               ? read_recovery(fields->file, json_object_get(fields->object, "recovery"),
                               &costs->recovery)
               : status;
}

enum status costs_take(json_t *object, const char *file, struct costs *ret_costs)
{
    memset(ret_costs, 0, sizeof(*ret_costs));
    return read_all(&(struct fields){file, "", object}, ret_costs);
}

bool costs_are_extrapolated(const struct costs *costs)
{
    return costs->line_from > 0 &&
           (costs->batch < costs->line_from || costs->batch > costs->line_to);
}

enum status costs_make_layout(const struct costs *costs, uint64_t bucket_bytes,
                              struct layout *ret_layout)
{
    struct span tensors[COSTS_LAYERS_MAX];
    unsigned char may_close[COSTS_LAYERS_MAX];
    uint32_t count = 0;
    uint64_t offset = 0;
    for (uint32_t i = 0; i < costs->layer_count; i++) {
        if (costs->layers[i].parameters > 0) {
            tensors[count] = (struct span){offset, costs->layers[i].parameters};
            may_close[count++] = 1;
            offset += costs->layers[i].parameters;
        }
    }
    enum status status = layout_make_buckets(tensors, may_close, count, bucket_bytes, ret_layout);
    if (status != STATUS_OK) {
        log_error(
            "the layers cannot be cut into buckets of %llu bytes; choose a larger --bucket-mb",
            (unsigned long long)bucket_bytes);
        return STATUS_INVALID;
    }
    layout_split_buckets(ret_layout, bucket_bytes);
    return STATUS_OK;
}

/* Of a layer's times, what a bucket has. */
static double share_of_bucket(const struct costs *costs, struct span layer, struct span bucket)
{
    const struct span end = {layer.offset + layer.count - 1, 1};
    return costs->whole_layers ? (double)span_intersect(end, bucket).count
                               : (double)span_intersect(layer, bucket).count / (double)layer.count;
}

void costs_of_bucket(const struct costs *costs, struct span bucket, double *ret_forward_s,
                     double *ret_backward_s)
{
    double forward_s = 0, backward_s = 0, held_forward_s = 0, held_backward_s = 0, share = 0;
    uint64_t offset = 0;
    *ret_forward_s = *ret_backward_s = 0;
    for (uint32_t i = 0; i < costs->layer_count; i++) {
        const struct cost_layer *layer = &costs->layers[i];
        held_forward_s += layer->forward_s;
        held_backward_s += layer->backward_s;
        if (layer->parameters == 0) {
            continue;
        }
        const struct span span = {offset, layer->parameters};
        share = share_of_bucket(costs, span, bucket);
        forward_s += share * held_forward_s;
        backward_s += share * held_backward_s;
        held_forward_s = held_backward_s = 0;
        offset += layer->parameters;
    }
    // `share` is that of the last layer with parameters.
    *ret_forward_s = forward_s + share * held_forward_s;
    *ret_backward_s = backward_s + share * held_backward_s;
}
