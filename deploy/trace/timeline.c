/* Reads a timeline: pairs the beginnings and ends of slices, and sorts. */
#include "deploy/trace/timeline.h"

#include "common/base/log.h"
#include "common/base/printable.h"
#include "deploy/trace/trace_bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NESTING_MAX 32
#define THREADS_MAX 65536
#define TEXTS_MAX   4096

/* A thread while it is read: slices that are open, as indices of events. */
struct open_slices {
    size_t events[NESTING_MAX];
    uint32_t depth;
};

struct reader {
    struct timeline *timeline;
    struct open_slices *open; // (thread_count), owned
    size_t event_room;
    const char *path;
};

static const char *text_of(const struct trace_packet *packet, const char *name)
{
    const struct trace_note *note = trace_packet_note(packet, name);
    return note != NULL && note->text != NULL ? note->text : "";
}

/* Keeps a text of the file, which may be of another host, as far as there is room. */
static void keep_text(char *ret_text, size_t size, const char *text)
{
    snprintf(ret_text, size, "%s", text);
    printable_make_utf8(ret_text);
}

static enum status add_process(struct reader *reader, const struct trace_packet *packet)
{
    struct timeline *timeline = reader->timeline;
    if (timeline->process_count == TIMELINE_PROCESSES_MAX) {
        return STATUS_NO_MEMORY;
    }
    struct timeline_process *grown =
        reallocarray(timeline->processes, timeline->process_count + 1, sizeof(*grown));
    if (grown == NULL) {
        return STATUS_NO_MEMORY;
    }
    timeline->processes = grown;
    struct timeline_process *process = &grown[timeline->process_count++];
    *process = (struct timeline_process){
        .track = packet->track,
        .number = (uint32_t)trace_packet_number(packet, "number"),
        .cores = (uint32_t)trace_packet_number(packet, "cores"),
        .machine = trace_packet_number(packet, "machine"),
        .is_coordinator = trace_packet_number(packet, "coordinator") != 0,
        .is_unsynchronised = trace_packet_number(packet, "unsynchronised") != 0,
        .offset_ns = (int64_t)trace_packet_number(packet, "offset-ns"),
        .uncertainty_ns = trace_packet_number(packet, "uncertainty-ns"),
    };
    keep_text(process->role, sizeof(process->role), text_of(packet, "role"));
    keep_text(process->host, sizeof(process->host), text_of(packet, "host"));
    keep_text(process->clock, sizeof(process->clock), text_of(packet, "clock"));
    return STATUS_OK;
}

/* A thread's facts follow those of its process in the file. */
static enum status add_thread(struct reader *reader, const struct trace_packet *packet)
{
    struct timeline *timeline = reader->timeline;
    enum trace_thread thread;
    size_t count = timeline->thread_count, process = timeline->process_count;
    while (process > 0 && packet->track - timeline->processes[process - 1].track > UINT16_MAX) {
        process--;
    }
    if (process == 0 || !trace_thread_find(text_of(packet, "thread"), &thread)) {
        log_error("%s describes a thread of no process, or of no kind that this program knows",
                  reader->path);
        return STATUS_MALFORMED;
    }
    struct timeline_thread *grown = reallocarray(timeline->threads, count + 1, sizeof(*grown));
    if (grown != NULL) {
        timeline->threads = grown;
    }
    struct open_slices *open = reallocarray(reader->open, count + 1, sizeof(*open));
    if (open != NULL) {
        reader->open = open;
    }
    if (grown == NULL || open == NULL || count == THREADS_MAX) {
        return STATUS_NO_MEMORY;
    }
    open[count].depth = 0;
    grown[count] =
        (struct timeline_thread){.track = packet->track,
                                 .process = (uint32_t)(process - 1),
                                 .thread = thread,
                                 .number = (uint32_t)trace_packet_number(packet, "number"),
                                 .dropped = trace_packet_number(packet, "dropped")};
    timeline->thread_count++;
    return STATUS_OK;
}

/* The thread that a packet is of; a counter's track is one of those behind its thread's, of which a
 * file of before may have fewer. */
static bool find_thread(const struct timeline *timeline, uint64_t track, uint32_t *ret_thread)
{
    uint64_t least = (uint64_t)TRACE_KIND_COUNT + 1;
    for (size_t i = 0; i < timeline->thread_count && least > 0; i++) {
        uint64_t behind = track - timeline->threads[i].track;
        if (behind < least) {
            *ret_thread = (uint32_t)i;
            least = behind;
        }
    }
    return least <= TRACE_KIND_COUNT;
}

/* A text that many events have, once; NULL if the file has more of such than any of ours, or there
 * is no memory. */
static const char *find_text(struct timeline *timeline, const char *text)
{
    char kept[TIMELINE_TEXT_BYTES];
    keep_text(kept, sizeof(kept), text);
    for (size_t i = timeline->text_count; i > 0; i--) {
        if (strcmp(timeline->texts[i - 1], kept) == 0) {
            return timeline->texts[i - 1];
        }
    }
    char **grown = timeline->text_count < TEXTS_MAX
                       ? reallocarray(timeline->texts, timeline->text_count + 1, sizeof(*grown))
                       : NULL;
    if (grown == NULL) {
        return NULL;
    }
    timeline->texts = grown;
    grown[timeline->text_count] = strdup(kept);
    return grown[timeline->text_count] != NULL ? grown[timeline->text_count++] : NULL;
}

/* What an event says by that name, as a text of the timeline; NULL: nothing. */
static const char *text_kept(struct timeline *timeline, const struct trace_packet *packet,
                             const char *name)
{
    const char *text = text_of(packet, name);
    return text[0] != '\0' ? find_text(timeline, text) : NULL;
}

static enum status add_event(struct reader *reader, uint32_t thread,
                             const struct trace_packet *packet)
{
    struct timeline *timeline = reader->timeline;
    enum trace_kind kind;
    if (packet->category == NULL || !trace_kind_find(packet->category, &kind)) {
        log_error("%s has an event of a kind that this program does not know: '%.40s'",
                  reader->path, packet->category != NULL ? packet->category : "");
        return STATUS_MALFORMED;
    }
    if (timeline->event_count == reader->event_room) {
        size_t room = reader->event_room > 0 ? 2 * reader->event_room : 4096;
        struct timeline_event *grown = reallocarray(timeline->events, room, sizeof(*grown));
        if (grown == NULL) {
            return STATUS_NO_MEMORY;
        }
        timeline->events = grown;
        reader->event_room = room;
    }
    struct timeline_event *event = &timeline->events[timeline->event_count];
    const struct trace_note *bucket = trace_packet_note(packet, "bucket");
    const struct trace_note *cpu = trace_packet_note(packet, "cpu-ns");
    *event = (struct timeline_event){
        .begin_ns = packet->time_ns,
        .end_ns = packet->time_ns,
        .kind = kind,
        .thread = thread,
        .bucket = bucket != NULL ? (uint32_t)bucket->number : UINT32_MAX,
        .step = trace_packet_number(packet, "step"),
        .flow = packet->flow,
        .hop = (uint32_t)trace_packet_number(packet, "hop"),
        .bytes = trace_packet_number(packet, "bytes"),
        .cpu_ns = cpu != NULL ? (uint64_t)cpu->number : TIMELINE_CPU_UNKNOWN,
        .value = packet->value,
    };
    keep_text(event->name, sizeof(event->name),
              packet->name != NULL ? packet->name : trace_kinds[kind].name);
    event->layers = text_kept(timeline, packet, "layers");
    event->message = text_kept(timeline, packet, "message");
    struct open_slices *open = &reader->open[thread];
    if (packet->type == TRACE_PACKET_BEGIN) {
        if (open->depth == NESTING_MAX) {
            log_error("%s has slices within slices, deeper than %d", reader->path, NESTING_MAX);
            return STATUS_MALFORMED;
        }
        open->events[open->depth++] = timeline->event_count;
    }
    timeline->event_count++;
    return STATUS_OK;
}

static enum status end_slice(struct reader *reader, uint32_t thread, uint64_t time_ns)
{
    struct open_slices *open = &reader->open[thread];
    if (open->depth == 0) {
        log_error("%s has the end of a slice that did not begin", reader->path);
        return STATUS_MALFORMED;
    }
    struct timeline_event *event = &reader->timeline->events[open->events[--open->depth]];
    event->end_ns = time_ns > event->begin_ns ? time_ns : event->begin_ns;
    return STATUS_OK;
}

static enum status take(struct reader *reader, const struct trace_packet *packet)
{
    uint32_t thread;
    if (trace_packet_is_fact(packet, "process")) {
        return add_process(reader, packet);
    }
    if (trace_packet_is_fact(packet, "thread")) {
        return add_thread(reader, packet);
    }
    if (packet->type < TRACE_PACKET_BEGIN || trace_packet_is_fact(packet, "ping")) {
        return STATUS_OK;
    }
    if (!find_thread(reader->timeline, packet->track, &thread)) {
        log_error("%s has an event of a thread that it does not describe", reader->path);
        return STATUS_MALFORMED;
    }
    return packet->type == TRACE_PACKET_END ? end_slice(reader, thread, packet->time_ns)
                                            : add_event(reader, thread, packet);
}

static int compare_events(const void *a, const void *b)
{
    const struct timeline_event *left = a, *right = b;
    if (left->thread != right->thread) {
        return left->thread < right->thread ? -1 : 1;
    }
    if (left->begin_ns != right->begin_ns) {
        return left->begin_ns < right->begin_ns ? -1 : 1;
    }
    return (left->end_ns < right->end_ns) - (left->end_ns > right->end_ns);
}

static void arrange(struct timeline *timeline)
{
    if (timeline->event_count == 0) {
        return;
    }
    qsort(timeline->events, timeline->event_count, sizeof(*timeline->events), compare_events);
    timeline->begin_ns = UINT64_MAX;
    for (size_t i = 0; i < timeline->event_count; i++) {
        const struct timeline_event *event = &timeline->events[i];
        struct timeline_thread *thread = &timeline->threads[event->thread];
        thread->first = thread->count++ == 0 ? i : thread->first;
        timeline->begin_ns =
            event->begin_ns < timeline->begin_ns ? event->begin_ns : timeline->begin_ns;
        timeline->end_ns = event->end_ns > timeline->end_ns ? event->end_ns : timeline->end_ns;
    }
}

enum status timeline_read(const char *path, struct timeline *ret_timeline)
{
    struct trace_bytes *file = calloc(1, sizeof(*file));
    struct timeline timeline = {0};
    struct reader reader = {.timeline = &timeline, .path = path};
    struct trace_packet packet;
    if (file == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = trace_bytes_open(path, file);
    while (status == STATUS_OK && (status = trace_bytes_next(file, &packet)) == STATUS_OK) {
        status = take(&reader, &packet);
    }
    trace_bytes_close(file);
    free(file);
    free(reader.open);
    if (status != STATUS_END_OF_DATA) {
        timeline_finish(&timeline);
        return status;
    }
    arrange(&timeline);
    *ret_timeline = timeline;
    return STATUS_OK;
}

void timeline_finish(struct timeline *timeline)
{
    free(timeline->processes);
    free(timeline->threads);
    free(timeline->events);
    for (size_t i = 0; i < timeline->text_count; i++) {
        free(timeline->texts[i]);
    }
    free(timeline->texts);
    *timeline = (struct timeline){0};
}

static int compare_flows(const void *a, const void *b)
{
    const struct timeline_flow *left = a, *right = b;
    if (left->flow != right->flow) {
        return left->flow < right->flow ? -1 : 1;
    }
    return (left->receive != SIZE_MAX) - (right->receive != SIZE_MAX); // sends first
}

enum status timeline_list_flows(const struct timeline *timeline, struct timeline_flow **ret_flows,
                                size_t *ret_count)
{
    struct timeline_flow *flows = calloc(timeline->event_count + 1, sizeof(*flows));
    size_t ends = 0, count = 0;
    if (flows == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < timeline->event_count; i++) {
        const struct timeline_event *event = &timeline->events[i];
        bool is_send = event->kind == TRACE_SEND;
        if (event->flow != 0) {
            flows[ends++] =
                (struct timeline_flow){event->flow, is_send ? i : SIZE_MAX, is_send ? SIZE_MAX : i};
        }
    }
    qsort(flows, ends, sizeof(*flows), compare_flows);
    for (size_t i = 0; i + 1 < ends; i++) {
        if (flows[i].flow == flows[i + 1].flow && flows[i].send != SIZE_MAX &&
            flows[i + 1].receive != SIZE_MAX) {
            flows[count++] =
                (struct timeline_flow){flows[i].flow, flows[i].send, flows[i + 1].receive};
        }
    }
    *ret_flows = flows;
    *ret_count = count;
    return STATUS_OK;
}

static uint64_t uncertainty_of(const struct timeline *timeline, const struct timeline_event *event)
{
    return timeline->processes[timeline->threads[event->thread].process].uncertainty_ns;
}

size_t timeline_count_impossible(const struct timeline *timeline, const struct timeline_flow *flows,
                                 size_t count)
{
    size_t impossible = 0;
    for (size_t i = 0; i < count; i++) {
        const struct timeline_event *send = &timeline->events[flows[i].send];
        const struct timeline_event *receive = &timeline->events[flows[i].receive];
        uint64_t allowed_ns = uncertainty_of(timeline, send) + uncertainty_of(timeline, receive);
        impossible += receive->begin_ns + allowed_ns < send->begin_ns;
    }
    return impossible;
}
