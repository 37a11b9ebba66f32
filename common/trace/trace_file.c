/* Turns tapes into tracks, and events into packets. */
#include "common/trace/trace_file.h"

#include "common/base/cores.h"
#include "common/base/log.h"
#include "common/base/new_file.h"
#include "common/base/random.h"
#include "common/trace/trace_packet.h"
#include "common/trace/trace_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES      (TRACE_FOLDER_BYTES + 64)
#define NAME_BYTES      64
#define NESTING_MAX     16
#define TRACKS_PER_TAPE (1 + TRACE_KIND_COUNT) // its slices, its counters

/* A file that is being written, and the tape whose turn it is. */
struct writer {
    FILE *file;
    const struct trace *trace;
    const struct trace_tape *tape;
    uint64_t process_track, track;
    uint32_t sequence;
    bool has_failed;
};

static void put(struct writer *writer, struct trace_packet *packet)
{
    unsigned char bytes[TRACE_PACKET_BYTES];
    packet->sequence = writer->sequence;
    size_t size = trace_packet_encode(packet, bytes);
    writer->has_failed =
        writer->has_failed || size == 0 || fwrite(bytes, 1, size, writer->file) != size;
}

static void add_number(struct trace_packet *packet, const char *name, uint64_t number)
{
    packet->notes[packet->note_count++] =
        (struct trace_note){.name = name, .number = (int64_t)number};
}

static void add_text(struct trace_packet *packet, const char *name, const char *text)
{
    packet->notes[packet->note_count++] = (struct trace_note){.name = name, .text = text};
}

static void put_process(struct writer *writer)
{
    const struct trace_process *process = &writer->trace->process;
    char name[NAME_BYTES];
    snprintf(name, sizeof(name), "%s %u", process->role, process->number);
    struct trace_packet track = {.type = TRACE_PACKET_PROCESS,
                                 .track = writer->process_track,
                                 .pid = (int32_t)getpid(),
                                 .name = name};
    put(writer, &track);
    struct trace_packet facts = {.type = TRACE_PACKET_INSTANT,
                                 .track = writer->process_track,
                                 .time_ns = clock_now_ns(),
                                 .name = "process"};
    add_text(&facts, "role", process->role);
    add_number(&facts, "number", process->number);
    add_text(&facts, "host", process->host);
    add_number(&facts, "host-id", process->host_id);
    add_number(&facts, "coordinator", process->is_coordinator);
    add_number(&facts, "unsynchronised", process->is_unsynchronised);
    add_number(&facts, "cores", cores_available());
    add_number(&facts, "machine", cores_machine());
    put(writer, &facts);
}

static void put_thread(struct writer *writer, uint32_t index)
{
    const struct trace_tape *tape = writer->tape;
    char name[NAME_BYTES];
    snprintf(name, sizeof(name), tape->thread == TRACE_COORDINATOR ? "%s" : "%s %u",
             trace_threads[tape->thread], tape->number);
    struct trace_packet track = {.type = TRACE_PACKET_THREAD,
                                 .track = writer->track,
                                 .parent = writer->process_track,
                                 .pid = (int32_t)getpid(),
                                 // The threads are over: what counts is that numbers differ.
                                 .tid = (int64_t)getpid() * TRACE_TAPES_MAX + index,
                                 .name = name};
    put(writer, &track);
    struct trace_packet facts = {.type = TRACE_PACKET_INSTANT,
                                 .track = writer->track,
                                 .time_ns = clock_now_ns(),
                                 .name = "thread"};
    add_text(&facts, "thread", trace_threads[tape->thread]);
    add_number(&facts, "number", tape->number);
    add_number(&facts, "dropped", tape->dropped);
    put(writer, &facts);
}

static void put_pings(struct writer *writer)
{
    for (uint32_t i = 0; i < writer->tape->ping_count; i++) {
        const struct trace_ping *ping = &writer->tape->pings[i];
        struct trace_packet packet = {.type = TRACE_PACKET_INSTANT,
                                      .track = writer->track,
                                      .time_ns = ping->received_ns,
                                      .name = "ping"};
        add_number(&packet, "sent", ping->sent_ns);
        add_number(&packet, "there", ping->there_ns);
        add_number(&packet, "received", ping->received_ns);
        put(writer, &packet);
    }
}

static bool is_layer(const struct trace_tag *tag)
{
    return (tag->kind == TRACE_LAYER_FORWARD || tag->kind == TRACE_LAYER_BACKWARD) &&
           tag->layers != NULL;
}

/* "backward 3", "send PUSH 0", "conv2d 2". */
static void name_event(const struct trace_tag *tag, char ret_name[NAME_BYTES])
{
    char bucket[16] = "";
    if (is_layer(tag)) {
        snprintf(ret_name, NAME_BYTES, "%s", tag->layers);
        return;
    }
    if (tag->bucket != TRACE_NO_BUCKET) {
        snprintf(bucket, sizeof(bucket), " %u", tag->bucket);
    }
    snprintf(ret_name, NAME_BYTES, "%s%s%s%s", trace_kinds[tag->kind].name,
             tag->message != NULL ? " " : "", tag->message != NULL ? tag->message : "", bucket);
}

static void annotate(const struct trace_event *event, struct trace_packet *packet)
{
    const struct trace_tag *tag = &event->tag;
    add_number(packet, "step", tag->step);
    if (tag->bucket != TRACE_NO_BUCKET) {
        add_number(packet, "bucket", tag->bucket);
    }
    if (tag->layers != NULL && !is_layer(tag)) {
        add_text(packet, "layers", tag->layers);
    }
    if (event->cpu_ns != TRACE_CPU_UNKNOWN) {
        add_number(packet, "cpu-ns", event->cpu_ns);
    }
    if (tag->message != NULL) {
        add_text(packet, "message", tag->message);
        add_number(packet, "rank", tag->rank);
        add_number(packet, "hop", tag->hop);
        add_number(packet, "bytes", tag->bytes);
    }
}

static void put_begin(struct writer *writer, const struct trace_event *event)
{
    const struct trace_tag *tag = &event->tag;
    char name[NAME_BYTES];
    bool is_instant = event->begin_ns == event->end_ns && tag->flow == 0;
    name_event(tag, name);
    struct trace_packet packet = {.type = is_instant ? TRACE_PACKET_INSTANT : TRACE_PACKET_BEGIN,
                                  .track = writer->track,
                                  .time_ns = event->begin_ns,
                                  .name = name,
                                  .category = trace_kinds[tag->kind].key,
                                  .flow = tag->flow,
                                  .ends_flow = tag->kind != TRACE_SEND};
    annotate(event, &packet);
    put(writer, &packet);
}

static void put_end(struct writer *writer, uint64_t time_ns)
{
    struct trace_packet packet = {
        .type = TRACE_PACKET_END, .track = writer->track, .time_ns = time_ns};
    put(writer, &packet);
}

static uint64_t counter_track(const struct writer *writer, enum trace_kind kind)
{
    return writer->track + 1 + kind;
}

static void put_counter(struct writer *writer, const struct trace_event *event)
{
    struct trace_packet packet = {.type = TRACE_PACKET_COUNTER,
                                  .track = counter_track(writer, event->tag.kind),
                                  .time_ns = event->begin_ns,
                                  .category = trace_kinds[event->tag.kind].key,
                                  .value = event->tag.value};
    add_number(&packet, "step", event->tag.step);
    put(writer, &packet);
}

/* The counters that the tape has values of. */
static void put_counter_tracks(struct writer *writer)
{
    bool has[TRACE_KIND_COUNT] = {false};
    for (uint32_t i = 0; i < writer->tape->count; i++) {
        has[writer->tape->events[i].tag.kind] = true;
    }
    for (unsigned kind = 0; kind < TRACE_KIND_COUNT; kind++) {
        if (has[kind] && trace_kinds[kind].unit != NULL) {
            struct trace_packet track = {.type = TRACE_PACKET_COUNTER_TRACK,
                                         .track = counter_track(writer, (enum trace_kind)kind),
                                         .parent = writer->process_track,
                                         .name = trace_kinds[kind].name,
                                         .unit = trace_kinds[kind].unit};
            put(writer, &track);
        }
    }
}

/* By their beginning; what contains others goes before them. */
static int compare_events(const void *a, const void *b)
{
    const struct trace_event *left = a, *right = b;
    if (left->begin_ns != right->begin_ns) {
        return left->begin_ns < right->begin_ns ? -1 : 1;
    }
    return (left->end_ns < right->end_ns) - (left->end_ns > right->end_ns);
}

static void put_events(struct writer *writer)
{
    const struct trace_tape *tape = writer->tape;
    uint64_t ends[NESTING_MAX]; // of the slices that are open
    uint32_t depth = 0;
    qsort(tape->events, tape->count, sizeof(*tape->events), compare_events);
    for (uint32_t i = 0; i < tape->count; i++) {
        struct trace_event event = tape->events[i];
        while (depth > 0 && ends[depth - 1] <= event.begin_ns) {
            put_end(writer, ends[--depth]);
        }
        if (trace_kinds[event.tag.kind].unit != NULL) {
            put_counter(writer, &event);
            continue;
        }
        if (depth == NESTING_MAX) {
            continue; // none of ours are nested as deep
        }
        put_begin(writer, &event);
        if (event.begin_ns < event.end_ns || event.tag.flow != 0) {
            bool is_cut = depth > 0 && ends[depth - 1] < event.end_ns;
            ends[depth] = is_cut ? ends[depth - 1] : event.end_ns;
            depth++;
        }
    }
    while (depth > 0) {
        put_end(writer, ends[--depth]);
    }
}

static void put_all(struct writer *writer)
{
    const struct trace *trace = writer->trace;
    uint64_t key = random_mix(trace->process.host_id ^ (uint64_t)getpid());
    writer->process_track = key & ~(UINT64_C(0xFFFF)); // below it, those of its tapes
    writer->sequence = (uint32_t)(key >> 32) | 1;
    put_process(writer);
    for (uint32_t i = 0; i < trace->tape_count; i++) {
        writer->tape = trace->tapes[i];
        writer->track = writer->process_track + 1 + (uint64_t)i * TRACKS_PER_TAPE;
        writer->sequence++;
        put_thread(writer, i);
        put_counter_tracks(writer);
        put_pings(writer);
        put_events(writer);
    }
}

enum status trace_file_write(const struct trace *trace)
{
    char path[PATH_BYTES];
    struct writer writer = {.trace = trace};
    if (mkdir(trace->folder, 0777) != 0 && errno != EEXIST) {
        log_error("the timeline of this process is lost: cannot make the folder %s: %m",
                  trace->folder);
        return STATUS_IO;
    }
    snprintf(path, sizeof(path), "%s/%s-%u.%d.pftrace", trace->folder, trace->role,
             trace->process.number, (int)getpid());
    writer.file = new_file_stream(path, true);
    if (writer.file != NULL) {
        put_all(&writer);
    }
    bool is_written = writer.file != NULL && !writer.has_failed;
    if (writer.file != NULL && fclose(writer.file) != 0) {
        is_written = false;
    }
    if (!is_written) {
        log_error("the timeline of this process is lost: cannot write %s: %m", path);
        unlink(path);
        return STATUS_IO;
    }
    return STATUS_OK;
}
