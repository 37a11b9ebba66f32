/* Recording: what fits, what does not, and what the file says. */
#include "common/trace/trace.h"
#include "common/trace/trace_packet.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct trace_window all = {0, UINT64_MAX};

static struct trace_tape *open_tape(struct trace *trace, enum trace_thread thread, uint32_t number,
                                    const struct trace_window *window)
{
    struct trace_tape *tape;
    assert_int_equal(trace_open_tape(trace, thread, number, window, &tape), STATUS_OK);
    return tape;
}

static void without_a_folder_nothing_is_recorded(void **state)
{
    (void)state;
    struct trace *trace;
    assert_int_equal(trace_create("", &trace), STATUS_OK);
    assert_null(open_tape(trace, TRACE_COMPUTE, 0, &all));
    assert_null(open_tape(NULL, TRACE_COMPUTE, 0, &all));
    assert_int_equal(trace_begin(NULL), 0);
    trace_end(NULL, 0, &(struct trace_tag){TRACE_STEP});
    trace_add_ping(NULL, &(struct trace_ping){0});
    assert_int_equal(trace_next_flow(NULL, 0), 0);
    assert_int_equal(trace_write(trace), STATUS_OK);
    trace_destroy(trace);
}

static void only_steps_of_the_window_are_recorded(void **state)
{
    (void)state;
    struct trace *trace;
    const struct trace_window window = {10, 12};
    assert_int_equal(trace_create("/nowhere", &trace), STATUS_OK);
    struct trace_tape *tape = open_tape(trace, TRACE_COMPUTE, 3, &window);
    for (uint64_t step = 0; step < 20; step++) {
        trace_note(tape, &(struct trace_tag){TRACE_READY, .step = step});
        assert_int_equal(trace_next_flow(tape, step) != 0, step == 10 || step == 11);
    }
    assert_int_equal(tape->count, 2);
    assert_int_equal(tape->events[0].tag.step, 10);
    assert_int_equal(tape->dropped, 0);
    assert_ptr_equal(open_tape(trace, TRACE_COMPUTE, 3, &window), tape); // of a later generation
    trace_destroy(trace);
}

static void what_does_not_fit_is_counted(void **state)
{
    (void)state;
    struct trace *trace;
    assert_int_equal(trace_create("/nowhere", &trace), STATUS_OK);
    struct trace_tape *tape = open_tape(trace, TRACE_SHARD, 0, &all);
    for (uint32_t i = 0; i < TRACE_EVENTS_MAX + 5; i++) {
        trace_record(tape, i, i + 1, &(struct trace_tag){TRACE_UPDATE, .step = i});
    }
    assert_int_equal(tape->count, TRACE_EVENTS_MAX);
    assert_int_equal(tape->dropped, 5);
    assert_int_equal(tape->events[TRACE_EVENTS_MAX - 1].tag.step, TRACE_EVENTS_MAX - 1);
    trace_destroy(trace);
}

/* Keeps a core busy until it has worked so long for this thread. */
static void work(uint64_t ns)
{
    uint64_t until_ns = clock_thread_ns() + ns;
    while (clock_thread_ns() < until_ns) {
    }
}

static void slices_say_how_long_a_core_worked(void **state)
{
    (void)state;
    struct trace *trace;
    const struct trace_tag tag = {TRACE_SEND, TRACE_NO_BUCKET};
    assert_int_equal(trace_create("/nowhere", &trace), STATUS_OK);
    struct trace_tape *tape = open_tape(trace, TRACE_COMMUNICATION, 0, &all);
    uint64_t outer_ns = trace_begin(tape);
    for (uint32_t i = 0; i < 40; i++) { // more than are kept: none of them is recorded
        (void)trace_begin(tape);
    }
    uint64_t inner_ns = trace_begin(tape);
    work(2000000);
    trace_end(tape, inner_ns, &tag);
    trace_end(tape, outer_ns, &tag);
    outer_ns = trace_begin(tape);
    inner_ns = trace_begin(tape);
    work(1000000);
    trace_end(tape, inner_ns, &tag);
    work(1000000);
    trace_end(tape, outer_ns, &tag);
    trace_record(tape, 5, 6, &tag);
    assert_int_equal(tape->count, 5);
    assert_true(tape->events[0].cpu_ns >= 2000000);
    assert_true(tape->events[1].cpu_ns == TRACE_CPU_UNKNOWN);
    assert_true(tape->events[2].cpu_ns >= 1000000);
    assert_true(tape->events[3].cpu_ns >= tape->events[2].cpu_ns + 1000000);
    assert_true(tape->events[4].cpu_ns == TRACE_CPU_UNKNOWN);
    trace_note_cpu(tape, 7);
    assert_int_equal(tape->events[5].tag.kind, TRACE_THREAD_CPU);
    assert_true(tape->events[5].tag.value >= 4e-3);
    assert_int_equal(tape->events[6].tag.kind, TRACE_PROCESS_CPU);
    assert_true(tape->events[6].tag.value >= tape->events[5].tag.value);
    trace_destroy(trace);
}

static void messages_of_two_threads_have_numbers_of_their_own(void **state)
{
    (void)state;
    struct trace *trace;
    assert_int_equal(trace_create("/nowhere", &trace), STATUS_OK);
    struct trace_tape *a = open_tape(trace, TRACE_SHARD, 0, &all);
    struct trace_tape *b = open_tape(trace, TRACE_SHARD, 1, &all);
    uint64_t first = trace_next_flow(a, 0), second = trace_next_flow(a, 0);
    assert_true(first != second && first != trace_next_flow(b, 0));
    trace_destroy(trace);
}

static void rounds_of_a_phase_are_steps_of_the_job(void **state)
{
    (void)state;
    struct trace *trace;
    assert_int_equal(trace_create("/nowhere", &trace), STATUS_OK);
    struct trace_tape *tape = open_tape(trace, TRACE_COMMUNICATION, 0, &all);
    assert_int_equal(trace_step_of(tape, 7), 7);
    trace_begin_phase(tape, 100, 4);
    assert_int_equal(trace_step_of(tape, 7), 128);
    trace_destroy(trace);
}

/* The only file of the folder, in memory. */
static unsigned char *read_file(const char *folder, size_t *ret_size)
{
    char path[1000] = "";
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (strstr(entry->d_name, ".pftrace") != NULL) {
            assert_string_equal(path, "");
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        }
    }
    closedir(entries);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    unsigned char *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    *ret_size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

/* What a reader sees: "begin:name", in order, without tracks and their facts. */
static void list_events(const unsigned char *bytes, size_t size, char *ret_text, size_t text_size)
{
    static struct trace_scratch scratch;
    static const char *const types[] = {[TRACE_PACKET_BEGIN] = "begin",
                                        [TRACE_PACKET_END] = "end",
                                        [TRACE_PACKET_INSTANT] = "at",
                                        [TRACE_PACKET_COUNTER] = "count"};
    struct trace_packet packet;
    size_t used, written = 0;
    ret_text[0] = '\0';
    for (size_t at = 0; at < size; at += used) {
        assert_int_equal(trace_packet_decode(bytes + at, size - at, &scratch, &used, &packet),
                         STATUS_OK);
        if (packet.type >= TRACE_PACKET_BEGIN &&
            (packet.category != NULL || packet.type == TRACE_PACKET_END)) {
            written += (size_t)snprintf(ret_text + written, text_size - written, "%s %llu %s; ",
                                        types[packet.type], (unsigned long long)packet.time_ns,
                                        packet.name != NULL ? packet.name : "");
        }
    }
}

static void the_file_has_slices_within_slices(void **state)
{
    (void)state;
    char folder[600], text[1000], *above = temp_folder_create();
    struct trace *trace;
    snprintf(folder, sizeof(folder), "%s/timeline", above);
    assert_int_equal(trace_create(folder, &trace), STATUS_OK);
    trace_describe(trace, &(struct trace_process){.role = "worker", .number = 2, .host = "here"});
    struct trace_tape *tape = open_tape(trace, TRACE_COMPUTE, 2, &all);
    // In the order in which they end, as they are recorded.
    trace_record(tape, 120, 130, &(struct trace_tag){TRACE_EXCHANGE, TRACE_NO_BUCKET});
    trace_record(tape, 110, 150, &(struct trace_tag){TRACE_BACKWARD, 3});
    trace_record(tape, 135, 148,
                 &(struct trace_tag){TRACE_LAYER_BACKWARD, 3, .layers = "conv2d 2"});
    trace_record(tape, 160, 160, &(struct trace_tag){TRACE_READY, 3});
    trace_record(tape, 100, 200, &(struct trace_tag){TRACE_STEP, TRACE_NO_BUCKET});
    trace_record(tape, 200, 200, &(struct trace_tag){TRACE_STALENESS, .value = 2});
    assert_int_equal(trace_write(trace), STATUS_OK);
    trace_destroy(trace);
    size_t size;
    unsigned char *bytes = read_file(folder, &size);
    list_events(bytes, size, text, sizeof(text));
    assert_string_equal(
        text, "begin 100 step; begin 110 backward 3; begin 120 exchange; end 130 ; "
              "begin 135 conv2d 2; end 148 ; end 150 ; at 160 ready 3; end 200 ; count 200 ; ");
    free(bytes);
    temp_folder_destroy(above);
}

static void texts_are_kept_once_where_something_is_recorded(void **state)
{
    (void)state;
    struct trace *trace;
    char text[] = "linear 5";
    assert_null(trace_keep(NULL, text));
    assert_int_equal(trace_create("", &trace), STATUS_OK);
    assert_null(trace_keep(trace, text));
    trace_destroy(trace);
    assert_int_equal(trace_create("/nowhere", &trace), STATUS_OK);
    const char *kept = trace_keep(trace, text);
    text[0] = 'L';
    assert_string_equal(kept, "linear 5");
    assert_ptr_not_equal(trace_keep(trace, text), kept);
    assert_ptr_equal(trace_keep(trace, "linear 5"), kept);
    trace_destroy(trace);
}

static void a_folder_that_cannot_be_made_is_an_error(void **state)
{
    (void)state;
    struct trace *trace;
    assert_int_equal(trace_create("/dev/null/timeline", &trace), STATUS_OK);
    trace_describe(trace, &(struct trace_process){.role = "ps", .host = "here"});
    open_tape(trace, TRACE_SHARD, 0, &all);
    assert_int_equal(trace_write(trace), STATUS_IO);
    trace_destroy(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_folder_nothing_is_recorded),
        cmocka_unit_test(only_steps_of_the_window_are_recorded),
        cmocka_unit_test(what_does_not_fit_is_counted),
        cmocka_unit_test(slices_say_how_long_a_core_worked),
        cmocka_unit_test(messages_of_two_threads_have_numbers_of_their_own),
        cmocka_unit_test(rounds_of_a_phase_are_steps_of_the_job),
        cmocka_unit_test(the_file_has_slices_within_slices),
        cmocka_unit_test(texts_are_kept_once_where_something_is_recorded),
        cmocka_unit_test(a_folder_that_cannot_be_made_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
