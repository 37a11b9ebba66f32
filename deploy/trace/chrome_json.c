/* Writes the objects one a line. Times are microseconds. */
#include "deploy/trace/chrome_json.h"

/* Names are ours, and printable; a file may hold others. */
static void write_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') {
            fprintf(file, "\\%c", byte);
        } else if (byte < 0x20 || byte > 0x7E) {
            fprintf(file, "\\u%04x", byte);
        } else {
            fputc(byte, file);
        }
    }
    fputc('"', file);
}

static double us_of(const struct timeline *timeline, uint64_t time_ns)
{
    return (double)(time_ns - timeline->begin_ns) / 1000;
}

static void write_place(FILE *file, const struct timeline *timeline, size_t thread)
{
    fprintf(file, "\"pid\":%u,\"tid\":%zu", timeline->threads[thread].process, thread);
}

static void write_names(FILE *file, const struct timeline *timeline)
{
    for (size_t i = 0; i < timeline->process_count; i++) {
        const struct timeline_process *process = &timeline->processes[i];
        fprintf(file, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%zu,\"args\":{\"name\":", i);
        char name[TIMELINE_TEXT_BYTES];
        snprintf(name, sizeof(name), "%s %u", process->role, process->number);
        write_text(file, name);
        fprintf(file, "}},\n");
    }
    for (size_t i = 0; i < timeline->thread_count; i++) {
        fprintf(file, "{\"ph\":\"M\",\"name\":\"thread_name\",");
        write_place(file, timeline, i);
        fprintf(file, ",\"args\":{\"name\":\"%s %u\"}},\n",
                trace_threads[timeline->threads[i].thread], timeline->threads[i].number);
    }
}

static void write_event(FILE *file, const struct timeline *timeline,
                        const struct timeline_event *event)
{
    bool is_counter = trace_kinds[event->kind].unit != NULL;
    bool is_instant = !is_counter && event->begin_ns == event->end_ns && event->flow == 0;
    fprintf(file, "{\"ph\":\"%s\",\"name\":", is_counter ? "C" : is_instant ? "i" : "X");
    write_text(file, event->name);
    fprintf(file, ",\"cat\":\"%s\",", trace_kinds[event->kind].key);
    write_place(file, timeline, event->thread);
    fprintf(file, ",\"ts\":%.3f,", us_of(timeline, event->begin_ns));
    if (is_counter) {
        fprintf(file, "\"args\":{\"value\":%.17g}},\n", event->value);
        return;
    }
    if (is_instant) {
        fprintf(file, "\"s\":\"t\",");
    } else {
        fprintf(file, "\"dur\":%.3f,", (double)(event->end_ns - event->begin_ns) / 1000);
    }
    fprintf(file, "\"args\":{\"step\":%llu", (unsigned long long)event->step + 1);
    if (event->bucket != UINT32_MAX) {
        fprintf(file, ",\"bucket\":%u", event->bucket);
    }
    if (event->layers != NULL) {
        fprintf(file, ",\"layers\":");
        write_text(file, event->layers);
    }
    if (event->bytes > 0) {
        fprintf(file, ",\"bytes\":%llu", (unsigned long long)event->bytes);
    }
    fprintf(file, "}},\n");
}

static void write_arrow(FILE *file, const struct timeline *timeline,
                        const struct timeline_event *event, const char *end)
{
    fprintf(file, "{%s,\"name\":\"message\",\"cat\":\"message\",\"id\":\"%llx\",", end,
            (unsigned long long)event->flow);
    write_place(file, timeline, event->thread);
    fprintf(file, ",\"ts\":%.3f},\n", us_of(timeline, event->begin_ns));
}

void chrome_json_write(FILE *file, const struct timeline *timeline,
                       const struct timeline_flow *flows, size_t flow_count)
{
    fprintf(file, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    write_names(file, timeline);
    for (size_t i = 0; i < timeline->event_count; i++) {
        write_event(file, timeline, &timeline->events[i]);
    }
    for (size_t i = 0; i < flow_count; i++) {
        write_arrow(file, timeline, &timeline->events[flows[i].send], "\"ph\":\"s\"");
        write_arrow(file, timeline, &timeline->events[flows[i].receive],
                    "\"ph\":\"f\",\"bp\":\"e\"");
    }
    fprintf(file, "{\"ph\":\"M\",\"name\":\"trace_name\",\"pid\":0,\"args\":{\"name\":"
                  "\"ringside\"}}\n]}\n");
}
