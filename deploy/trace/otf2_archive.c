/* Writes the definitions of an OTF2 archive, and opens and closes its files. */
#include "deploy/trace/otf2_archive.h"

#include "common/base/log.h"
#include "deploy/trace/otf2_events.h"

#include <otf2/otf2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_EVENT_BYTES      (1u << 20)
#define CHUNK_DEFINITION_BYTES (4u << 20)
#define NS_PER_SECOND          UINT64_C(1000000000)
#define TEXT_BYTES             (TIMELINE_TEXT_BYTES + 32)

struct writing {
    const struct timeline *timeline;
    struct otf2_events events;
    uint64_t *counts; // (threads): records of each, owned
    OTF2_Archive *archive;
    OTF2_GlobalDefWriter *definitions;
    OTF2_StringRef next_string;
    OTF2_ErrorCode error; // the first
};

bool otf2_archive_is_built(void)
{
    return true;
}

static void note(struct writing *writing, OTF2_ErrorCode error)
{
    writing->error = writing->error == OTF2_SUCCESS ? error : writing->error;
}

static OTF2_FlushType flush_always(void *data, OTF2_FileType type, OTF2_LocationRef location,
                                   void *caller, bool is_final)
{
    (void)data;
    (void)type;
    (void)location;
    (void)caller;
    (void)is_final;
    return OTF2_FLUSH;
}

static const OTF2_FlushCallbacks flush_callbacks = {.otf2_pre_flush = flush_always};

/* The library would print to standard error; what it returns is told by us, once. */
// NOLINTNEXTLINE(readability-function-size): the library's type
static OTF2_ErrorCode say_nothing(void *data, const char *file, uint64_t line, const char *function,
                                  OTF2_ErrorCode error, const char *format, va_list arguments)
{
    (void)data;
    (void)line;
    (void)function;
    (void)format;
    (void)arguments;
    log_debug("OTF2: error=%s file=%s", OTF2_Error_GetName(error), file);
    return error;
}

static OTF2_StringRef add_string(struct writing *writing, const char *text)
{
    note(writing,
         OTF2_GlobalDefWriter_WriteString(writing->definitions, writing->next_string, text));
    return writing->next_string++;
}

/* Nodes: the job, then a host each. */
static OTF2_SystemTreeNodeRef host_of(const struct timeline *timeline, size_t process)
{
    OTF2_SystemTreeNodeRef count = 0;
    for (size_t i = 0; i <= process; i++) {
        size_t first = 0;
        while (strcmp(timeline->processes[first].host, timeline->processes[i].host) != 0) {
            first++;
        }
        count += first == i;
        if (strcmp(timeline->processes[i].host, timeline->processes[process].host) == 0) {
            return count;
        }
    }
    return count;
}

static void define_processes(struct writing *writing)
{
    const struct timeline *timeline = writing->timeline;
    OTF2_GlobalDefWriter *definitions = writing->definitions;
    OTF2_SystemTreeNodeRef hosts = 0;
    note(writing, OTF2_GlobalDefWriter_WriteSystemTreeNode(
                      definitions, 0, add_string(writing, "job"), add_string(writing, "machine"),
                      OTF2_UNDEFINED_SYSTEM_TREE_NODE));
    for (size_t i = 0; i < timeline->process_count; i++) {
        const struct timeline_process *process = &timeline->processes[i];
        OTF2_SystemTreeNodeRef host = host_of(timeline, i);
        if (host > hosts) {
            hosts = host;
            note(writing, OTF2_GlobalDefWriter_WriteSystemTreeNode(
                              definitions, host, add_string(writing, process->host),
                              add_string(writing, "node"), 0));
        }
        char name[TEXT_BYTES];
        snprintf(name, sizeof(name), "%s %u", process->role, process->number);
        note(writing, OTF2_GlobalDefWriter_WriteLocationGroup(
                          definitions, (OTF2_LocationGroupRef)i, add_string(writing, name),
                          OTF2_LOCATION_GROUP_TYPE_PROCESS, host, OTF2_UNDEFINED_LOCATION_GROUP));
    }
}

static void define_threads(struct writing *writing)
{
    const struct timeline *timeline = writing->timeline;
    for (size_t i = 0; i < timeline->thread_count; i++) {
        const struct timeline_thread *thread = &timeline->threads[i];
        char name[TEXT_BYTES];
        snprintf(name, sizeof(name), "%s %u", trace_threads[thread->thread], thread->number);
        note(writing, OTF2_GlobalDefWriter_WriteLocation(
                          writing->definitions, i, add_string(writing, name),
                          OTF2_LOCATION_TYPE_CPU_THREAD, writing->counts[i], thread->process));
    }
}

static OTF2_RegionRole role_of(enum trace_kind kind)
{
    bool is_message = kind == TRACE_SEND || kind == TRACE_RECEIVE || kind == TRACE_SHARD_RECEIVE ||
                      kind == TRACE_CONTROL;
    return is_message ? OTF2_REGION_ROLE_POINT2POINT : OTF2_REGION_ROLE_FUNCTION;
}

static void define_regions(struct writing *writing)
{
    OTF2_StringRef nothing = add_string(writing, "");
    for (size_t i = 0; i < writing->events.region_count; i++) {
        const struct otf2_region *region = &writing->events.regions[i];
        OTF2_StringRef name = add_string(writing, region->name);
        OTF2_StringRef kind = add_string(writing, trace_kinds[region->kind].key);
        note(writing,
             OTF2_GlobalDefWriter_WriteRegion(writing->definitions, (OTF2_RegionRef)i, name, name,
                                              kind, role_of(region->kind), OTF2_PARADIGM_USER,
                                              OTF2_REGION_FLAG_NONE, nothing, 0, 0));
    }
}

/* All threads may exchange messages. */
static void define_communicator(struct writing *writing)
{
    size_t count = writing->timeline->thread_count;
    uint64_t *members = calloc(count + 1, sizeof(*members));
    if (members == NULL) {
        note(writing, OTF2_ERROR_MEM_FAULT);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        members[i] = i;
    }
    OTF2_StringRef nothing = add_string(writing, ""), name = add_string(writing, "messages");
    OTF2_GlobalDefWriter *definitions = writing->definitions;
    note(writing, OTF2_GlobalDefWriter_WriteGroup(definitions, 0, nothing,
                                                  OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI,
                                                  OTF2_GROUP_FLAG_NONE, (uint32_t)count, members));
    note(writing, OTF2_GlobalDefWriter_WriteGroup(definitions, 1, name, OTF2_GROUP_TYPE_COMM_GROUP,
                                                  OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE,
                                                  (uint32_t)count, members));
    note(writing, OTF2_GlobalDefWriter_WriteComm(definitions, OTF2_JOB_COMM, name, 1,
                                                 OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE));
    free(members);
}

static void define_metrics(struct writing *writing)
{
    OTF2_GlobalDefWriter *definitions = writing->definitions;
    for (unsigned kind = 0; kind < TRACE_KIND_COUNT; kind++) {
        const struct trace_kind_row *row = &trace_kinds[kind];
        if (row->unit == NULL) {
            continue;
        }
        OTF2_MetricRef metric = otf2_metric_of((enum trace_kind)kind);
        OTF2_StringRef name = add_string(writing, row->name);
        note(writing, OTF2_GlobalDefWriter_WriteMetricMember(
                          definitions, metric, name, name, OTF2_METRIC_TYPE_OTHER,
                          OTF2_METRIC_ABSOLUTE_POINT, OTF2_TYPE_DOUBLE, OTF2_BASE_DECIMAL, 0,
                          add_string(writing, row->unit)));
        note(writing, OTF2_GlobalDefWriter_WriteMetricClass(definitions, metric, 1, &metric,
                                                            OTF2_METRIC_ASYNCHRONOUS,
                                                            OTF2_RECORDER_KIND_ABSTRACT));
    }
}

static void define_attributes(struct writing *writing)
{
    static const struct {
        OTF2_AttributeRef ref;
        const char *name, *meaning;
        OTF2_Type type;
    } attributes[] = {
        {OTF2_ATTRIBUTE_STEP, "step", "of the job, from 1", OTF2_TYPE_UINT64},
        {OTF2_ATTRIBUTE_BUCKET, "bucket", "in the order of backward", OTF2_TYPE_UINT32},
        {OTF2_ATTRIBUTE_BYTES, "bytes", "of a message's values", OTF2_TYPE_UINT64},
    };
    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
        note(writing,
             OTF2_GlobalDefWriter_WriteAttribute(
                 writing->definitions, attributes[i].ref, add_string(writing, attributes[i].name),
                 add_string(writing, attributes[i].meaning), attributes[i].type));
    }
}

static void write_definitions(struct writing *writing)
{
    const struct timeline *timeline = writing->timeline;
    writing->definitions = OTF2_Archive_GetGlobalDefWriter(writing->archive);
    if (writing->definitions == NULL) {
        note(writing, OTF2_ERROR_MEM_FAULT);
        return;
    }
    note(writing, OTF2_GlobalDefWriter_WriteClockProperties(
                      writing->definitions, NS_PER_SECOND, 0,
                      timeline->end_ns - timeline->begin_ns + 1, OTF2_UNDEFINED_TIMESTAMP));
    define_attributes(writing);
    define_processes(writing);
    define_threads(writing);
    define_regions(writing);
    define_communicator(writing);
    define_metrics(writing);
}

static void write_thread(struct writing *writing, size_t thread)
{
    OTF2_EvtWriter *writer = OTF2_Archive_GetEvtWriter(writing->archive, thread);
    if (writer == NULL) {
        note(writing, OTF2_ERROR_MEM_FAULT);
        return;
    }
    note(writing, otf2_events_write(&writing->events, thread, writer, &writing->counts[thread]));
    note(writing, OTF2_Archive_CloseEvtWriter(writing->archive, writer));
}

/* Every location has a file of definitions, which has nothing of its own. */
static void write_local_definitions(struct writing *writing, size_t thread)
{
    OTF2_DefWriter *writer = OTF2_Archive_GetDefWriter(writing->archive, thread);
    note(writing, writer != NULL ? OTF2_Archive_CloseDefWriter(writing->archive, writer)
                                 : OTF2_ERROR_MEM_FAULT);
}

static void write_files(struct writing *writing)
{
    size_t threads = writing->timeline->thread_count;
    note(writing, OTF2_Archive_SetFlushCallbacks(writing->archive, &flush_callbacks, NULL));
    note(writing, OTF2_Archive_SetSerialCollectiveCallbacks(writing->archive));
    note(writing, OTF2_Archive_SetCreator(writing->archive, "ringside " RINGSIDE_VERSION));
    note(writing, OTF2_Archive_OpenEvtFiles(writing->archive));
    for (size_t i = 0; i < threads && writing->error == OTF2_SUCCESS; i++) {
        write_thread(writing, i);
    }
    note(writing, OTF2_Archive_CloseEvtFiles(writing->archive));
    note(writing, OTF2_Archive_OpenDefFiles(writing->archive));
    for (size_t i = 0; i < threads && writing->error == OTF2_SUCCESS; i++) {
        write_local_definitions(writing, i);
    }
    note(writing, OTF2_Archive_CloseDefFiles(writing->archive));
    if (writing->error == OTF2_SUCCESS) {
        write_definitions(writing);
    }
}

static enum status write_archive(struct writing *writing, const char *folder)
{
    OTF2_Error_RegisterCallback(say_nothing, NULL);
    writing->archive =
        OTF2_Archive_Open(folder, OTF2_ARCHIVE_NAME, OTF2_FILEMODE_WRITE, CHUNK_EVENT_BYTES,
                          CHUNK_DEFINITION_BYTES, OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    if (writing->archive == NULL) {
        log_error("%s: no OTF2 archive can be opened there", folder);
        return STATUS_IO;
    }
    write_files(writing);
    note(writing, OTF2_Archive_Close(writing->archive));
    if (writing->error != OTF2_SUCCESS) {
        log_error("%s: the OTF2 archive cannot be written: %s", folder,
                  OTF2_Error_GetDescription(writing->error));
        return STATUS_IO;
    }
    return STATUS_OK;
}

enum status otf2_archive_write(const char *folder, const struct timeline *timeline,
                               const struct timeline_flow *flows, size_t flow_count)
{
    struct writing writing = {.timeline = timeline};
    enum status status = otf2_events_prepare(timeline, flows, flow_count, &writing.events);
    writing.counts = calloc(timeline->thread_count + 1, sizeof(*writing.counts));
    if (status == STATUS_OK && writing.counts != NULL) {
        status = write_archive(&writing, folder);
    } else {
        log_error("there is no memory for the OTF2 archive");
        status = STATUS_NO_MEMORY;
    }
    free(writing.counts);
    otf2_events_finish(&writing.events);
    return status;
}
