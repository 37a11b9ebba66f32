/* Tests of compressed pushes and answers, at the shard's end. */
#include "common/base/random.h"
#include "ps-server/shard/answer_encoder.h"
#include "tests/support/common/float_envelope.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <string.h>

// Two buckets; shard 1 of 2 has floats 15 .. 19 and 5 .. 9.
static const struct layout layout = {
    .value_count = 20, .bucket_count = 2, .buckets = {{10, 10}, {0, 10}}};

static struct answer_encoder begun(const char *text, enum encoded_answers answers)
{
    char why[128];
    struct codec codec;
    struct answer_encoder encoder = {0};
    assert_int_equal(codec_parse(text, &codec, why, sizeof(why)), STATUS_OK);
    assert_int_equal(answer_encoder_begin(&encoder, &codec, answers, &layout, 1, 2), STATUS_OK);
    return encoder;
}

static void a_push_is_decoded_into_an_envelope_of_its_own(void **state)
{
    (void)state;
    struct answer_encoder encoder = begun("fp16", ANSWERS_CHANGES);
    const float values[5] = {1, -2, 0.5f, 4, 0};
    unsigned char encoded[16];
    struct message push = {.kind = MESSAGE_PUSH, .bucket = 1, .span = {5, 5}, .encoded = encoded};
    push.encoded_bytes = codec_encode(&encoder.codec, values, 5, encoded);
    struct envelope envelope;
    assert_int_equal(float_envelope_make(values, 1, &envelope), STATUS_OK);
    envelope.peer = 77;
    assert_int_equal(answer_encoder_decode(&encoder, &push, &envelope), STATUS_OK);
    assert_null(push.encoded);
    assert_ptr_equal(push.values, envelope.payload);
    assert_int_equal(envelope.peer, 77);
    assert_memory_equal(push.values, values, sizeof(values));
    envelope_release(&envelope);
    answer_encoder_finish(&encoder);
}

static void what_is_not_as_agreed_is_refused(void **state)
{
    (void)state;
    struct answer_encoder encoder = begun("fp16", ANSWERS_CHANGES), plain = {0};
    const float values[5] = {1, 2, 3, 4, 5};
    unsigned char encoded[16];
    size_t bytes = codec_encode(&encoder.codec, values, 5, encoded);
    const struct message cases[] = {
        {.kind = MESSAGE_PUSH, .bucket = 1, .span = {5, 5}, .values = values},
        {.kind = MESSAGE_PUSH,
         .bucket = 1,
         .span = {5, 4},
         .encoded = encoded,
         .encoded_bytes = bytes},
        {.kind = MESSAGE_PUSH,
         .bucket = 1,
         .span = {0, 5},
         .encoded = encoded,
         .encoded_bytes = bytes},
        {.kind = MESSAGE_PUSH,
         .bucket = 2,
         .span = {5, 5},
         .encoded = encoded,
         .encoded_bytes = bytes},
        {.kind = MESSAGE_PUSH,
         .bucket = 1,
         .span = {5, 5},
         .encoded = encoded,
         .encoded_bytes = bytes - 1},
        {.kind = MESSAGE_SEED,
         .bucket = 1,
         .span = {5, 5},
         .encoded = encoded,
         .encoded_bytes = bytes},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct message message = cases[i];
        struct envelope envelope;
        assert_int_equal(float_envelope_make(values, 5, &envelope), STATUS_OK);
        const void *payload = envelope.payload;
        assert_int_equal(answer_encoder_decode(&encoder, &message, &envelope), STATUS_MALFORMED);
        assert_ptr_equal(envelope.payload, payload);
        assert_memory_equal(&message, &cases[i], sizeof(message));
        envelope_release(&envelope);
    }
    // A job that does not compress takes nothing encoded.
    struct message message = cases[4];
    struct envelope envelope = {0};
    assert_int_equal(answer_encoder_decode(&plain, &message, &envelope), STATUS_MALFORMED);
    message = cases[0];
    assert_int_equal(answer_encoder_decode(&plain, &message, &envelope), STATUS_OK);
    answer_encoder_finish(&encoder);
}

/* Parameters that wander; a worker that adds up the changes stays within what the last one lost. */
static void changes_add_up_to_the_parameters(void **state)
{
    (void)state;
    static const char *const kinds[] = {"fp16", "bf16", "int8", "topk:0.4"};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        struct answer_encoder encoder = begun(kinds[k], ANSWERS_CHANGES);
        struct random_sequence sequence = {k};
        float params[5], worker[5];
        for (size_t i = 0; i < 5; i++) {
            params[i] = worker[i] = random_unit_float((uint32_t)random_next(&sequence));
        }
        const struct message seed = {
            .kind = MESSAGE_SEED, .bucket = 0, .span = {15, 5}, .values = params};
        answer_encoder_note_seed(&encoder, &seed);
        for (uint64_t step = 1; step <= 60; step++) {
            for (size_t i = 0; i < 5 && step <= 40; i++) {
                params[i] += 0.01f * (random_unit_float((uint32_t)random_next(&sequence)) - 0.5f);
            }
            const struct message answer = {.kind = MESSAGE_PARAMS,
                                           .step = step,
                                           .bucket = 0,
                                           .span = {15, 5},
                                           .values = params};
            struct message first = answer, second = answer;
            answer_encoder_encode(&encoder, &first);
            answer_encoder_encode(&encoder, &second); // for another worker: the same
            assert_null(first.values);
            assert_ptr_equal(first.encoded, second.encoded);
            assert_int_equal(
                codec_decode_add(&encoder.codec, first.encoded, first.encoded_bytes, 5, worker),
                STATUS_OK);
            assert_memory_equal(worker, encoder.known, sizeof(worker));
        }
        // In the last steps nothing changed: what had been lost has come.
        for (size_t i = 0; i < 5; i++) {
            assert_true(fabsf(worker[i] - params[i]) < 1e-5f);
        }
        answer_encoder_finish(&encoder);
    }
}

/* A half has 10 bits behind the point: of 1 + 2^-12 it loses 2^-12, four times in four steps. */
static void what_a_mean_has_lost_comes_with_later_ones(void **state)
{
    (void)state;
    struct answer_encoder encoder = begun("fp16", ANSWERS_MEANS);
    const float mean = 1 + 0x1p-12f, expected[] = {1, 1, 1 + 0x1p-10f, 1};
    const float means[5] = {mean, mean, mean, mean, mean};
    for (uint64_t step = 1; step <= 4; step++) {
        struct message first = {
            .kind = MESSAGE_PARAMS, .step = step, .bucket = 0, .span = {15, 5}, .values = means};
        struct message second = first;
        float decoded[5];
        answer_encoder_encode(&encoder, &first);
        answer_encoder_encode(&encoder, &second); // for another worker: the same
        assert_ptr_equal(first.encoded, second.encoded);
        assert_int_equal(
            codec_decode(&encoder.codec, first.encoded, first.encoded_bytes, 5, decoded),
            STATUS_OK);
        for (size_t i = 0; i < 5; i++) {
            assert_memory_equal(&decoded[i], &expected[step - 1], sizeof(float));
        }
    }
    answer_encoder_finish(&encoder);
}

static void answers_that_are_no_changes_stay_as_they_are(void **state)
{
    (void)state;
    const float values[5] = {1, 2, 3, 4, 5};
    struct message params = {
        .kind = MESSAGE_PARAMS, .step = 1, .bucket = 0, .span = {15, 5}, .values = values};
    struct message optimizer_state = params;
    optimizer_state.vector = 1;
    struct answer_encoder unsynchronised = begun("int8", ANSWERS_PLAIN);
    struct answer_encoder synchronous = begun("int8", ANSWERS_CHANGES), none = {0};
    answer_encoder_encode(&unsynchronised, &params);
    assert_ptr_equal(params.values, values);
    answer_encoder_encode(&none, &params);
    assert_ptr_equal(params.values, values);
    answer_encoder_encode(&synchronous, &optimizer_state);
    assert_ptr_equal(optimizer_state.values, values);
    answer_encoder_finish(&unsynchronised);
    answer_encoder_finish(&synchronous);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_is_decoded_into_an_envelope_of_its_own),
        cmocka_unit_test(what_is_not_as_agreed_is_refused),
        cmocka_unit_test(changes_add_up_to_the_parameters),
        cmocka_unit_test(what_a_mean_has_lost_comes_with_later_ones),
        cmocka_unit_test(answers_that_are_no_changes_stay_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
