/* Writes and reads live states as JSON. */
#include "common/live/live_json.h"

#include <jansson.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum field_kind { FIELD_TEXT, FIELD_BOOL, FIELD_U32, FIELD_U64, FIELD_REAL };

/* A field of a struct, and its key. */
struct field {
    const char *key;
    size_t offset, size;
    enum field_kind kind;
};

#define FIELD_OF(owner, member, field_kind)                                           \
    {                                                                                 \
#member, offsetof(struct owner, member), sizeof(((struct owner *)0)->member), \
            FIELD_##field_kind                                                        \
    }

static const struct field job_fields[] = {
    FIELD_OF(live_state, version, TEXT),
    FIELD_OF(live_state, mode, TEXT),
    FIELD_OF(live_state, model, TEXT),
    FIELD_OF(live_state, dataset, TEXT),
    FIELD_OF(live_state, device, TEXT),
    FIELD_OF(live_state, optimizer, TEXT),
    FIELD_OF(live_state, outcome, TEXT),
    FIELD_OF(live_state, reason, TEXT),
    FIELD_OF(live_state, all_reduce, TEXT),
    FIELD_OF(live_state, workers, U32),
    FIELD_OF(live_state, servers, U32),
    FIELD_OF(live_state, processes, U32),
    FIELD_OF(live_state, parameters, U64),
    FIELD_OF(live_state, global_batch, U64),
    FIELD_OF(live_state, step, U64),
    FIELD_OF(live_state, total_steps, U64),
    FIELD_OF(live_state, epoch, U64),
    FIELD_OF(live_state, seconds, REAL),
    FIELD_OF(live_state, loss, REAL),
    FIELD_OF(live_state, images_per_second, REAL),
    FIELD_OF(live_state, rate, REAL),
    FIELD_OF(live_state, accuracy, REAL),
    FIELD_OF(live_state, test_loss, REAL),
    FIELD_OF(live_state, has_accuracy, BOOL),
    FIELD_OF(live_state, slowest, U32),
    FIELD_OF(live_state, workers_lost, U32),
    FIELD_OF(live_state, restarts, U32),
    FIELD_OF(live_state, checkpoints, U64),
    FIELD_OF(live_state, checkpoint_step, U64),
    FIELD_OF(live_state, events_left_out, U64),
};

static const struct field rank_fields[] = {
    FIELD_OF(live_rank, step, U64),
    FIELD_OF(live_rank, loss, REAL),
    FIELD_OF(live_rank, images_per_second, REAL),
    FIELD_OF(live_rank, compute_ms, REAL),
    FIELD_OF(live_rank, exchange_wait_ms, REAL),
    FIELD_OF(live_rank, input_wait_ms, REAL),
    FIELD_OF(live_rank, staleness, REAL),
    FIELD_OF(live_rank, rate, REAL),
    FIELD_OF(live_rank, steps, U64),
    FIELD_OF(live_rank, images, U64),
    FIELD_OF(live_rank, bytes_sent, U64),
    FIELD_OF(live_rank, bytes_received, U64),
};

static const struct field event_fields[] = {
    FIELD_OF(live_event, seconds, REAL),
    FIELD_OF(live_event, step, U64),
    FIELD_OF(live_event, kind, TEXT),
    FIELD_OF(live_event, text, TEXT),
};

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const char *const shapes[] = {"alone", "ring", "star"}; // by enum live_shape

/* JSON has no text for what is not finite: null. */
static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *field_json(const struct field *field, const void *owner)
{
    const char *at = (const char *)owner + field->offset;
    uint32_t narrow;
    uint64_t whole;
    double value;
    bool flag;
    switch (field->kind) {
    case FIELD_TEXT: {
        json_t *text = json_string(at);
        return text != NULL ? text : json_string("?"); // it was cut within a character
    }
    case FIELD_BOOL:
        memcpy(&flag, at, sizeof(flag));
        return json_boolean(flag);
    case FIELD_U32:
        memcpy(&narrow, at, sizeof(narrow));
        return json_integer(narrow);
    case FIELD_U64:
        memcpy(&whole, at, sizeof(whole));
        return json_integer((json_int_t)(whole <= INT64_MAX ? whole : INT64_MAX));
    case FIELD_REAL:
        memcpy(&value, at, sizeof(value));
        return real(value);
    }
    return NULL;
}

static json_t *fields_json(const struct field *fields, size_t count, const void *owner)
{
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++) {
        json_object_set_new(object, fields[i].key, field_json(&fields[i], owner));
    }
    return object;
}

/* Lists of numbers, one for each column, which are shorter than a list of points. */
static json_t *curve_json(const struct live_curve *curve)
{
    json_t *columns[] = {json_array(), json_array(), json_array(), json_array()};
    for (uint32_t i = 0; i < curve->count; i++) {
        const struct live_point *point = &curve->points[i];
        json_array_append_new(columns[0], json_integer((json_int_t)point->step));
        json_array_append_new(columns[1], real(point->seconds));
        json_array_append_new(columns[2], real(point->value[0]));
        json_array_append_new(columns[3], real(point->value[1]));
    }
    return json_pack("[o, o, o, o]", columns[0], columns[1], columns[2], columns[3]);
}

static json_t *staleness_json(const struct live_histogram *histogram)
{
    json_t *limits = json_array(), *counts = json_array();
    for (uint32_t i = 0; i < LIVE_BINS; i++) {
        json_array_append_new(counts, json_integer((json_int_t)histogram->counts[i]));
        if (i < LIVE_BINS - 1) {
            json_array_append_new(limits, json_integer(live_bin_limits[i]));
        }
    }
    return json_pack("{s:o, s:o, s:o}", "limits", limits, "counts", counts, "sum",
                     real(histogram->sum));
}

char *live_json_text(const struct live_state *state)
{
    json_t *tree = fields_json(job_fields, COUNT(job_fields), state);
    json_t *ranks = json_array(), *events = json_array();
    for (uint32_t i = 0; i < state->workers && i < LIVE_JSON_RANKS_MAX; i++) {
        json_array_append_new(ranks,
                              fields_json(rank_fields, COUNT(rank_fields), &state->ranks[i]));
    }
    for (uint32_t i = 0; i < state->event_count; i++) {
        json_array_append_new(events,
                              fields_json(event_fields, COUNT(event_fields), &state->events[i]));
    }
    json_object_set_new(tree, "shape", json_string(shapes[state->shape]));
    json_object_set_new(tree, "eta", real(live_eta(state)));
    json_object_set_new(tree, "ranks", ranks);
    json_object_set_new(tree, "events", events);
    json_object_set_new(tree, "progress", curve_json(&state->progress));
    json_object_set_new(tree, "evaluations", curve_json(&state->evaluations));
    json_object_set_new(tree, "staleness", staleness_json(&state->staleness));
    char *text = json_dumps(tree, JSON_COMPACT | JSON_REAL_PRECISION(7));
    json_decref(tree);
    return text;
}

/* False for a value of another type, or out of range. */
static bool read_field(const json_t *tree, const struct field *field, void *owner)
{
    const json_t *value = json_object_get(tree, field->key);
    char *at = (char *)owner + field->offset;
    json_int_t whole = json_integer_value(value);
    double number = json_is_null(value) ? (double)NAN : json_number_value(value);
    bool flag = json_is_true(value);
    uint32_t narrow = (uint32_t)whole;
    uint64_t wide = (uint64_t)whole;
    switch (field->kind) {
    case FIELD_TEXT:
        if (!json_is_string(value) || json_string_length(value) >= field->size) {
            return false;
        }
        memcpy(at, json_string_value(value), json_string_length(value) + 1); // and its terminator
        return true;
    case FIELD_BOOL:
        memcpy(at, &flag, sizeof(flag));
        return json_is_boolean(value);
    case FIELD_U32:
        memcpy(at, &narrow, sizeof(narrow));
        return json_is_integer(value) && whole >= 0 && whole <= UINT32_MAX;
    case FIELD_U64:
        memcpy(at, &wide, sizeof(wide));
        return json_is_integer(value) && whole >= 0;
    case FIELD_REAL:
        memcpy(at, &number, sizeof(number));
        return json_is_number(value) || json_is_null(value);
    }
    return false;
}

static bool read_fields(const json_t *tree, const struct field *fields, size_t count, void *owner)
{
    for (size_t i = 0; i < count; i++) {
        if (!read_field(tree, &fields[i], owner)) {
            return false;
        }
    }
    return true;
}

static double number_at(const json_t *list, size_t index)
{
    const json_t *value = json_array_get(list, index);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static bool read_curve(const json_t *tree, struct live_curve *curve)
{
    const json_t *steps = json_array_get(tree, 0);
    size_t count = json_array_size(steps);
    if (json_array_size(tree) != 4 || count > LIVE_POINTS_MAX) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *step = json_array_get(steps, i);
        if (!json_is_integer(step) || json_integer_value(step) < 0) {
            return false;
        }
        curve->points[i] = (struct live_point){
            .step = (uint64_t)json_integer_value(step),
            .seconds = number_at(json_array_get(tree, 1), i),
            .value = {number_at(json_array_get(tree, 2), i), number_at(json_array_get(tree, 3), i)},
        };
    }
    curve->count = (uint32_t)count;
    return true;
}

static bool read_staleness(const json_t *tree, struct live_histogram *histogram)
{
    const json_t *counts = json_object_get(tree, "counts");
    if (json_array_size(counts) != LIVE_BINS) {
        return false;
    }
    for (size_t i = 0; i < LIVE_BINS; i++) {
        json_int_t count = json_integer_value(json_array_get(counts, i));
        if (count < 0) {
            return false;
        }
        histogram->counts[i] = (uint64_t)count;
        histogram->total += (uint64_t)count;
    }
    histogram->sum = json_number_value(json_object_get(tree, "sum"));
    return true;
}

static bool read_shape(const json_t *tree, enum live_shape *ret_shape)
{
    const char *shape = json_string_value(json_object_get(tree, "shape"));
    for (size_t i = 0; shape != NULL && i < COUNT(shapes); i++) {
        if (strcmp(shape, shapes[i]) == 0) {
            *ret_shape = (enum live_shape)i;
            return true;
        }
    }
    return false;
}

/* What lies in lists. The ranks that the text leaves out stay zero. */
static bool read_lists(const json_t *tree, struct live_state *state)
{
    const json_t *ranks = json_object_get(tree, "ranks"), *events = json_object_get(tree, "events");
    if (json_array_size(ranks) > state->workers || json_array_size(events) > LIVE_EVENTS_MAX ||
        state->slowest >= state->workers) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(ranks); i++) {
        if (!read_fields(json_array_get(ranks, i), rank_fields, COUNT(rank_fields),
                         &state->ranks[i])) {
            return false;
        }
    }
    state->event_count = (uint32_t)json_array_size(events);
    for (size_t i = 0; i < state->event_count; i++) {
        if (!read_fields(json_array_get(events, i), event_fields, COUNT(event_fields),
                         &state->events[i])) {
            return false;
        }
    }
    return read_curve(json_object_get(tree, "progress"), &state->progress) &&
           read_curve(json_object_get(tree, "evaluations"), &state->evaluations) &&
           read_staleness(json_object_get(tree, "staleness"), &state->staleness);
}

enum status live_json_read(const char *text, size_t size, struct live_state *ret_state)
{
    json_t *tree = size <= LIVE_JSON_BYTES_MAX ? json_loadb(text, size, 0, NULL) : NULL;
    json_int_t workers = json_integer_value(json_object_get(tree, "workers"));
    struct live_state *state = malloc(sizeof(*state));
    enum status status = STATUS_MALFORMED;
    if (workers <= 0 || workers > LIVE_RANKS_MAX) {
        goto end;
    }
    status = STATUS_NO_MEMORY;
    if (state == NULL || live_state_init(state, (uint32_t)workers) != STATUS_OK) {
        goto end;
    }
    bool is_good = read_fields(tree, job_fields, COUNT(job_fields), state) &&
                   read_shape(tree, &state->shape) && read_lists(tree, state);
    if (is_good) {
        *ret_state = *state;
    } else {
        live_state_finish(state);
    }
    status = is_good ? STATUS_OK : STATUS_MALFORMED;
end:
    free(state);
    json_decref(tree);
    return status;
}
