/* Packs packets of a Perfetto trace, and checks and unpacks read ones. */
#include "common/trace/trace_packet.h"

#include "common/base/bump.h"
#include "perfetto_trace.pb-c.h"

#include <protobuf-c/protobuf-c.h>

#include <string.h>

#define PACKET_TAG         0x0A // field 1 of Trace, with a length
#define CLOCK_ID_MONOTONIC 3
#define LENGTH_BYTES_MAX   5

/* protobuf-c does not write through the pointer. */
static char *text_of(const char *text)
{
    union {
        const char *from;
        char *to;
    } text_union = {.from = text};
    return text_union.to;
}

/* All that a packed packet points to. */
struct packed {
    Perfetto__TracePacket packet;
    Perfetto__TrackDescriptor track;
    Perfetto__ProcessDescriptor process;
    Perfetto__ThreadDescriptor thread;
    Perfetto__CounterDescriptor counter;
    Perfetto__TrackEvent event;
    Perfetto__DebugAnnotation notes[TRACE_NOTES_MAX];
    Perfetto__DebugAnnotation *note_list[TRACE_NOTES_MAX];
    char *category;
    uint64_t flow;
};

static void pack_track(const struct trace_packet *from, struct packed *to)
{
    perfetto__track_descriptor__init(&to->track);
    to->packet.track_descriptor = &to->track;
    to->track.has_uuid = true;
    to->track.uuid = from->track;
    to->track.has_parent_uuid = from->parent != 0;
    to->track.parent_uuid = from->parent;
    to->track.name = text_of(from->name);
    if (from->type == TRACE_PACKET_PROCESS) {
        perfetto__process_descriptor__init(&to->process);
        to->process.has_pid = true;
        to->process.pid = from->pid;
        to->process.process_name = text_of(from->name);
        to->track.process = &to->process;
    } else if (from->type == TRACE_PACKET_THREAD) {
        perfetto__thread_descriptor__init(&to->thread);
        to->thread.has_pid = to->thread.has_tid = true;
        to->thread.pid = from->pid;
        to->thread.tid = from->tid;
        to->thread.thread_name = text_of(from->name);
        to->track.thread = &to->thread;
    } else {
        perfetto__counter_descriptor__init(&to->counter);
        to->counter.unit_name = text_of(from->unit);
        to->track.counter = &to->counter;
    }
}

static void pack_notes(const struct trace_packet *from, struct packed *to)
{
    for (uint32_t i = 0; i < from->note_count; i++) {
        const struct trace_note *note = &from->notes[i];
        perfetto__debug_annotation__init(&to->notes[i]);
        to->notes[i].name = text_of(note->name);
        to->notes[i].string_value = text_of(note->text);
        to->notes[i].has_int_value = note->text == NULL;
        to->notes[i].int_value = note->number;
        to->note_list[i] = &to->notes[i];
    }
    to->event.n_debug_annotations = from->note_count;
    to->event.debug_annotations = to->note_list;
}

static Perfetto__TrackEvent__Type type_of(enum trace_packet_type type)
{
    return type == TRACE_PACKET_BEGIN     ? PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN
           : type == TRACE_PACKET_END     ? PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_END
           : type == TRACE_PACKET_INSTANT ? PERFETTO__TRACK_EVENT__TYPE__TYPE_INSTANT
                                          : PERFETTO__TRACK_EVENT__TYPE__TYPE_COUNTER;
}

static void pack_event(const struct trace_packet *from, struct packed *to)
{
    perfetto__track_event__init(&to->event);
    to->packet.track_event = &to->event;
    to->packet.has_timestamp = to->packet.has_timestamp_clock_id = true;
    to->packet.timestamp = from->time_ns;
    to->packet.timestamp_clock_id = CLOCK_ID_MONOTONIC;
    to->event.has_type = to->event.has_track_uuid = true;
    to->event.type = type_of(from->type);
    to->event.track_uuid = from->track;
    to->event.name = text_of(from->name);
    if (from->category != NULL) {
        to->category = text_of(from->category);
        to->event.n_categories = 1;
        to->event.categories = &to->category;
    }
    if (from->type == TRACE_PACKET_COUNTER) {
        to->event.has_double_counter_value = true;
        to->event.double_counter_value = from->value;
    }
    to->flow = from->flow;
    if (from->flow != 0 && from->ends_flow) {
        to->event.n_terminating_flow_ids = 1;
        to->event.terminating_flow_ids = &to->flow;
    } else if (from->flow != 0) {
        to->event.n_flow_ids = 1;
        to->event.flow_ids = &to->flow;
    }
    pack_notes(from, to);
}

size_t trace_packet_encode(const struct trace_packet *packet,
                           unsigned char ret_bytes[TRACE_PACKET_BYTES])
{
    struct packed packed;
    perfetto__trace_packet__init(&packed.packet);
    packed.packet.has_trusted_packet_sequence_id = true;
    packed.packet.trusted_packet_sequence_id = packet->sequence;
    if (packet->type < TRACE_PACKET_BEGIN) {
        pack_track(packet, &packed);
    } else {
        pack_event(packet, &packed);
    }
    size_t size = perfetto__trace_packet__get_packed_size(&packed.packet), at = 0;
    if (size > TRACE_PACKET_BYTES - 1 - LENGTH_BYTES_MAX) {
        return 0;
    }
    ret_bytes[at++] = PACKET_TAG;
    for (size_t left = size; left > 0 || at == 1; left >>= 7) {
        ret_bytes[at++] = (unsigned char)((left & 0x7F) | (left > 0x7F ? 0x80u : 0));
    }
    return at + perfetto__trace_packet__pack(&packed.packet, ret_bytes + at);
}

/* Tag and length. *ret_size: of the packet behind them. */
static enum status read_frame(const unsigned char *bytes, size_t size, size_t *ret_at,
                              size_t *ret_size)
{
    size_t length = 0, at = 1;
    if (size == 0) {
        return STATUS_END_OF_DATA;
    }
    if (bytes[0] != PACKET_TAG) {
        return STATUS_MALFORMED;
    }
    for (unsigned shift = 0;; shift += 7) {
        if (at > LENGTH_BYTES_MAX) {
            return STATUS_MALFORMED;
        }
        if (at == size) {
            return STATUS_END_OF_DATA;
        }
        length |= (size_t)(bytes[at] & 0x7F) << shift;
        if ((bytes[at++] & 0x80) == 0) {
            break;
        }
    }
    if (length > TRACE_PACKET_BYTES) {
        return STATUS_MALFORMED; // none of ours is
    }
    *ret_at = at;
    *ret_size = length;
    return length <= size - at ? STATUS_OK : STATUS_END_OF_DATA;
}

static void unpack_track(const Perfetto__TrackDescriptor *from, struct trace_packet *to)
{
    to->track = from->uuid;
    to->parent = from->parent_uuid;
    to->name = from->name;
    if (from->process != NULL) {
        to->type = TRACE_PACKET_PROCESS;
        to->pid = from->process->pid;
        to->name = from->name != NULL ? from->name : from->process->process_name;
    } else if (from->thread != NULL) {
        to->type = TRACE_PACKET_THREAD;
        to->pid = from->thread->pid;
        to->tid = from->thread->tid;
        to->name = from->name != NULL ? from->name : from->thread->thread_name;
    } else if (from->counter != NULL) {
        to->type = TRACE_PACKET_COUNTER_TRACK;
        to->unit = from->counter->unit_name;
    }
}

static void unpack_notes(const Perfetto__TrackEvent *from, struct trace_packet *to)
{
    for (size_t i = 0; i < from->n_debug_annotations && to->note_count < TRACE_NOTES_MAX; i++) {
        const Perfetto__DebugAnnotation *note = from->debug_annotations[i];
        if (note->name != NULL) {
            to->notes[to->note_count++] = (struct trace_note){
                note->name, note->string_value,
                note->has_int_value ? note->int_value : (int64_t)note->uint_value};
        }
    }
}

static void unpack_event(const Perfetto__TrackEvent *from, struct trace_packet *to)
{
    static const enum trace_packet_type types[] = {
        [PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN] = TRACE_PACKET_BEGIN,
        [PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_END] = TRACE_PACKET_END,
        [PERFETTO__TRACK_EVENT__TYPE__TYPE_INSTANT] = TRACE_PACKET_INSTANT,
        [PERFETTO__TRACK_EVENT__TYPE__TYPE_COUNTER] = TRACE_PACKET_COUNTER,
    };
    unsigned type = (unsigned)from->type;
    to->type = type < sizeof(types) / sizeof(types[0]) ? types[type] : TRACE_PACKET_OTHER;
    to->track = from->track_uuid;
    to->name = from->name;
    to->category = from->n_categories > 0 ? from->categories[0] : NULL;
    to->value = from->double_counter_value;
    to->ends_flow = from->n_terminating_flow_ids > 0;
    to->flow = to->ends_flow          ? from->terminating_flow_ids[0]
               : from->n_flow_ids > 0 ? from->flow_ids[0]
                                      : 0;
    unpack_notes(from, to);
}

enum status trace_packet_decode(const unsigned char *bytes, size_t size,
                                struct trace_scratch *scratch, size_t *ret_used,
                                struct trace_packet *ret_packet)
{
    size_t at, packet_size;
    enum status status = read_frame(bytes, size, &at, &packet_size);
    if (status != STATUS_OK) {
        return status;
    }
    struct bump bump = {.bytes = scratch->bytes, .size = sizeof(scratch->bytes)};
    ProtobufCAllocator allocator = {bump_alloc, bump_free, &bump};
    const Perfetto__TracePacket *packet =
        perfetto__trace_packet__unpack(&allocator, packet_size, bytes + at);
    if (packet == NULL) {
        return STATUS_MALFORMED;
    }
    *ret_packet = (struct trace_packet){.sequence = packet->trusted_packet_sequence_id,
                                        .time_ns = packet->timestamp};
    if (packet->track_descriptor != NULL) {
        unpack_track(packet->track_descriptor, ret_packet);
    } else if (packet->track_event != NULL) {
        unpack_event(packet->track_event, ret_packet);
    }
    *ret_used = at + packet_size;
    return STATUS_OK;
}

const struct trace_note *trace_packet_note(const struct trace_packet *packet, const char *name)
{
    for (uint32_t i = 0; i < packet->note_count; i++) {
        if (strcmp(packet->notes[i].name, name) == 0) {
            return &packet->notes[i];
        }
    }
    return NULL;
}

uint64_t trace_packet_number(const struct trace_packet *packet, const char *name)
{
    const struct trace_note *note = trace_packet_note(packet, name);
    return note != NULL ? (uint64_t)note->number : 0;
}

bool trace_packet_is_fact(const struct trace_packet *packet, const char *name)
{
    return packet->type == TRACE_PACKET_INSTANT && packet->category == NULL &&
           packet->name != NULL && strcmp(packet->name, name) == 0;
}
