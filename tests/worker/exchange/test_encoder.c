/* Tests of what an exchange sends in the place of values. */
#include "worker/exchange/encoder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <string.h>

static const struct layout layout = {.value_count = 8, .bucket_count = 1, .buckets = {{0, 8}}};

static struct encoder created(const char *text)
{
    char why[128];
    struct codec codec;
    struct encoder encoder;
    assert_int_equal(codec_parse(text, &codec, why, sizeof(why)), STATUS_OK);
    assert_int_equal(encoder_create(&codec, &layout, &encoder), STATUS_OK);
    return encoder;
}

static void without_compression_values_are_sent_where_they_lie(void **state)
{
    (void)state;
    struct encoder encoder = created("none");
    float values[8] = {1, 2, 3, 4, 5, 6, 7, 8}, to[8] = {0};
    struct message message = {.span = {2, 3}};
    assert_false(encoder_is_on(&encoder));
    encoder_encode(&encoder, values, &message);
    assert_ptr_equal(message.values, values + 2);
    assert_null(message.encoded);
    assert_int_equal(encoder_copy(&encoder, &message, to), STATUS_OK);
    assert_int_equal(encoder_add(&encoder, &message, to), STATUS_OK);
    const float wanted[8] = {0, 0, 6, 8, 10, 0, 0, 0};
    assert_memory_equal(to, wanted, sizeof(to));
    encoder_destroy(&encoder);
}

static void what_a_code_loses_comes_with_the_next(void **state)
{
    (void)state;
    struct encoder encoder = created("topk:0.25"); // two of eight
    const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    float sum[8] = {0};
    for (int round = 0; round < 40; round++) {
        struct message message = {.span = {0, 8}};
        encoder_encode(&encoder, values, &message);
        assert_null(message.values);
        assert_int_equal(encoder_add(&encoder, &message, sum), STATUS_OK);
    }
    for (int i = 0; i < 8; i++) {
        assert_true(fabsf(sum[i] + encoder.residual[i] - 40 * values[i]) < 1e-3f);
        assert_true(sum[i] > 0);
    }
    encoder_destroy(&encoder);
}

static void spans_have_codes_of_their_own(void **state)
{
    (void)state;
    struct encoder encoder = created("bf16");
    const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    float to[8] = {0};
    struct message first = {.span = {0, 1}}, second = {.span = {1, 7}}, kept = {.span = {0, 1}};
    encoder_encode(&encoder, values, &first);
    encoder_encode(&encoder, values, &second);
    assert_int_equal(encoder_copy(&encoder, &first, to), STATUS_OK);
    assert_int_equal(encoder_copy(&encoder, &second, to), STATUS_OK);
    assert_memory_equal(to, values, sizeof(values));
    unsigned char others[2];
    memcpy(others, second.encoded, sizeof(others)); // 2, encoded
    const struct message from = {
        .span = {0, 1}, .encoded = others, .encoded_bytes = sizeof(others)};
    encoder_keep(&encoder, &from, &kept);
    assert_ptr_equal(kept.encoded, first.encoded);
    assert_int_equal(encoder_copy(&encoder, &kept, to), STATUS_OK);
    assert_true(to[0] == 2 && to[1] == 2);
    encoder_destroy(&encoder);
}

static void what_is_not_as_agreed_is_refused(void **state)
{
    (void)state;
    struct encoder on = created("int8"), off = created("none");
    float to[8] = {0};
    const float none[8] = {0};
    unsigned char encoded[16] = {0};
    const struct message values = {.span = {0, 8}, .values = none};
    const struct message shorter = {.span = {0, 8}, .encoded = encoded, .encoded_bytes = 11};
    const struct message whole = {.span = {0, 8}, .encoded = encoded, .encoded_bytes = 12};
    assert_int_equal(encoder_copy(&on, &values, to), STATUS_MALFORMED);
    assert_int_equal(encoder_add(&on, &shorter, to), STATUS_MALFORMED);
    assert_int_equal(encoder_add(&off, &whole, to), STATUS_MALFORMED);
    assert_int_equal(encoder_copy(&off, &whole, to), STATUS_MALFORMED);
    assert_int_equal(encoder_copy(&on, &whole, to), STATUS_OK);
    assert_int_equal(encoder_check(&on, &values), STATUS_MALFORMED);
    assert_int_equal(encoder_check(&on, &shorter), STATUS_MALFORMED);
    assert_int_equal(encoder_check(&off, &whole), STATUS_MALFORMED);
    assert_int_equal(encoder_check(&on, &whole), STATUS_OK);
    assert_int_equal(encoder_check(&off, &values), STATUS_OK);
    assert_memory_equal(to, none, sizeof(to));
    encoder_destroy(&on);
    encoder_destroy(&off);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_compression_values_are_sent_where_they_lie),
        cmocka_unit_test(what_a_code_loses_comes_with_the_next),
        cmocka_unit_test(spans_have_codes_of_their_own),
        cmocka_unit_test(what_is_not_as_agreed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
