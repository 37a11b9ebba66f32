/* Writes costs and network as JSON, with what was measured beside them. */
#include "deploy/calibrate/calibration_files.h"

#include "common/base/log.h"
#include "common/transport/send_buffer.h"
#include "deploy/predict/basis/fields.h"
#include "deploy/system/folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BYTES  81 // as folder_write has it
#define SWITCH_NAME "switch"

// What the kernel holds of a connection: Linux doubles what is asked for.
#define SEND_BUFFER_KIB (2 * SEND_BUFFER_START / 1024)

/* A path, as folder_write wants it. */
struct place {
    char folder[FOLDER_PATH_MAX], name[NAME_BYTES];
};

static enum status find_place(const char *path, struct place *ret_place)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    if (name[0] == '\0' || strlen(name) >= sizeof(ret_place->name)) {
        log_error("cannot write %s: its name has to have 1 to %zu characters", path,
                  sizeof(ret_place->name) - 1);
        return STATUS_INVALID;
    }
    snprintf(ret_place->name, sizeof(ret_place->name), "%s", name);
    snprintf(ret_place->folder, sizeof(ret_place->folder), "%.*s",
             slash == NULL   ? 1
             : slash == path ? 1
                             : (int)(slash - path),
             slash == NULL ? "." : path);
    return STATUS_OK;
}

enum status calibration_check_file(const char *path)
{
    struct place place;
    struct stat found;
    enum status status = find_place(path, &place);
    if (status != STATUS_OK) {
        return status;
    }
    if (stat(path, &found) == 0 && S_ISDIR(found.st_mode)) {
        log_error("cannot write %s: it is a folder; name a file", path);
        return STATUS_INVALID;
    }
    if (access(place.folder, W_OK | X_OK) != 0) {
        log_error("cannot write %s: the folder %s: %m", path, place.folder);
        return STATUS_IO;
    }
    return STATUS_OK;
}

static json_t *notes_json(const struct calibration_notes *notes)
{
    json_t *object = json_object();
    char text[sizeof(notes->list[0].text) + 16];
    for (size_t i = 0; i < notes->count; i++) {
        snprintf(text, sizeof(text), "%s%s", notes->list[i].is_assumed ? "assumed: " : "",
                 notes->list[i].text);
        json_object_set_new(object, notes->list[i].name, json_string(text));
    }
    return object;
}

static void set_quantity(json_t *object, const char *name, double value, enum quantity quantity)
{
    char text[QUANTITY_BYTES];
    quantity_write(value, quantity, text);
    json_object_set_new(object, name, json_string(text));
}

/* fit_spread makes these alone. */
static void set_spread(json_t *object, const char *name, const struct spread *spread)
{
    if (spread->kind == SPREAD_NONE) {
        return;
    }
    bool is_uniform = spread->kind == SPREAD_UNIFORM;
    json_t *own = json_pack("{s:s}", "distribution", is_uniform ? "uniform" : "exponential");
    if (is_uniform) {
        set_quantity(own, "least", spread->least_s, QUANTITY_TIME);
        set_quantity(own, "most", spread->most_s, QUANTITY_TIME);
    } else {
        set_quantity(own, "mean", spread->mean_s, QUANTITY_TIME);
    }
    json_object_set_new(object, name, own);
}

/* A layer of another batch that has none says so, as it would get that of the file's batch, in
 * proportion. */
static void set_layer_spread(json_t *object, const struct cost_layer *layer, bool is_other)
{
    json_t *own = json_object();
    set_spread(own, "forward", &layer->forward_spread);
    set_spread(own, "backward", &layer->backward_spread);
    if (is_other || json_object_size(own) > 0) {
        json_object_set(object, "spread", own);
    }
    json_decref(own);
}

/* Sizes do not depend on the batch, and are told once. */
static json_t *layers_json(const struct calibration *calibration, const struct costs *costs)
{
    json_t *layers = json_array();
    for (uint32_t i = 0; i < costs->layer_count; i++) {
        const struct cost_layer *layer = &costs->layers[i];
        json_t *object = json_pack("{s:s}", "name", calibration->names[i]);
        if (costs == &calibration->costs) {
            json_object_set_new(object, "parameters", json_integer((json_int_t)layer->parameters));
        }
        set_quantity(object, "forward", layer->forward_s, QUANTITY_TIME);
        set_quantity(object, "backward", layer->backward_s, QUANTITY_TIME);
        set_layer_spread(object, layer, costs != &calibration->costs);
        json_array_append_new(layers, object);
    }
    return layers;
}

/* Entries have `input` only where it is known. */
static void set_batches(json_t *object, const struct calibration *calibration)
{
    json_t *list = json_array();
    for (size_t i = 0; i < calibration->other_count; i++) {
        const struct costs *costs = &calibration->others[i];
        json_t *own = json_pack("{s:I, s:o}", "batch", (json_int_t)costs->batch, "layers",
                                layers_json(calibration, costs));
        if (costs->input_s > 0) {
            set_quantity(own, "input", costs->input_s, QUANTITY_TIME);
        }
        // An entry without a spread would get that of the file's batch, in proportion.
        const struct spread none = {.kind = SPREAD_EXPONENTIAL};
        set_spread(own, "spread", costs->spread.kind != SPREAD_NONE ? &costs->spread : &none);
        json_array_append_new(list, own);
    }
    if (calibration->other_count > 0) {
        json_object_set(object, "batches", list);
    }
    json_decref(list);
}

static void set_cores(json_t *object, const struct costs *costs)
{
    json_object_set_new(object, "threads", json_integer(costs->threads));
    set_quantity(object, "input", costs->input_s, QUANTITY_TIME);
    set_quantity(object, "carriage-message", costs->carriage_message_s, QUANTITY_TIME);
    if (costs->carriage_bandwidth > 0) {
        set_quantity(object, "carriage", costs->carriage_bandwidth, QUANTITY_BANDWIDTH);
    }
    if (costs->messages_first) {
        json_object_set_new(object, "messages-first", json_true());
    }
    if (costs->slice_s > 0) {
        set_quantity(object, "slice", costs->slice_s, QUANTITY_TIME);
    }
    if (costs->refill_s > 0) {
        set_quantity(object, "refill", costs->refill_s, QUANTITY_TIME);
    }
    if (costs->crowding > 0) {
        json_object_set_new(object, "crowding", json_real(costs->crowding));
    }
    if (costs->turns > 0) {
        json_object_set_new(object, "turns", json_real(costs->turns));
    }
}

static void set_launch(json_t *object, const struct launch_costs *launch)
{
    if (launch->is_given) {
        json_t *own = json_object();
        set_quantity(own, "agents", launch->agents_s, QUANTITY_TIME);
        set_quantity(own, "job", launch->job_s, QUANTITY_TIME);
        set_quantity(own, "process", launch->process_s, QUANTITY_TIME);
        set_quantity(own, "join", launch->join_s, QUANTITY_TIME);
        json_object_set_new(object, "launch", own);
    }
}

/* Those that are known. */
static void set_errors(json_t *object, const struct cost_errors *errors)
{
    const struct {
        const char *name;
        double value;
    } list[] = {
        {"compute", errors->compute}, {"message", errors->message}, {"carriage", errors->carriage}};
    json_t *own = json_object();
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        if (list[i].value > 0) {
            json_object_set_new(own, list[i].name, json_real(list[i].value));
        }
    }
    if (json_object_size(own) > 0) {
        json_object_set(object, "errors", own);
    }
    json_decref(own);
}

static void set_conditions(json_t *object, const struct conditions *conditions)
{
    json_t *own = conditions_json(conditions);
    if (own != NULL) {
        json_object_set_new(object, "conditions", own);
    }
}

static json_t *costs_json(const struct calibration *calibration)
{
    const struct costs *costs = &calibration->costs;
    json_t *object =
        json_pack("{s:s, s:o, s:I, s:o}", "comment",
                  "Measured by ringside calibrate; `measured` says what each value comes from.",
                  "measured", notes_json(&calibration->cost_notes), "batch",
                  (json_int_t)costs->batch, "layers", layers_json(calibration, costs));
    set_batches(object, calibration);
    if (costs->whole_layers) {
        json_object_set_new(object, "whole-layers", json_true());
    }
    set_quantity(object, "optimizer", costs->optimizer_s, QUANTITY_TIME);
    set_quantity(object, "message", costs->message_s, QUANTITY_TIME);
    if (costs->message_bandwidth > 0) {
        set_quantity(object, "message-bandwidth", costs->message_bandwidth, QUANTITY_BANDWIDTH);
    }
    if (costs->sum_bandwidth > 0) {
        set_quantity(object, "sum", costs->sum_bandwidth, QUANTITY_BANDWIDTH);
    }
    if (costs->encode_bandwidth > 0) {
        set_quantity(object, "encode", costs->encode_bandwidth, QUANTITY_BANDWIDTH);
    }
    if (costs->decode_bandwidth > 0) {
        set_quantity(object, "decode", costs->decode_bandwidth, QUANTITY_BANDWIDTH);
    }
    set_spread(object, "spread", &costs->spread);
    set_cores(object, costs);
    set_launch(object, &costs->launch);
    set_errors(object, &costs->errors);
    set_conditions(object, &calibration->conditions);
    return object;
}

/* Servers have places where some run without workers beside them; otherwise predictions place them
 * beside workers by themselves. */
static bool has_server_hosts(const struct calibration_run *run)
{
    for (uint32_t i = 0; i < run->host_count; i++) {
        if (run->hosts[i].servers > 0 && run->hosts[i].workers == 0) {
            return true;
        }
    }
    return false;
}

static json_t *hosts_json(const struct calibration *calibration)
{
    const struct calibrated_links *links = &calibration->links;
    const struct calibration_run *run = calibration->widest;
    bool has_servers = has_server_hosts(run);
    json_t *hosts = json_array();
    for (uint32_t i = 0; i < run->host_count; i++) {
        json_t *object = json_pack("{s:s, s:s, s:I}", "name", run->hosts[i].name, "switch",
                                   SWITCH_NAME, "workers", (json_int_t)run->hosts[i].workers);
        if (run->hosts[i].cores > 0) {
            json_object_set_new(object, "cores", json_integer(run->hosts[i].cores));
        }
        if (run->hosts[i].cores > 0 && run->host_count > 1 &&
            calibration_run_has_one_machine(run)) {
            json_object_set_new(object, "machine", json_string(run->hosts[0].name));
        }
        if (has_servers) {
            json_object_set_new(object, "servers", json_integer(run->hosts[i].servers));
        }
        set_quantity(object, "nic", links->nic, QUANTITY_BANDWIDTH);
        set_quantity(object, "latency", links->latency_s, QUANTITY_TIME);
        if (links->burst_kib > 0) {
            json_object_set_new(object, "burst-kib", json_real(links->burst_kib));
        }
        if (links->has_memory && links->memory > 0) {
            set_quantity(object, "memory", links->memory, QUANTITY_BANDWIDTH);
        }
        if (links->has_memory) {
            set_quantity(object, "memory-latency", links->memory_latency_s, QUANTITY_TIME);
        }
        json_array_append_new(hosts, object);
    }
    return hosts;
}

json_t *calibration_network_json(const struct calibration *calibration)
{
    struct conditions conditions = calibration->conditions;
    conditions.model[0] = '\0'; // a network is of no model
    json_t *object =
        json_pack("{s:s, s:o, s:[{s:s}], s:o}", "comment",
                  "Measured by ringside calibrate; `measured` says what each value comes from.",
                  "measured", notes_json(&calibration->network_notes), "switches", "name",
                  SWITCH_NAME, "hosts", hosts_json(calibration));
    if (object != NULL && strcmp(calibration->widest->transport, "tcp") == 0) {
        json_object_set_new(object, "send-buffer-kib", json_integer(SEND_BUFFER_KIB));
        if (network_pacing_is_any(&calibration->links.pacing)) {
            json_object_set_new(object, "paced", network_pacing_json(&calibration->links.pacing));
        }
    }
    set_conditions(object, &conditions);
    return object;
}

static void write_json(FILE *file, const void *context)
{
    fprintf(file, "%s\n", (const char *)context);
}

/* Takes the object. A text that is half there for lack of memory is no JSON, so NULL. */
static enum status write_object(json_t *object, const char *path)
{
    struct place place;
    char *text = object != NULL ? json_dumps(object, JSON_INDENT(2)) : NULL;
    json_decref(object);
    enum status status = text != NULL ? find_place(path, &place) : STATUS_NO_MEMORY;
    if (status == STATUS_OK) {
        status = folder_write(place.folder, place.name, write_json, text);
    }
    free(text);
    return status;
}

enum status calibration_write_costs(const struct calibration *calibration, const char *path)
{
    return write_object(costs_json(calibration), path);
}

enum status calibration_write_network(const struct calibration *calibration, const char *path)
{
    return write_object(calibration_network_json(calibration), path);
}

static void print_notes(FILE *stream, const struct calibration_notes *notes)
{
    for (size_t i = 0; i < notes->count; i++) {
        const struct calibration_note *note = &notes->list[i];
        fprintf(stream, "  %-16s %s%s\n", note->name, note->is_assumed ? "ASSUMED: " : "",
                note->text);
    }
}

void calibration_print(FILE *stream, const struct calibration *calibration, const char *costs,
                       const char *network)
{
    fprintf(stream, "%s: %u images a step\n", costs, calibration->costs.batch);
    print_notes(stream, &calibration->cost_notes);
    if (network != NULL) {
        fprintf(stream, "%s: %u %s, with the places of %s\n", network,
                calibration->widest->host_count,
                calibration->widest->host_count == 1 ? "host" : "hosts", calibration->widest->name);
        print_notes(stream, &calibration->network_notes);
    }
}
