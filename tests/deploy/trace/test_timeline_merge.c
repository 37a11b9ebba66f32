/* Parts of several processes, on clocks that differ, to one timeline. */
#include "common/trace/trace_packet.h"
#include "deploy/trace/timeline.h"
#include "deploy/trace/timeline_merge.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

/* A part that is written packet by packet. */
struct part {
    unsigned char bytes[16384];
    size_t size;
    uint64_t track; // of the process; its thread's is the next one
};

static void put(struct part *part, struct trace_packet packet)
{
    unsigned char bytes[TRACE_PACKET_BYTES];
    packet.sequence = (uint32_t)part->track;
    size_t size = trace_packet_encode(&packet, bytes);
    assert_true(size > 0 && size <= sizeof(part->bytes) - part->size);
    memcpy(part->bytes + part->size, bytes, size);
    part->size += size;
}

static int64_t machine; // of all processes

static void describe(struct part *part, const char *role, bool is_coordinator, int64_t host_id)
{
    part->size = 0;
    put(part, (struct trace_packet){
                  .type = TRACE_PACKET_PROCESS, .track = part->track, .pid = 1, .name = role});
    put(part, (struct trace_packet){.type = TRACE_PACKET_INSTANT,
                                    .track = part->track,
                                    .name = "process",
                                    .notes = {{.name = "role", .text = role},
                                              {.name = "coordinator", .number = is_coordinator},
                                              {.name = "host-id", .number = host_id},
                                              {.name = "machine", .number = machine}},
                                    .note_count = 4});
    put(part, (struct trace_packet){
                  .type = TRACE_PACKET_THREAD, .track = part->track + 1, .name = "thread"});
    put(part, (struct trace_packet){
                  .type = TRACE_PACKET_INSTANT,
                  .track = part->track + 1,
                  .name = "thread",
                  .notes = {{.name = "thread", .text = is_coordinator ? "coordinator" : "compute"}},
                  .note_count = 1});
}

static void put_slice(struct part *part, const char *category, uint64_t from_ns, uint64_t flow)
{
    put(part, (struct trace_packet){.type = TRACE_PACKET_BEGIN,
                                    .track = part->track + 1,
                                    .time_ns = from_ns,
                                    .name = category,
                                    .category = category,
                                    .flow = flow,
                                    .ends_flow = strcmp(category, "send") != 0});
    put(part, (struct trace_packet){
                  .type = TRACE_PACKET_END, .track = part->track + 1, .time_ns = from_ns + 1000});
}

static void put_ping(struct part *part, uint64_t sent_ns, uint64_t there_ns, uint64_t received_ns)
{
    put(part, (struct trace_packet){.type = TRACE_PACKET_INSTANT,
                                    .track = part->track + 1,
                                    .time_ns = received_ns,
                                    .name = "ping",
                                    .notes = {{.name = "sent", .number = (int64_t)sent_ns},
                                              {.name = "there", .number = (int64_t)there_ns},
                                              {.name = "received", .number = (int64_t)received_ns}},
                                    .note_count = 3});
}

static void write_part(const char *folder, const char *name, const struct part *part)
{
    char path[64];
    snprintf(path, sizeof(path), "timeline/%s.pftrace", name);
    temp_folder_write(folder, path, part->bytes, part->size);
}

/* The coordinator receives at 100 ms what a worker sends at 7,099 ms of its own clock, which is
 * 7 s ahead, and sends what the worker receives at 7,103 ms. */
static void write_two(const char *folder, int64_t workers_host)
{
    static struct part part;
    part.track = 0x10000;
    describe(&part, "ps", true, 1);
    put_slice(&part, "control", 100 * MS, 5);
    put_slice(&part, "send", 102 * MS, 6);
    put_slice(&part, "send", 104 * MS, 7); // which nobody receives
    write_part(folder, "ps", &part);
    part.track = 0x50000;
    describe(&part, "worker", false, workers_host);
    put_ping(&part, 7090 * MS, 90 * MS + MS / 2, 7091 * MS);
    put_ping(&part, 7000 * MS, 30 * MS, 7050 * MS);
    put_slice(&part, "send", 7099 * MS, 5);
    put_slice(&part, "receive", 7103 * MS, 6);
    write_part(folder, "worker", &part);
}

static void read_merged(const char *folder, struct timeline *ret_timeline)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/timeline.pftrace", folder);
    assert_int_equal(timeline_read(path, ret_timeline), STATUS_OK);
}

static void times_are_those_of_the_coordinators_clock(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), path[600];
    struct timeline timeline;
    struct timeline_flow *flows;
    size_t count;
    write_two(folder, 2);
    assert_int_equal(timeline_merge(folder), STATUS_OK);
    read_merged(folder, &timeline);
    assert_int_equal(timeline.process_count, 2);
    assert_int_equal(timeline.event_count, 5);
    assert_int_equal(timeline.begin_ns, 99 * MS); // the worker's send
    assert_int_equal(timeline_list_flows(&timeline, &flows, &count), STATUS_OK);
    assert_int_equal(count, 2); // the arrow without an end is gone
    assert_int_equal(timeline_count_impossible(&timeline, flows, count), 0);
    for (size_t i = 0; i < timeline.process_count; i++) {
        bool is_worker = strcmp(timeline.processes[i].role, "worker") == 0;
        assert_int_equal(timeline.processes[i].uncertainty_ns, is_worker ? MS / 2 : 0);
    }
    snprintf(path, sizeof(path), "%s/timeline", folder);
    assert_int_not_equal(access(path, F_OK), 0); // parts are needed no more
    free(flows);
    timeline_finish(&timeline);
    temp_folder_destroy(folder);
}

static void a_clock_that_differs_on_one_host_is_found_out(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    struct timeline timeline;
    write_two(folder, 1); // as if of the coordinator's host
    captured_log_begin();
    enum status status = timeline_merge(folder);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_OK);
    assert_non_null(strstr(log, "its clock differs"));
    read_merged(folder, &timeline);
    assert_int_equal(timeline.begin_ns, 99 * MS);
    timeline_finish(&timeline);
    temp_folder_destroy(folder);
}

static void hosts_of_one_machine_have_one_clock(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    machine = 5;
    write_two(folder, 2); // whose clocks differ, which the log says of near ones alone
    captured_log_begin();
    enum status status = timeline_merge(folder);
    const char *log = captured_log_end();
    machine = 0;
    assert_int_equal(status, STATUS_OK);
    assert_non_null(strstr(log, "its clock differs"));
    temp_folder_destroy(folder);
}

static void a_damaged_part_is_named_with_the_place(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    static struct part part;
    part.track = 0x10000;
    describe(&part, "ps", true, 1);
    size_t sound = part.size;
    memcpy(part.bytes + sound, "rubbish", 7);
    part.size += 7;
    write_part(folder, "ps", &part);
    captured_log_begin();
    enum status status = timeline_merge(folder);
    const char *log = captured_log_end();
    char place[64];
    snprintf(place, sizeof(place), "ps.pftrace is damaged at byte %zu of %zu", sound, sound + 7);
    assert_int_equal(status, STATUS_MALFORMED);
    assert_non_null(strstr(log, place));
    temp_folder_destroy(folder);
}

static void a_slice_that_only_ends_is_refused(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    static struct part part;
    struct timeline timeline;
    char path[600];
    part.track = 0x10000;
    describe(&part, "ps", true, 1);
    put(&part, (struct trace_packet){.type = TRACE_PACKET_END, .track = part.track + 1});
    temp_folder_write(folder, "timeline.pftrace", part.bytes, part.size);
    snprintf(path, sizeof(path), "%s/timeline.pftrace", folder);
    captured_log_begin();
    enum status status = timeline_read(path, &timeline);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_MALFORMED);
    assert_non_null(strstr(log, "the end of a slice that did not begin"));
    temp_folder_destroy(folder);
}

static void text_of_a_file_cannot_steer_the_terminal(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    static struct part part;
    struct timeline timeline;
    char path[4200];
    part.track = 0x10000;
    describe(&part, "p\033[2Js", true, 1);
    temp_folder_write(folder, "timeline.pftrace", part.bytes, part.size);
    snprintf(path, sizeof(path), "%s/timeline.pftrace", folder);
    assert_int_equal(timeline_read(path, &timeline), STATUS_OK);
    assert_string_equal(timeline.processes[0].role, "p?[2Js");
    timeline_finish(&timeline);
    temp_folder_destroy(folder);
}

/* One process more than there is room for. */
static void too_many_processes_are_refused(void **state)
{
    (void)state;
    const size_t count = TIMELINE_PROCESSES_MAX + 1;
    unsigned char packet[TRACE_PACKET_BYTES];
    const struct trace_packet process = {
        .type = TRACE_PACKET_INSTANT, .track = 0x10000, .name = "process"};
    size_t size = trace_packet_encode(&process, packet);
    unsigned char *bytes = malloc(count * size);
    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++) {
        memcpy(bytes + i * size, packet, size);
    }
    char *folder = temp_folder_create(), path[4200];
    struct timeline timeline;
    temp_folder_write(folder, "timeline.pftrace", bytes, count * size);
    snprintf(path, sizeof(path), "%s/timeline.pftrace", folder);
    assert_int_equal(timeline_read(path, &timeline), STATUS_NO_MEMORY);
    free(bytes);
    temp_folder_destroy(folder);
}

static void without_parts_there_is_no_timeline(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    assert_int_equal(timeline_merge(folder), STATUS_END_OF_DATA);
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_those_of_the_coordinators_clock),
        cmocka_unit_test(a_clock_that_differs_on_one_host_is_found_out),
        cmocka_unit_test(hosts_of_one_machine_have_one_clock),
        cmocka_unit_test(a_damaged_part_is_named_with_the_place),
        cmocka_unit_test(a_slice_that_only_ends_is_refused),
        cmocka_unit_test(text_of_a_file_cannot_steer_the_terminal),
        cmocka_unit_test(too_many_processes_are_refused),
        cmocka_unit_test(without_parts_there_is_no_timeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
