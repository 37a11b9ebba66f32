/* Reads costs, and shares them out among buckets. */
#include "deploy/predict/basis/costs.h"

#include "common/base/log.h"
#include "common/base/random.h"
#include "deploy/predict/basis/fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define RATE_MAX 1e12 // images per second

static enum status read_layer(const char *file, json_t *object, size_t index,
                              struct cost_layer *layer)
{
    static const char *const names[] = {"name", "parameters", "forward", "backward", NULL};
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
    if (status == STATUS_OK) {
        status = fields_quantity(&fields, "forward", QUANTITY_TIME, true, &layer->forward_s);
    }
    layer->parameters = (uint64_t)parameters;
    return status == STATUS_OK
               ? fields_quantity(&fields, "backward", QUANTITY_TIME, true, &layer->backward_s)
               : status;
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
    return status == STATUS_OK && parameters == 0
               ? fields_refuse(fields, "layers", "have no parameters")
               : status;
}

static enum status read_distribution(const struct fields *fields, const char *distribution,
                                     struct spread *spread)
{
    enum status status = STATUS_OK;
    if (strcmp(distribution, "exponential") == 0) {
        static const char *const names[] = {"distribution", "mean", NULL};
        spread->kind = SPREAD_EXPONENTIAL;
        status = fields_check_names(fields, names);
        return status == STATUS_OK
                   ? fields_quantity(fields, "mean", QUANTITY_TIME, true, &spread->mean_s)
                   : status;
    }
    bool is_uniform = strcmp(distribution, "uniform") == 0;
    if (!is_uniform && strcmp(distribution, "pareto") != 0) {
        return fields_refuse(fields, "distribution", "has to be exponential, uniform or pareto");
    }
    const char *const names[] = {"distribution", "least", is_uniform ? "most" : "shape", NULL};
    spread->kind = is_uniform ? SPREAD_UNIFORM : SPREAD_PARETO;
    status = fields_check_names(fields, names);
    if (status == STATUS_OK) {
        status = fields_quantity(fields, "least", QUANTITY_TIME, true, &spread->least_s);
    }
    if (status == STATUS_OK && !is_uniform) {
        return fields_number(fields, "shape", 1.01, 1000, true, &spread->shape);
    }
    if (status == STATUS_OK) {
        status = fields_quantity(fields, "most", QUANTITY_TIME, true, &spread->most_s);
    }
    return status == STATUS_OK && spread->most_s < spread->least_s
               ? fields_refuse(fields, "most", "is less than least")
               : status;
}

enum status costs_read_spread(const char *file, const char *place, json_t *object,
                              struct spread *spread)
{
    if (object == NULL) {
        return STATUS_OK;
    }
    const struct fields fields = {file, place, object};
    const char *distribution = NULL;
    enum status status = fields_text(&fields, "distribution", true, &distribution);
    return status == STATUS_OK ? read_distribution(&fields, distribution, spread) : status;
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

double spread_mean_s(const struct spread *spread)
{
    switch (spread->kind) {
    case SPREAD_NONE:
        return 0;
    case SPREAD_EXPONENTIAL:
        return spread->mean_s;
    case SPREAD_UNIFORM:
        return (spread->least_s + spread->most_s) / 2;
    case SPREAD_PARETO:
        return spread->least_s * spread->shape / (spread->shape - 1);
    }
    return 0;
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
        costs->layers[i].forward_s *= factor;
        costs->layers[i].backward_s *= factor;
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
        status = costs_read_spread(fields->file, "spread",
                                   json_object_get(fields->object, "spread"), &costs->spread);
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

void spread_scale(struct spread *spread, double factor)
{
    spread->mean_s *= factor;
    spread->least_s *= factor;
    spread->most_s *= factor;
}

double spread_draw(const struct spread *spread, uint64_t seed, uint32_t rank, uint64_t step)
{
    // In (0, 1], so that logarithm and power are finite.
    double unit = (double)((random_key(seed, RANDOM_PREDICT, rank, step) >> 11) + 1) * 0x1p-53;
    switch (spread->kind) {
    case SPREAD_NONE:
        return 0;
    case SPREAD_EXPONENTIAL:
        return -log(unit) * spread->mean_s;
    case SPREAD_UNIFORM:
        return spread->least_s + unit * (spread->most_s - spread->least_s);
    case SPREAD_PARETO:
        return spread->least_s * pow(unit, -1 / spread->shape);
    }
    return 0;
}
