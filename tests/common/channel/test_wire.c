/* Tests of the wire: round trips, and everything that decode must refuse. */
#include "common/base/random.h"
#include "tests/support/common/wire_samples.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static const float values[4]; // as many as samples carry

static void every_kind_comes_back_as_it_was(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < MESSAGE_KIND_COUNT; kind++) {
        const struct message sent = wire_sample((enum message_kind)kind),
                             got = wire_sample_send(&sent);
        assert_int_equal(got.kind, sent.kind);
        assert_int_equal(got.job_id, sent.job_id);
        assert_int_equal(got.rank, sent.rank);
        assert_int_equal(got.step, sent.step);
        assert_int_equal(got.bucket, sent.bucket);
        assert_int_equal(got.hop, sent.hop);
        assert_int_equal(got.vector, sent.vector);
        assert_int_equal(got.params_version, sent.params_version);
        assert_int_equal(got.mark, sent.mark);
        assert_int_equal(got.patience_ms, sent.patience_ms);
        assert_int_equal(got.reason, sent.reason);
        assert_string_equal(got.text, sent.text);
        assert_int_equal(got.span.offset, sent.span.offset);
        assert_int_equal(got.span.count, sent.span.count);
        assert_ptr_equal(got.values, sent.values);
        assert_int_equal(got.member != NULL, sent.member != NULL);
        assert_int_equal(got.report != NULL, sent.report != NULL);
        assert_int_equal(got.layout != NULL, sent.layout != NULL);
        assert_int_equal(got.start != NULL, sent.start != NULL);
        assert_int_equal(got.path != NULL, sent.path != NULL);
        assert_int_equal(got.passed != NULL, sent.passed != NULL);
        assert_int_equal(got.decision != NULL, sent.decision != NULL);
        assert_int_equal(got.sum != NULL, sent.sum != NULL);
        assert_int_equal(got.outcome != NULL, sent.outcome != NULL);
        assert_int_equal(got.hello != NULL, sent.hello != NULL);
        assert_int_equal(got.probe != NULL, sent.probe != NULL);
        assert_int_equal(got.offer != NULL, sent.offer != NULL);
        assert_int_equal(got.loan != NULL, sent.loan != NULL);
        assert_int_equal(got.seal_key != NULL, sent.seal_key != NULL);
        if (got.seal_key != NULL) {
            assert_memory_equal(got.seal_key, sent.seal_key, WIRE_SEAL_KEY_BYTES);
        }
    }
}

static void a_payload_of_another_size_is_refused(void **state)
{
    (void)state;
    struct message sent = wire_sample(MESSAGE_PUSH), got;
    size_t size = wire_sample_encode(&sent);
    assert_int_equal(wire_sample_decode_as(size, values, sizeof(values) - 4, &got),
                     STATUS_MALFORMED);
    assert_int_equal(wire_sample_decode_as(size, values, sizeof(values) - 1, &got),
                     STATUS_MALFORMED);
    assert_int_equal(wire_sample_decode_as(size, NULL, 0, &got), STATUS_MALFORMED);
    sent = wire_sample(MESSAGE_HEARTBEAT);
    assert_int_equal(wire_sample_decode_as(wire_sample_encode(&sent), values, 4, &got),
                     STATUS_MALFORMED);
}

static void a_span_whose_bytes_overflow_is_refused(void **state)
{
    (void)state;
    struct message sent = wire_sample(MESSAGE_PUSH), got;
    sent.span.count = UINT64_MAX / 4 + 5; // times 4 wraps to 16, the size of the payload
    assert_int_equal(wire_sample_decode_as(wire_sample_encode(&sent), values, sizeof(values), &got),
                     STATUS_MALFORMED);
}

static void a_layout_with_overlapping_buckets_is_refused(void **state)
{
    (void)state;
    struct message sent = wire_sample(MESSAGE_START), got;
    struct layout broken = *sent.layout;
    broken.buckets[0].offset = 5;
    sent.layout = &broken;
    assert_int_equal(wire_sample_decode_as(wire_sample_encode(&sent), NULL, 0, &got),
                     STATUS_MALFORMED);
}

static void values_come_in_the_payload_or_as_a_loan_and_never_both_ways(void **state)
{
    (void)state;
    static const struct wire_loan loan = {.offset = 4096, .ticket = 17};
    struct message sent = wire_sample(MESSAGE_PUSH), got;
    sent.loan = &loan;
    size_t size = wire_sample_encode(&sent);
    assert_int_equal(wire_sample_decode_as(size, NULL, 0, &got), STATUS_OK);
    assert_null(got.values);
    assert_int_equal(got.loan->offset, loan.offset);
    assert_int_equal(got.loan->ticket, loan.ticket);
    assert_int_equal(wire_sample_decode_as(size, values, sizeof(values), &got), STATUS_MALFORMED);
}

static void a_code_takes_the_place_of_values(void **state)
{
    (void)state;
    static const unsigned char encoded[7] = {1, 2, 3, 4, 5, 6, 7};
    struct message sent = wire_sample(MESSAGE_PUSH), got;
    sent.values = NULL;
    sent.encoded = encoded;
    sent.encoded_bytes = sizeof(encoded);
    uint32_t version;
    const size_t size = wire_sample_encode(&sent);
    const struct wire_frames frames = {wire_sample_header, size, encoded, sizeof(encoded)};
    assert_int_equal(wire_decode(&frames, &wire_sample_scratch, &version, &got), STATUS_OK);
    assert_null(got.values);
    assert_ptr_equal(got.encoded, encoded);
    assert_int_equal(got.encoded_bytes, sizeof(encoded));
    const struct wire_frames empty = {wire_sample_header, size, NULL, 0};
    assert_int_equal(wire_decode(&empty, &wire_sample_scratch, &version, &got), STATUS_MALFORMED);
}

static void a_key_for_seals_is_whole_and_comes_with_the_welcome(void **state)
{
    (void)state;
    // The last field of a WELCOME: tag 31, size, bytes.
    struct message sent = wire_sample(MESSAGE_WELCOME), got;
    sent.params_version = sent.mark = sent.patience_ms = 0;
    size_t size = wire_sample_encode(&sent), at = size - WIRE_SEAL_KEY_BYTES - 1;
    assert_int_equal(wire_sample_header[at], WIRE_SEAL_KEY_BYTES);
    wire_sample_header[at] = WIRE_SEAL_KEY_BYTES - 1;
    assert_int_equal(wire_sample_decode_as(size - 1, NULL, 0, &got), STATUS_MALFORMED);
    // The same field behind another kind.
    unsigned char field[WIRE_SEAL_KEY_BYTES + 3];
    wire_sample_header[at] = WIRE_SEAL_KEY_BYTES;
    memcpy(field, wire_sample_header + at - 2, sizeof(field));
    sent = wire_sample(MESSAGE_GO);
    size = wire_sample_encode(&sent);
    memcpy(wire_sample_header + size, field, sizeof(field));
    assert_int_equal(wire_sample_decode_as(size, NULL, 0, &got), STATUS_OK);
    assert_int_equal(wire_sample_decode_as(size + sizeof(field), NULL, 0, &got), STATUS_MALFORMED);
}

static void another_protocol_version_is_told_from_noise(void **state)
{
    (void)state;
    struct message sent = wire_sample(MESSAGE_HEARTBEAT), got;
    size_t size = wire_sample_encode(&sent);
    uint32_t version = 0;
    assert_int_equal(wire_sample_header[0], 0x08); // field 1, the version
    wire_sample_header[1] = WIRE_VERSION + 1;
    const struct wire_frames frames = {wire_sample_header, size, NULL, 0};
    assert_int_equal(wire_decode(&frames, &wire_sample_scratch, &version, &got), STATUS_MISMATCH);
    assert_int_equal(version, WIRE_VERSION + 1);
}

static void a_truncated_header_is_never_taken_for_the_whole(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < MESSAGE_KIND_COUNT; kind++) {
        struct message sent = wire_sample((enum message_kind)kind), got;
        size_t size = wire_sample_encode(&sent);
        for (size_t cut = 0; cut < size; cut++) {
            // A cut between two fields is a sound wire_sample_header with the later ones zero: it
            // may decode, but then to something else.
            if (wire_sample_decode(&sent, cut, &got) == STATUS_OK) {
                assert_true(got.patience_ms != sent.patience_ms || // the last that each kind has
                            (got.outcome != NULL) != (sent.outcome != NULL) ||
                            (got.groups != NULL) != (sent.groups != NULL) ||
                            (got.clock != NULL) != (sent.clock != NULL) ||
                            (got.slices != NULL) != (sent.slices != NULL) ||
                            (got.nccl != NULL) != (sent.nccl != NULL) ||
                            (got.wait != NULL) != (sent.wait != NULL));
            }
        }
    }
}

static void random_bytes_and_flipped_bits_are_survived(void **state)
{
    (void)state;
    struct random_sequence random = {.state = 42};
    struct message got;
    for (unsigned round = 0; round < 20000; round++) {
        struct message sent = wire_sample((enum message_kind)(round % MESSAGE_KIND_COUNT));
        size_t size = wire_sample_encode(&sent);
        for (unsigned flips = 0; flips < 3; flips++) {
            wire_sample_header[random_below(&random, size)] ^=
                (unsigned char)(1u << random_below(&random, 8));
        }
        enum status status = wire_sample_decode(&sent, size, &got);
        assert_true(status == STATUS_OK || status == STATUS_MALFORMED || status == STATUS_MISMATCH);
    }
}

static void a_text_longer_than_a_header_is_not_sent(void **state)
{
    (void)state;
    static char text[WIRE_HEADER_BYTES + 1];
    memset(text, 'x', sizeof(text) - 1);
    struct message sent = wire_sample(MESSAGE_STOP);
    sent.text = text;
    size_t size;
    assert_int_equal(wire_encode(&sent, wire_sample_header, sizeof(wire_sample_header), &size),
                     STATUS_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_comes_back_as_it_was),
        cmocka_unit_test(a_payload_of_another_size_is_refused),
        cmocka_unit_test(a_span_whose_bytes_overflow_is_refused),
        cmocka_unit_test(a_layout_with_overlapping_buckets_is_refused),
        cmocka_unit_test(values_come_in_the_payload_or_as_a_loan_and_never_both_ways),
        cmocka_unit_test(a_code_takes_the_place_of_values),
        cmocka_unit_test(a_key_for_seals_is_whole_and_comes_with_the_welcome),
        cmocka_unit_test(another_protocol_version_is_told_from_noise),
        cmocka_unit_test(a_truncated_header_is_never_taken_for_the_whole),
        cmocka_unit_test(random_bytes_and_flipped_bits_are_survived),
        cmocka_unit_test(a_text_longer_than_a_header_is_not_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
