/* Packets of a Perfetto trace. */
#include "common/trace/trace_packet.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <string.h>

static struct trace_scratch scratch;

static void a_slice_comes_back_as_it_was(void **state)
{
    (void)state;
    unsigned char bytes[TRACE_PACKET_BYTES];
    struct trace_packet sent = {
        .type = TRACE_PACKET_BEGIN,
        .sequence = 7,
        .time_ns = UINT64_C(1) << 62,
        .track = UINT64_MAX,
        .name = "backward 3",
        .category = "backward",
        .flow = UINT64_MAX - 1,
        .ends_flow = true,
        .notes = {{.name = "step", .number = -5}, {.name = "message", .text = "PUSH"}},
        .note_count = 2};
    struct trace_packet got;
    size_t used, size = trace_packet_encode(&sent, bytes);
    assert_true(size > 0);
    assert_int_equal(trace_packet_decode(bytes, size, &scratch, &used, &got), STATUS_OK);
    assert_int_equal(used, size);
    assert_int_equal(got.type, TRACE_PACKET_BEGIN);
    assert_int_equal(got.sequence, 7);
    assert_true(got.time_ns == sent.time_ns && got.track == sent.track && got.flow == sent.flow);
    assert_true(got.ends_flow);
    assert_string_equal(got.name, "backward 3");
    assert_string_equal(got.category, "backward");
    assert_int_equal(trace_packet_note(&got, "step")->number, -5);
    assert_string_equal(trace_packet_note(&got, "message")->text, "PUSH");
    assert_null(trace_packet_note(&got, "bucket"));
}

static void a_packet_is_what_the_published_format_says(void **state)
{
    (void)state;
    // Field 1 of Trace; in it 10: sequence 1, 11: {9: slice end, 11: track 5}, 8: 2, 58: 3.
    static const unsigned char expected[] = {0x0A, 0x0D, 0x40, 0x02, 0x50, 0x01, 0x5A, 0x04,
                                             0x48, 0x02, 0x58, 0x05, 0xD0, 0x03, 0x03};
    unsigned char bytes[TRACE_PACKET_BYTES];
    const struct trace_packet end = {
        .type = TRACE_PACKET_END, .sequence = 1, .time_ns = 2, .track = 5};
    assert_int_equal(trace_packet_encode(&end, bytes), sizeof(expected));
    assert_memory_equal(bytes, expected, sizeof(expected));
}

static void a_packet_that_is_cut_off_is_not_taken(void **state)
{
    (void)state;
    unsigned char bytes[TRACE_PACKET_BYTES];
    struct trace_packet got;
    const struct trace_packet track = {
        .type = TRACE_PACKET_PROCESS, .track = 1, .pid = 4, .name = "worker 0"};
    size_t used, size = trace_packet_encode(&track, bytes);
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(trace_packet_decode(bytes, i, &scratch, &used, &got), STATUS_END_OF_DATA);
    }
    bytes[0] = 0x12; // field 2: no packet
    assert_int_equal(trace_packet_decode(bytes, size, &scratch, &used, &got), STATUS_MALFORMED);
}

static void a_packet_that_claims_to_be_huge_is_malformed(void **state)
{
    (void)state;
    static const unsigned char huge[] = {0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0x00};
    static const unsigned char endless[] = {0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
    struct trace_packet got;
    size_t used;
    assert_int_equal(trace_packet_decode(huge, sizeof(huge), &scratch, &used, &got),
                     STATUS_MALFORMED);
    assert_int_equal(trace_packet_decode(endless, sizeof(endless), &scratch, &used, &got),
                     STATUS_MALFORMED);
}

static void a_name_without_room_is_not_packed(void **state)
{
    (void)state;
    static char name[TRACE_PACKET_BYTES];
    unsigned char bytes[TRACE_PACKET_BYTES];
    memset(name, 'x', sizeof(name) - 1);
    const struct trace_packet packet = {.type = TRACE_PACKET_INSTANT, .name = name};
    assert_int_equal(trace_packet_encode(&packet, bytes), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slice_comes_back_as_it_was),
        cmocka_unit_test(a_packet_is_what_the_published_format_says),
        cmocka_unit_test(a_packet_that_is_cut_off_is_not_taken),
        cmocka_unit_test(a_packet_that_claims_to_be_huge_is_malformed),
        cmocka_unit_test(a_name_without_room_is_not_packed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
