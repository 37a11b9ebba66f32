/* Reads batches, and draws lines through them. */
#include "deploy/predict/basis/cost_batches.h"

#include "common/base/log.h"
#include "deploy/predict/basis/fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ==========================================================================================
 * Reading
 * ========================================================================================== */

static enum status read_layer(const char *file, const char *place, json_t *object,
                              struct cost_layer *layer)
{
    static const char *const names[] = {"name", "forward", "backward", "spread", NULL};
    const struct fields fields = {file, place, object};
    enum status status = fields_check_names(&fields, names);
    return status == STATUS_OK ? costs_read_layer_times(&fields, layer) : status;
}

static enum status read_layers(const struct fields *fields, const json_t *list, struct costs *costs)
{
    enum status status = STATUS_OK;
    if (json_array_size(list) != costs->layer_count) {
        char why[96];
        snprintf(why, sizeof(why), "has %zu entries, and layers of the file %u; name each of them",
                 json_array_size(list), costs->layer_count);
        return fields_refuse(fields, "layers", why);
    }
    for (uint32_t i = 0; i < costs->layer_count && status == STATUS_OK; i++) {
        char place[64];
        snprintf(place, sizeof(place), "%s.layers[%u]", fields->place, i);
        status = read_layer(fields->file, place, json_array_get(list, i), &costs->layers[i]);
    }
    return status == STATUS_OK ? costs_check_layer_spreads(fields, costs) : status;
}

/* Reads `forward` and `backward` of all layers together, which are shared out as those of the file
 * are. */
static enum status read_sums(const struct fields *fields, struct costs *costs)
{
    double forward_s = 0, backward_s = 0, own_forward_s = 0, own_backward_s = 0;
    enum status status = fields_quantity(fields, "forward", QUANTITY_TIME, true, &forward_s);
    if (status == STATUS_OK) {
        status = fields_quantity(fields, "backward", QUANTITY_TIME, true, &backward_s);
    }
    for (uint32_t i = 0; i < costs->layer_count; i++) {
        own_forward_s += costs->layers[i].forward_s;
        own_backward_s += costs->layers[i].backward_s;
    }
    bool is_shared =
        (own_forward_s > 0 || forward_s == 0) && (own_backward_s > 0 || backward_s == 0);
    if (status == STATUS_OK && !is_shared) {
        return fields_refuse(fields, own_forward_s > 0 ? "backward" : "forward",
                             "cannot be shared out among layers that take no time; give layers");
    }
    for (uint32_t i = 0; i < costs->layer_count && status == STATUS_OK; i++) {
        cost_layer_scale(&costs->layers[i], own_forward_s > 0 ? forward_s / own_forward_s : 0,
                         own_backward_s > 0 ? backward_s / own_backward_s : 0);
    }
    return status;
}

static enum status read_times(const struct fields *fields, double batch, struct costs *costs)
{
    const json_t *layers = NULL;
    bool has_rate = json_object_get(fields->object, "images-per-s") != NULL;
    bool has_sums = json_object_get(fields->object, "forward") != NULL ||
                    json_object_get(fields->object, "backward") != NULL;
    enum status status = fields_list(fields, "layers", false, &layers);
    if (status == STATUS_OK && has_rate && (has_sums || layers != NULL)) {
        return fields_refuse(fields, "images-per-s",
                             "excludes forward, backward and layers, for which it stands");
    }
    if (status == STATUS_OK && has_rate) {
        return costs_read_rate(fields, batch, json_object_get(fields->object, "spread") != NULL,
                               costs);
    }
    if (status != STATUS_OK || layers == NULL) {
        return status == STATUS_OK ? read_sums(fields, costs) : status;
    }
    if (has_sums) {
        return fields_refuse(fields, "layers", "and forward and backward exclude each other");
    }
    return read_layers(fields, layers, costs);
}

/* Reads an entry. `costs` has the costs of the file's own batch before. */
static enum status read_batch(const char *file, json_t *object, size_t index, struct costs *costs)
{
    static const char *const names[] = {"batch", "images-per-s", "layers",  "forward", "backward",
                                        "input", "spread",       "comment", NULL};
    char place[32], spread[48];
    snprintf(place, sizeof(place), "batches[%zu]", index);
    snprintf(spread, sizeof(spread), "%s.spread", place);
    const struct fields fields = {file, place, object};
    json_t *own = json_object_get(object, "spread");
    double batch = 0, before_s = costs_compute_s(costs);
    enum status status = fields_check_names(&fields, names);
    if (status == STATUS_OK) {
        status = costs_read_batch(&fields, &batch);
    }
    if (own != NULL) {
        costs->spread = (struct spread){.kind = SPREAD_NONE};
    }
    if (status == STATUS_OK) {
        status = spread_read(file, spread, own, &costs->spread);
    }
    if (status == STATUS_OK) {
        status = read_times(&fields, batch, costs);
    }
    costs->input_s *= batch / costs->batch;
    if (own == NULL && before_s > 0) {
        spread_scale(&costs->spread, costs_compute_s(costs) / before_s);
    }
    costs->batch = (uint32_t)batch;
    return status == STATUS_OK
               ? fields_quantity(&fields, "input", QUANTITY_TIME, false, &costs->input_s)
               : status;
}

/* Puts the last of the list where it belongs. */
static enum status sort_in(const char *file, size_t index, struct cost_batches *batches)
{
    char place[32];
    const struct costs last = batches->list[batches->count - 1];
    size_t at = batches->count - 1;
    while (at > 0 && batches->list[at - 1].batch > last.batch) {
        at--;
    }
    if (at > 0 && batches->list[at - 1].batch == last.batch) {
        snprintf(place, sizeof(place), "batches[%zu]", index);
        return fields_refuse(&(struct fields){file, place, NULL}, "batch",
                             "is that of the file, or of another entry");
    }
    memmove(&batches->list[at + 1], &batches->list[at],
            (batches->count - 1 - at) * sizeof(*batches->list));
    batches->list[at] = last;
    batches->own += at <= batches->own;
    return STATUS_OK;
}

static enum status read_all(const char *file, json_t *object, struct cost_batches *batches)
{
    const struct fields fields = {file, "", object};
    const json_t *list = NULL;
    batches->list = calloc(COST_BATCHES_MAX, sizeof(*batches->list));
    if (batches->list == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = costs_take(object, file, &batches->list[batches->count++]);
    if (status == STATUS_OK) {
        status = fields_list(&fields, "batches", false, &list);
    }
    if (status == STATUS_OK && json_array_size(list) >= COST_BATCHES_MAX) {
        char why[48];
        snprintf(why, sizeof(why), "has too many entries: at most %d", COST_BATCHES_MAX - 1);
        return fields_refuse(&fields, "batches", why);
    }
    for (size_t i = 0; i < json_array_size(list) && status == STATUS_OK; i++) {
        struct costs *made = &batches->list[batches->count++];
        *made = batches->list[batches->own];
        status = read_batch(file, json_array_get(list, i), i, made);
        if (status == STATUS_OK) {
            status = sort_in(file, i, batches);
        }
    }
    return status;
}

enum status cost_batches_read(const char *file, struct cost_batches *ret_batches)
{
    json_t *object = NULL;
    struct cost_batches made = {NULL, 0, 0};
    enum status status = fields_load(file, &object);
    if (status == STATUS_OK) {
        status = read_all(file, object, &made);
    }
    json_decref(object);
    if (status != STATUS_OK) {
        cost_batches_finish(&made);
        return status;
    }
    *ret_batches = made;
    return STATUS_OK;
}

void cost_batches_finish(struct cost_batches *batches)
{
    free(batches->list);
    *batches = (struct cost_batches){NULL, 0, 0};
}

/* ==========================================================================================
 * Lines
 * ========================================================================================== */

/* Images: of the two batches that a line goes through, and of the one that is asked for. */
struct line {
    double from, to, at;
};

static double line_value(const struct line *line, double from, double to)
{
    double value = from + (to - from) * (line->at - line->from) / (line->to - line->from);
    return line->at < line->from ? fmax(value, from * line->at / line->from)
           : line->at > line->to ? fmax(value, to)
                                 : value;
}

/* The spread of the nearer batch, or of the other one if that has none, scaled to the mean that
 * lies on the line. Nearer is by ratio. */
static struct spread find_spread(const struct line *line, const struct spread *from,
                                 const struct spread *to)
{
    bool is_near_to = line->at * line->at > line->from * line->to;
    const struct spread *near = is_near_to ? to : from, *far = is_near_to ? from : to;
    struct spread made = spread_mean_s(near) > 0 ? *near : *far;
    double mean_s = spread_mean_s(&made);
    if (mean_s > 0) {
        spread_scale(&made, line_value(line, spread_mean_s(from), spread_mean_s(to)) / mean_s);
    }
    return made;
}

/* Puts all costs of a batch on the line through those of two. */
static void draw(const struct costs *from, const struct costs *to, uint32_t batch,
                 struct costs *made)
{
    const struct line line = {from->batch, to->batch, batch};
    for (uint32_t i = 0; i < made->layer_count; i++) {
        const struct cost_layer *a = &from->layers[i], *b = &to->layers[i];
        made->layers[i].forward_s = line_value(&line, a->forward_s, b->forward_s);
        made->layers[i].backward_s = line_value(&line, a->backward_s, b->backward_s);
        made->layers[i].forward_spread = find_spread(&line, &a->forward_spread, &b->forward_spread);
        made->layers[i].backward_spread =
            find_spread(&line, &a->backward_spread, &b->backward_spread);
    }
    made->input_s = line_value(&line, from->input_s, to->input_s);
    made->spread = find_spread(&line, &from->spread, &to->spread);
    made->batch = batch;
    made->line_from = from->batch;
    made->line_to = to->batch;
}

bool cost_batches_find(const struct cost_batches *batches, uint32_t batch, struct costs *ret_costs)
{
    const struct costs *list = batches->list;
    size_t above = 0;
    batch = batch > 0 ? batch : list[batches->own].batch;
    *ret_costs = list[batches->own];
    while (above < batches->count && list[above].batch < batch) {
        above++;
    }
    if (above < batches->count && list[above].batch == batch) {
        *ret_costs = list[above];
        return true;
    }
    if (batches->count < 2) {
        return false;
    }
    above = above == 0 ? 1 : above == batches->count ? above - 1 : above;
    draw(&list[above - 1], &list[above], batch, ret_costs);
    return true;
}

void cost_batches_warn(const char *file, const struct costs *costs)
{
    if (costs_are_extrapolated(costs)) {
        log_warn("%s has no batch as %s as %u: times are extrapolated from those of %u and %u "
                 "images",
                 file, costs->batch < costs->line_from ? "small" : "large", costs->batch,
                 costs->line_from, costs->line_to);
    }
}

enum status cost_batches_take(const char *file, uint32_t batch, struct costs *ret_costs)
{
    struct cost_batches batches = {NULL, 0, 0};
    enum status status = cost_batches_read(file, &batches);
    if (status == STATUS_OK && !cost_batches_find(&batches, batch, ret_costs)) {
        log_error("--batch %u is not that of %s, %u, and times of another batch are not known: "
                  "calibrate with --batches, or write some into the file's batches",
                  batch, file, ret_costs->batch);
        status = STATUS_INVALID;
    }
    cost_batches_finish(&batches);
    if (status == STATUS_OK) {
        cost_batches_warn(file, ret_costs);
    }
    return status;
}
