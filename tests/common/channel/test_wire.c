/* Tests of the wire: round trips, and everything that decode must refuse. */
#include "common/base/random.h"
#include "common/channel/wire.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static struct wire_scratch scratch;
static unsigned char header[WIRE_HEADER_BYTES];

static const float values[4] = {1.0f, -2.0f, 3.5f, 0.25f};
static const struct wire_member member = {
    .role = ROLE_SERVER,
    .has_rank = true,
    .rank = 3,
    .host_id = 0xABCDEF0123456789,
    .host = "node-7",
    .process_id = 4711,
    .endpoints = "0123456789abcdef tcp://127.0.0.1:4000",
    .params_digest = "00ff",
    .train_samples = 50000,
    .test_samples = 10000,
    .device = "cpu",
    .cores = 64,
};
static const struct wire_report report = {
    .steps = 10,
    .images = 320,
    .loss_sum = 12.5,
    .compute_ns = 1,
    .exchange_wait_ns = 2,
    .input_wait_ns = 3,
    .total_ns = 6,
    .copy_ns = 4,
    .wire_ns = 5,
    .bytes_sent = 7,
    .bytes_received = 8,
    .is_epoch = true,
    .test_images = 100,
    .test_correct = 60,
    .test_loss_sum = 99.5,
    .warm_images = 11,
    .warm_ns = 12,
    .staleness_sum = 1300.5,
    .staleness_max = 1300,
    .rate = 0.04,
    .images_dropped = 3.5,
    .transports = WIRE_TRANSPORT_SHM | WIRE_TRANSPORT_TCP,
};
static struct layout layout = {
    .value_count = 30,
    .bucket_count = 2,
    .buckets = {{10, 20}, {0, 10}},
    .digest = 0x1122334455667788,
};

static const struct region_key region = {
    .process_id = 4712,
    .descriptor = 9,
    .size = 1 << 20,
    .nonce = 0xFEDCBA9876543210,
};
static const struct wire_loan loan = {.offset = 4096, .ticket = 17};
static const unsigned char seal_key[WIRE_SEAL_KEY_BYTES] = {1, 0, 255, 4};

/* What a message of the kind carries. */
static struct message make(enum message_kind kind)
{
    struct message message = {
        .kind = kind,
        .job_id = 99,
        .rank = 2,
        .step = 1234567890123,
        .epoch = 5,
        .bucket = 1,
        .hop = 3,
        .phase = 6,
        .vector = 7,
        .is_far = true,
        .staleness = 8,
        .params_version = 15,
        .lane = 16,
        .all_reduce = ALL_REDUCE_DIRECT,
        .way = {9, 11, 10},
        .limits = {12, UINT64_MAX},
        .bucket_bytes = 13,
        .step_ns = 14,
        .reason = STATUS_MISMATCH,
        .text = "a sentence",
        .span = {40, 4},
    };
    if (kind == MESSAGE_JOIN || kind == MESSAGE_READY || kind == MESSAGE_DONE) {
        message.member = &member;
    }
    if (kind == MESSAGE_READY || kind == MESSAGE_START) {
        message.layout = &layout;
    }
    if (kind == MESSAGE_REPORT || kind == MESSAGE_DONE) {
        message.report = &report;
    }
    if (kind == MESSAGE_SEED || kind == MESSAGE_PUSH || kind == MESSAGE_PARAMS ||
        kind == MESSAGE_CHUNK || kind == MESSAGE_SUM || kind == MESSAGE_PROBE) {
        message.values = values;
    }
    message.region = kind == MESSAGE_OFFER ? &region : NULL;
    message.loan = kind == MESSAGE_RETURN ? &loan : NULL;
    message.seal_key = kind == MESSAGE_WELCOME ? seal_key : NULL;
    return message;
}

static size_t encode(const struct message *message)
{
    size_t size = 0;
    assert_int_equal(wire_encode(message, header, sizeof(header), &size), STATUS_OK);
    return size;
}

static enum status decode(size_t size, const float *payload, size_t payload_size,
                          struct message *ret_message)
{
    uint32_t version;
    const struct wire_frames frames = {header, size, payload, payload_size};
    return wire_decode(&frames, &scratch, &version, ret_message);
}

static void every_kind_comes_back_as_it_was(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < MESSAGE_KIND_COUNT; kind++) {
        struct message sent = make((enum message_kind)kind), got;
        size_t payload_size = sent.values != NULL ? sizeof(values) : 0;
        assert_int_equal(decode(encode(&sent), sent.values, payload_size, &got), STATUS_OK);
        assert_int_equal(got.kind, sent.kind);
        assert_int_equal(got.job_id, sent.job_id);
        assert_int_equal(got.rank, sent.rank);
        assert_int_equal(got.step, sent.step);
        assert_int_equal(got.epoch, sent.epoch);
        assert_int_equal(got.bucket, sent.bucket);
        assert_int_equal(got.hop, sent.hop);
        assert_int_equal(got.phase, sent.phase);
        assert_int_equal(got.vector, sent.vector);
        assert_true(got.is_far == sent.is_far);
        assert_int_equal(got.staleness, sent.staleness);
        assert_int_equal(got.params_version, sent.params_version);
        assert_int_equal(got.lane, sent.lane);
        assert_int_equal(got.all_reduce, sent.all_reduce);
        assert_memory_equal(&got.way, &sent.way, sizeof(sent.way));
        assert_memory_equal(&got.limits, &sent.limits, sizeof(sent.limits));
        assert_int_equal(got.bucket_bytes, sent.bucket_bytes);
        assert_int_equal(got.step_ns, sent.step_ns);
        assert_int_equal(got.reason, sent.reason);
        assert_string_equal(got.text, sent.text);
        assert_int_equal(got.span.offset, sent.span.offset);
        assert_int_equal(got.span.count, sent.span.count);
        assert_ptr_equal(got.values, sent.values);
        assert_int_equal(got.member != NULL, sent.member != NULL);
        assert_int_equal(got.report != NULL, sent.report != NULL);
        assert_int_equal(got.layout != NULL, sent.layout != NULL);
        assert_int_equal(got.region != NULL, sent.region != NULL);
        assert_int_equal(got.loan != NULL, sent.loan != NULL);
        assert_int_equal(got.seal_key != NULL, sent.seal_key != NULL);
        if (got.seal_key != NULL) {
            assert_memory_equal(got.seal_key, seal_key, sizeof(seal_key));
        }
    }
}

static void a_member_comes_back_field_by_field(void **state)
{
    (void)state;
    struct message sent = make(MESSAGE_JOIN), got;
    assert_int_equal(decode(encode(&sent), NULL, 0, &got), STATUS_OK);
    assert_int_equal(got.member->role, member.role);
    assert_int_equal(got.member->has_rank, member.has_rank);
    assert_int_equal(got.member->rank, member.rank);
    assert_int_equal(got.member->host_id, member.host_id);
    assert_string_equal(got.member->host, member.host);
    assert_int_equal(got.member->process_id, member.process_id);
    assert_string_equal(got.member->endpoints, member.endpoints);
    assert_string_equal(got.member->params_digest, member.params_digest);
    assert_int_equal(got.member->train_samples, member.train_samples);
    assert_int_equal(got.member->test_samples, member.test_samples);
    assert_string_equal(got.member->device, member.device);
    assert_int_equal(got.member->cores, member.cores);
}

static void a_report_and_a_layout_come_back_byte_by_byte(void **state)
{
    (void)state;
    struct message sent = make(MESSAGE_REPORT), got;
    assert_int_equal(decode(encode(&sent), NULL, 0, &got), STATUS_OK);
    assert_int_equal(got.report->total_ns, report.total_ns);
    assert_int_equal(got.report->copy_ns, report.copy_ns);
    assert_int_equal(got.report->wire_ns, report.wire_ns);
    assert_int_equal(got.report->test_correct, report.test_correct);
    assert_true(got.report->loss_sum == report.loss_sum);
    assert_true(got.report->test_loss_sum == report.test_loss_sum);
    assert_true(got.report->is_epoch);
    assert_int_equal(got.report->staleness_max, report.staleness_max);
    assert_true(got.report->staleness_sum == report.staleness_sum);
    assert_true(got.report->rate == report.rate);
    assert_true(got.report->images_dropped == report.images_dropped);
    assert_int_equal(got.report->transports, report.transports);
    assert_int_equal(got.report->warm_ns, report.warm_ns);
    sent = make(MESSAGE_START);
    assert_int_equal(decode(encode(&sent), NULL, 0, &got), STATUS_OK);
    assert_int_equal(got.layout->value_count, layout.value_count);
    assert_int_equal(got.layout->digest, layout.digest);
    assert_memory_equal(got.layout->buckets, layout.buckets, 2 * sizeof(struct span));
}

static void a_payload_of_another_size_is_refused(void **state)
{
    (void)state;
    struct message sent = make(MESSAGE_PUSH), got;
    size_t size = encode(&sent);
    assert_int_equal(decode(size, values, sizeof(values) - 4, &got), STATUS_MALFORMED);
    assert_int_equal(decode(size, values, sizeof(values) - 1, &got), STATUS_MALFORMED);
    assert_int_equal(decode(size, NULL, 0, &got), STATUS_MALFORMED);
    sent = make(MESSAGE_HEARTBEAT);
    assert_int_equal(decode(encode(&sent), values, 4, &got), STATUS_MALFORMED);
}

static void a_span_whose_bytes_overflow_is_refused(void **state)
{
    (void)state;
    struct message sent = make(MESSAGE_PUSH), got;
    sent.span.count = UINT64_MAX / 4 + 5; // times 4 wraps to 16, the size of the payload
    assert_int_equal(decode(encode(&sent), values, sizeof(values), &got), STATUS_MALFORMED);
}

static void a_layout_with_overlapping_buckets_is_refused(void **state)
{
    (void)state;
    struct layout broken = layout;
    broken.buckets[0].offset = 5;
    struct message sent = make(MESSAGE_START), got;
    sent.layout = &broken;
    assert_int_equal(decode(encode(&sent), NULL, 0, &got), STATUS_MALFORMED);
}

static void parts_that_the_kind_does_not_carry_are_refused(void **state)
{
    (void)state;
    struct message sent = make(MESSAGE_HEARTBEAT), got;
    sent.member = &member;
    assert_int_equal(decode(encode(&sent), NULL, 0, &got), STATUS_MALFORMED);
    sent = make(MESSAGE_HEARTBEAT);
    sent.layout = &layout;
    assert_int_equal(decode(encode(&sent), NULL, 0, &got), STATUS_MALFORMED);
    sent = make(MESSAGE_HEARTBEAT);
    sent.report = &report;
    assert_int_equal(decode(encode(&sent), NULL, 0, &got), STATUS_MALFORMED);
    sent = make(MESSAGE_HEARTBEAT);
    sent.region = &region;
    assert_int_equal(decode(encode(&sent), NULL, 0, &got), STATUS_MALFORMED);
}

static void an_offer_comes_back_field_by_field(void **state)
{
    (void)state;
    struct message sent = make(MESSAGE_OFFER), got;
    assert_int_equal(decode(encode(&sent), NULL, 0, &got), STATUS_OK);
    assert_int_equal(got.region->process_id, region.process_id);
    assert_int_equal(got.region->descriptor, region.descriptor);
    assert_int_equal(got.region->size, region.size);
    assert_int_equal(got.region->nonce, region.nonce);
    assert_null(got.mail);
    const struct mail_offer mail = {.region = {1, 2, 3, 4}, .index = 63};
    sent.mail = &mail;
    assert_int_equal(decode(encode(&sent), NULL, 0, &got), STATUS_OK);
    assert_int_equal(got.mail->index, 63);
    assert_int_equal(got.mail->region.process_id, 1);
    assert_int_equal(got.mail->region.descriptor, 2);
    assert_int_equal(got.mail->region.size, 3);
    assert_int_equal(got.mail->region.nonce, 4);
    assert_int_equal(got.region->nonce, region.nonce);
}

static void values_come_in_the_payload_or_as_a_loan_and_never_both_ways(void **state)
{
    (void)state;
    struct message sent = make(MESSAGE_PUSH), got;
    sent.loan = &loan;
    size_t size = encode(&sent);
    assert_int_equal(decode(size, NULL, 0, &got), STATUS_OK);
    assert_null(got.values);
    assert_int_equal(got.loan->offset, loan.offset);
    assert_int_equal(got.loan->ticket, loan.ticket);
    assert_int_equal(decode(size, values, sizeof(values), &got), STATUS_MALFORMED);
}

static void a_code_takes_the_place_of_values(void **state)
{
    (void)state;
    static const unsigned char encoded[7] = {1, 2, 3, 4, 5, 6, 7};
    struct message sent = make(MESSAGE_PUSH), got;
    sent.values = NULL;
    sent.encoded = encoded;
    sent.encoded_bytes = sizeof(encoded);
    uint32_t version;
    const size_t size = encode(&sent);
    const struct wire_frames frames = {header, size, encoded, sizeof(encoded)};
    assert_int_equal(wire_decode(&frames, &scratch, &version, &got), STATUS_OK);
    assert_null(got.values);
    assert_ptr_equal(got.encoded, encoded);
    assert_int_equal(got.encoded_bytes, sizeof(encoded));
    const struct wire_frames empty = {header, size, NULL, 0};
    assert_int_equal(wire_decode(&empty, &scratch, &version, &got), STATUS_MALFORMED);
}

static void a_key_for_seals_is_whole_and_comes_with_the_welcome(void **state)
{
    (void)state;
    // The last field of a WELCOME: tag 31, size, bytes.
    struct message sent = make(MESSAGE_WELCOME), got;
    sent.params_version = sent.lane = 0;
    size_t size = encode(&sent), at = size - WIRE_SEAL_KEY_BYTES - 1;
    assert_int_equal(header[at], WIRE_SEAL_KEY_BYTES);
    header[at] = WIRE_SEAL_KEY_BYTES - 1;
    assert_int_equal(decode(size - 1, NULL, 0, &got), STATUS_MALFORMED);
    // The same field behind another kind.
    unsigned char field[WIRE_SEAL_KEY_BYTES + 3];
    header[at] = WIRE_SEAL_KEY_BYTES;
    memcpy(field, header + at - 2, sizeof(field));
    sent = make(MESSAGE_GO);
    size = encode(&sent);
    memcpy(header + size, field, sizeof(field));
    assert_int_equal(decode(size, NULL, 0, &got), STATUS_OK);
    assert_int_equal(decode(size + sizeof(field), NULL, 0, &got), STATUS_MALFORMED);
}

static void another_protocol_version_is_told_from_noise(void **state)
{
    (void)state;
    struct message sent = make(MESSAGE_HEARTBEAT), got;
    size_t size = encode(&sent);
    uint32_t version = 0;
    assert_int_equal(header[0], 0x08); // field 1, the version
    header[1] = WIRE_VERSION + 1;
    const struct wire_frames frames = {header, size, NULL, 0};
    assert_int_equal(wire_decode(&frames, &scratch, &version, &got), STATUS_MISMATCH);
    assert_int_equal(version, WIRE_VERSION + 1);
}

static void a_truncated_header_is_never_taken_for_the_whole(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < MESSAGE_KIND_COUNT; kind++) {
        struct message sent = make((enum message_kind)kind), got;
        size_t size = encode(&sent);
        size_t payload_size = sent.values != NULL ? sizeof(values) : 0;
        for (size_t cut = 0; cut < size; cut++) {
            // A cut between two fields is a sound header with the later ones zero: it may decode,
            // but then to something else.
            if (decode(cut, sent.values, payload_size, &got) == STATUS_OK) {
                assert_true(got.lane != sent.lane); // the last field
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
        struct message sent = make((enum message_kind)(round % MESSAGE_KIND_COUNT));
        size_t size = encode(&sent);
        for (unsigned flips = 0; flips < 3; flips++) {
            header[random_below(&random, size)] ^= (unsigned char)(1u << random_below(&random, 8));
        }
        enum status status =
            decode(size, sent.values, sent.values != NULL ? sizeof(values) : 0, &got);
        assert_true(status == STATUS_OK || status == STATUS_MALFORMED || status == STATUS_MISMATCH);
    }
}

static void a_text_longer_than_a_header_is_not_sent(void **state)
{
    (void)state;
    static char text[WIRE_HEADER_BYTES + 1];
    memset(text, 'x', sizeof(text) - 1);
    struct message sent = make(MESSAGE_STOP);
    sent.text = text;
    size_t size;
    assert_int_equal(wire_encode(&sent, header, sizeof(header), &size), STATUS_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_comes_back_as_it_was),
        cmocka_unit_test(a_member_comes_back_field_by_field),
        cmocka_unit_test(a_report_and_a_layout_come_back_byte_by_byte),
        cmocka_unit_test(a_payload_of_another_size_is_refused),
        cmocka_unit_test(a_span_whose_bytes_overflow_is_refused),
        cmocka_unit_test(a_layout_with_overlapping_buckets_is_refused),
        cmocka_unit_test(parts_that_the_kind_does_not_carry_are_refused),
        cmocka_unit_test(an_offer_comes_back_field_by_field),
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
