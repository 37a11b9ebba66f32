/* Reads the parts twice: what clocks and arrows there are; then every packet, by time. */
#include "deploy/trace/timeline_merge.h"

#include "common/base/log.h"
#include "common/base/new_file.h"
#include "deploy/trace/drift.h"
#include "deploy/trace/flow_ends.h"
#include "deploy/trace/timeline.h"
#include "deploy/trace/trace_bytes.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PINGS_MAX (1u << 16) // of a part

struct part {
    struct trace_bytes file;
    bool is_coordinator;
    uint64_t host_id, machine; // machine 0: not said
    struct clock_ping *pings;  // (ping_count), owned
    size_t ping_count;
    struct drift fit;
    bool shares_clock; // with the coordinator
};

/* A packet: where it is, and when by the coordinator's clock. */
struct entry {
    uint64_t time_ns;
    uint32_t part;
    uint64_t at, order;
};

struct merge {
    const char *run;
    struct part **parts; // (part_count), owned
    size_t part_count;
    struct flow_ends flows;
    struct entry *entries; // (entry_count), owned
    size_t entry_count, entry_room;
};

static bool is_part(const char *name)
{
    static const char end[] = ".pftrace";
    size_t size = strlen(name);
    return name[0] != '.' && size > sizeof(end) && strcmp(name + size - sizeof(end) + 1, end) == 0;
}

static enum status open_part(struct merge *merge, const char *name)
{
    char path[TRACE_BYTES_PATH_MAX];
    struct part *part = calloc(1, sizeof(*part));
    struct part **parts =
        reallocarray(merge->parts, merge->part_count + 1,
                     sizeof(struct part *)); // NOLINT(bugprone-sizeof-expression): of pointers
    if (parts != NULL) {
        merge->parts = parts;
    }
    if (part == NULL || parts == NULL || merge->part_count == TIMELINE_PROCESSES_MAX) {
        free(part);
        log_error("no memory for the timeline of so many processes");
        return STATUS_NO_MEMORY;
    }
    merge->parts[merge->part_count++] = part;
    snprintf(path, sizeof(path), "%.3000s/" TIMELINE_PARTS_NAME "/%.1000s", merge->run, name);
    return trace_bytes_open(path, &part->file);
}

static enum status open_parts(struct merge *merge)
{
    char path[TRACE_BYTES_PATH_MAX];
    enum status status = STATUS_OK;
    snprintf(path, sizeof(path), "%.4000s/" TIMELINE_PARTS_NAME, merge->run);
    DIR *folder = opendir(path);
    for (const struct dirent *entry;
         folder != NULL && status == STATUS_OK && (entry = readdir(folder)) != NULL;) {
        status = is_part(entry->d_name) ? open_part(merge, entry->d_name) : STATUS_OK;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return status == STATUS_OK && merge->part_count == 0 ? STATUS_END_OF_DATA : status;
}

static enum status take_facts(struct merge *merge, struct part *part,
                              const struct trace_packet *packet)
{
    if (trace_packet_is_fact(packet, "process")) {
        part->is_coordinator = trace_packet_number(packet, "coordinator") != 0;
        part->host_id = trace_packet_number(packet, "host-id");
        part->machine = trace_packet_number(packet, "machine");
    } else if (trace_packet_is_fact(packet, "ping") && part->ping_count < PINGS_MAX) {
        part->pings[part->ping_count++] = (struct clock_ping){
            trace_packet_number(packet, "sent"), trace_packet_number(packet, "there"),
            trace_packet_number(packet, "received")};
    }
    return packet->flow != 0 ? flow_ends_add(&merge->flows, packet->flow, packet->ends_flow)
                             : STATUS_OK;
}

static int compare_pings(const void *a, const void *b)
{
    const struct clock_ping *left = a, *right = b;
    return (left->received_ns > right->received_ns) - (left->received_ns < right->received_ns);
}

static enum status read_facts(struct merge *merge, struct part *part)
{
    struct trace_packet packet;
    enum status status = STATUS_OK;
    part->pings = calloc(PINGS_MAX, sizeof(*part->pings));
    if (part->pings == NULL) {
        return STATUS_NO_MEMORY;
    }
    while (status == STATUS_OK) {
        status = trace_bytes_next(&part->file, &packet);
        if (status == STATUS_OK) {
            status = take_facts(merge, part, &packet);
        }
    }
    qsort(part->pings, part->ping_count, sizeof(*part->pings), compare_pings);
    drift_make(part->pings, part->ping_count, &part->fit);
    free(part->pings);
    part->pings = NULL;
    part->file.at = 0;
    return status == STATUS_END_OF_DATA ? STATUS_OK : status;
}

/* Processes of the coordinator's host, or of another host of its machine, have its clock, unless
 * what they measured says otherwise. */
static void choose_clocks(struct merge *merge)
{
    const struct part *coordinator = NULL;
    for (size_t i = 0; i < merge->part_count; i++) {
        coordinator = merge->parts[i]->is_coordinator ? merge->parts[i] : coordinator;
    }
    uint64_t host_id = coordinator != NULL ? coordinator->host_id : 0;
    uint64_t machine = coordinator != NULL ? coordinator->machine : 0;
    for (size_t i = 0; i < merge->part_count; i++) {
        struct part *part = merge->parts[i];
        bool is_same_machine = part->machine != 0 && part->machine == machine;
        bool is_near = coordinator != NULL && (part->host_id == host_id || is_same_machine);
        part->shares_clock = part == coordinator || (is_near && drift_allows_zero(&part->fit));
        if (is_near && !part->shares_clock) {
            log_warn(
                "%s: its clock differs from the coordinator's, though both are of one machine; "
                "what was measured counts",
                part->file.path);
        }
        if (!part->shares_clock && part->fit.count == 0) {
            log_warn("%s: how its clock differs from the coordinator's was not measured; its "
                     "times are shown as they are",
                     part->file.path);
        }
    }
}

static int64_t offset_of(const struct part *part, uint64_t time_ns)
{
    return part->shares_clock ? 0 : drift_offset(&part->fit, time_ns);
}

static enum status add_entry(struct merge *merge, const struct entry *entry)
{
    if (merge->entry_count == merge->entry_room) {
        size_t room = merge->entry_room > 0 ? 2 * merge->entry_room : 4096;
        struct entry *entries = reallocarray(merge->entries, room, sizeof(*entries));
        if (entries == NULL) {
            return STATUS_NO_MEMORY;
        }
        merge->entries = entries;
        merge->entry_room = room;
    }
    merge->entries[merge->entry_count++] = *entry;
    return STATUS_OK;
}

static enum status list_entries(struct merge *merge, uint32_t index)
{
    struct part *part = merge->parts[index];
    struct trace_packet packet;
    enum status status = STATUS_OK;
    uint64_t at = 0;
    while (status == STATUS_OK && (status = trace_bytes_next(&part->file, &packet)) == STATUS_OK) {
        // Tracks, and what is said of them, come first: they have no time of their own.
        bool has_time = packet.type >= TRACE_PACKET_BEGIN &&
                        !trace_packet_is_fact(&packet, "process") &&
                        !trace_packet_is_fact(&packet, "thread");
        struct entry entry = {.part = index, .at = at, .order = merge->entry_count};
        entry.time_ns = has_time ? packet.time_ns + (uint64_t)offset_of(part, packet.time_ns) : 0;
        at = part->file.at;
        status = trace_packet_is_fact(&packet, "ping") ? STATUS_OK : add_entry(merge, &entry);
    }
    return status == STATUS_END_OF_DATA ? STATUS_OK : status;
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    if (left->time_ns != right->time_ns) {
        return left->time_ns < right->time_ns ? -1 : 1;
    }
    return (left->order > right->order) - (left->order < right->order);
}

/* What the timeline says of a process's clock. */
static void add_clock(const struct part *part, struct trace_packet *packet)
{
    const struct trace_note notes[] = {
        {.name = "clock", .text = part->shares_clock ? "common" : "measured"},
        {.name = "offset-ns", .number = part->fit.count > 0 ? part->fit.points[0].offset_ns : 0},
        {.name = "uncertainty-ns",
         .number = part->shares_clock ? 0 : (int64_t)part->fit.uncertainty_ns},
    };
    for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
        if (packet->note_count < TRACE_NOTES_MAX) {
            packet->notes[packet->note_count++] = notes[i];
        }
    }
}

static enum status copy_entry(struct merge *merge, const struct entry *entry, uint64_t begin_ns,
                              FILE *file)
{
    unsigned char bytes[TRACE_PACKET_BYTES];
    struct trace_packet packet;
    struct part *part = merge->parts[entry->part];
    part->file.at = entry->at;
    enum status status = trace_bytes_next(&part->file, &packet);
    if (status != STATUS_OK) {
        return status;
    }
    packet.time_ns = entry->time_ns > 0 ? entry->time_ns : begin_ns;
    if (!flow_ends_has_both(&merge->flows, packet.flow)) {
        packet.flow = 0;
    }
    if (trace_packet_is_fact(&packet, "process")) {
        add_clock(part, &packet);
    }
    size_t size = trace_packet_encode(&packet, bytes);
    return size > 0 && fwrite(bytes, 1, size, file) == size ? STATUS_OK : STATUS_IO;
}

static enum status write_entries(struct merge *merge, FILE *file)
{
    enum status status = STATUS_OK;
    uint64_t begin_ns = 0;
    for (size_t i = 0; i < merge->entry_count && begin_ns == 0; i++) {
        begin_ns = merge->entries[i].time_ns;
    }
    for (size_t i = 0; i < merge->entry_count && status == STATUS_OK; i++) {
        status = copy_entry(merge, &merge->entries[i], begin_ns, file);
    }
    return status;
}

static enum status write_timeline(struct merge *merge)
{
    char path[TRACE_BYTES_PATH_MAX], draft[TRACE_BYTES_PATH_MAX + 8];
    snprintf(path, sizeof(path), "%.4000s/" TIMELINE_NAME, merge->run);
    snprintf(draft, sizeof(draft), "%s.part", path);
    FILE *file = new_file_stream(draft, true);
    enum status status = file != NULL ? write_entries(merge, file) : STATUS_IO;
    if (file != NULL && fclose(file) != 0) {
        status = STATUS_IO;
    }
    if (status == STATUS_OK && rename(draft, path) != 0) {
        status = STATUS_IO;
    }
    if (status != STATUS_OK) {
        log_error("cannot write %s: %m", path);
        unlink(draft);
    }
    return status;
}

static void remove_parts(struct merge *merge)
{
    char path[TRACE_BYTES_PATH_MAX];
    for (size_t i = 0; i < merge->part_count; i++) {
        unlink(merge->parts[i]->file.path);
    }
    snprintf(path, sizeof(path), "%.4000s/" TIMELINE_PARTS_NAME, merge->run);
    rmdir(path); // stays where something else is in it
}

static enum status run_merge(struct merge *merge)
{
    enum status status = open_parts(merge);
    for (size_t i = 0; i < merge->part_count && status == STATUS_OK; i++) {
        status = read_facts(merge, merge->parts[i]);
    }
    if (status != STATUS_OK) {
        return status;
    }
    flow_ends_sort(&merge->flows);
    choose_clocks(merge);
    for (size_t i = 0; i < merge->part_count && status == STATUS_OK; i++) {
        merge->parts[i]->file.at = 0;
        status = list_entries(merge, (uint32_t)i);
    }
    if (status == STATUS_OK && merge->entry_count > 0) {
        qsort(merge->entries, merge->entry_count, sizeof(*merge->entries), compare_entries);
        status = write_timeline(merge);
    }
    if (status == STATUS_OK) {
        remove_parts(merge);
    }
    return status;
}

enum status timeline_merge(const char *run)
{
    struct merge merge = {.run = run};
    enum status status = run_merge(&merge);
    for (size_t i = 0; i < merge.part_count; i++) {
        trace_bytes_close(&merge.parts[i]->file);
        free(merge.parts[i]);
    }
    free(merge.parts);
    free(merge.entries);
    flow_ends_finish(&merge.flows);
    return status;
}

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

enum status timeline_find(const char *run, char ret_path[TIMELINE_PATH_BYTES])
{
    if (is_file(run)) {
        snprintf(ret_path, TIMELINE_PATH_BYTES, "%.4000s", run);
        return STATUS_OK;
    }
    enum status status = timeline_merge(run);
    snprintf(ret_path, TIMELINE_PATH_BYTES, "%.4000s/" TIMELINE_NAME, run);
    if (status != STATUS_END_OF_DATA) {
        return status;
    }
    if (access(ret_path, F_OK) != 0) {
        log_error("%s has no timeline (no " TIMELINE_NAME "): run the job with --timeline", run);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}
