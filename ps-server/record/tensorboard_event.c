/* Packs events for TensorBoard. */
#include "ps-server/record/tensorboard_event.h"

#include "ps-server/record/lent_text.h"
#include "tensorboard.pb-c.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SESSION_START 1
#define DT_FLOAT      1
#define DT_STRING     7

static uint8_t *pack(const Tensorboard__Event *event, size_t *ret_size)
{
    size_t size = tensorboard__event__get_packed_size(event);
    uint8_t *bytes = malloc(size > 0 ? size : 1);
    if (bytes != NULL) {
        *ret_size = tensorboard__event__pack(event, bytes);
    }
    return bytes;
}

static uint8_t *pack_scalars(const struct tensorboard_event *of, Tensorboard__Event *event,
                             size_t *ret_size)
{
    Tensorboard__Summary summary = TENSORBOARD__SUMMARY__INIT;
    Tensorboard__Summary__Value values[TENSORBOARD_SCALARS_MAX];
    Tensorboard__Summary__Value *list[TENSORBOARD_SCALARS_MAX];
    assert(of->scalar_count <= TENSORBOARD_SCALARS_MAX);
    for (uint32_t i = 0; i < of->scalar_count; i++) {
        tensorboard__summary__value__init(&values[i]);
        values[i].tag = lent_text(of->scalars[i].tag);
        values[i].value_case = TENSORBOARD__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
        values[i].simple_value = (float)of->scalars[i].value;
        list[i] = &values[i];
    }
    summary.value = list;
    summary.n_value = of->scalar_count;
    event->what_case = TENSORBOARD__EVENT__WHAT_SUMMARY;
    event->summary = &summary;
    uint8_t *bytes = pack(event, ret_size);
    event->summary = NULL;
    return bytes;
}

/* One tensor of rank 1 for a plugin. */
struct plugin_value {
    const char *tag, *plugin;
    ProtobufCBinaryData content; // the plugin's own
    ProtobufCBinaryData *text;   // the only element; NULL: a tensor without elements
};

static uint8_t *pack_plugin_value(const struct plugin_value *of, Tensorboard__Event *event,
                                  size_t *ret_size)
{
    Tensorboard__TensorShapeProto__Dim dim = TENSORBOARD__TENSOR_SHAPE_PROTO__DIM__INIT;
    Tensorboard__TensorShapeProto__Dim *dims[] = {&dim};
    Tensorboard__TensorShapeProto shape = TENSORBOARD__TENSOR_SHAPE_PROTO__INIT;
    Tensorboard__TensorProto tensor = TENSORBOARD__TENSOR_PROTO__INIT;
    Tensorboard__SummaryMetadata__PluginData plugin;
    Tensorboard__SummaryMetadata metadata;
    Tensorboard__Summary__Value value;
    Tensorboard__Summary__Value *values[] = {&value};
    Tensorboard__Summary summary = TENSORBOARD__SUMMARY__INIT;
    tensorboard__summary_metadata__plugin_data__init(&plugin);
    tensorboard__summary_metadata__init(&metadata);
    tensorboard__summary__value__init(&value);
    dim.size = of->text != NULL ? 1 : 0;
    shape.dim = dims;
    shape.n_dim = 1;
    tensor.dtype = of->text != NULL ? DT_STRING : DT_FLOAT;
    tensor.tensor_shape = &shape;
    tensor.string_val = of->text;
    tensor.n_string_val = of->text != NULL ? 1 : 0;
    plugin.plugin_name = lent_text(of->plugin);
    plugin.content = of->content;
    metadata.plugin_data = &plugin;
    value.tag = lent_text(of->tag);
    value.value_case = TENSORBOARD__SUMMARY__VALUE__VALUE_TENSOR;
    value.tensor = &tensor;
    value.metadata = &metadata;
    summary.value = values;
    summary.n_value = 1;
    event->what_case = TENSORBOARD__EVENT__WHAT_SUMMARY;
    event->summary = &summary;
    uint8_t *bytes = pack(event, ret_size);
    event->summary = NULL;
    return bytes;
}

static uint8_t *pack_text(const struct tensorboard_event *of, Tensorboard__Event *event,
                          size_t *ret_size)
{
    ProtobufCBinaryData text = {.len = strlen(of->text),
                                .data = (uint8_t *)(void *)lent_text(of->text)};
    const struct plugin_value value = {.tag = of->text_tag, .plugin = "text", .text = &text};
    return pack_plugin_value(&value, event, ret_size);
}

/* All is in the content: the plugin looks at no element. */
static uint8_t *pack_hparams(const struct tensorboard_event *of, Tensorboard__Event *event,
                             size_t *ret_size)
{
    const void *bytes = of->hparams;
    const struct plugin_value value = {
        .tag = of->hparams_tag,
        .plugin = "hparams",
        .content = {.len = of->hparams_size, .data = (uint8_t *)(void *)lent_text(bytes)}};
    return pack_plugin_value(&value, event, ret_size);
}

uint8_t *tensorboard_event_pack(const struct tensorboard_event *of, size_t *ret_size)
{
    Tensorboard__Event event = TENSORBOARD__EVENT__INIT;
    event.wall_time = of->wall_time;
    event.step = (int64_t)of->step;
    if (of->version != NULL) {
        event.what_case = TENSORBOARD__EVENT__WHAT_FILE_VERSION;
        event.file_version = lent_text(of->version);
        return pack(&event, ret_size);
    }
    if (of->is_start) {
        Tensorboard__SessionLog log = TENSORBOARD__SESSION_LOG__INIT;
        log.status = SESSION_START;
        event.what_case = TENSORBOARD__EVENT__WHAT_SESSION_LOG;
        event.session_log = &log;
        return pack(&event, ret_size);
    }
    if (of->hparams != NULL) {
        return pack_hparams(of, &event, ret_size);
    }
    return of->text != NULL ? pack_text(of, &event, ret_size) : pack_scalars(of, &event, ret_size);
}
