/* Tests of what is true of every encoding. */
#include "common/base/random.h"
#include "common/codec/codec.h"
#include "common/codec/codec_rules.h"
#include "tests/support/common/encoded.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void every_codec_comes_back_from_its_own_text(void **state)
{
    (void)state;
    char text[CODEC_TEXT_BYTES], same[CODEC_TEXT_BYTES];
    for (size_t i = 0; i < ENCODED_TEXT_COUNT; i++) {
        struct codec codec = encoded_codec(encoded_texts[i]);
        codec_text(&codec, text);
        assert_string_equal(text, encoded_texts[i]);
    }
    for (uint32_t millionths = 1; millionths <= CODEC_SHARE_MAX; millionths++) {
        snprintf(same, sizeof(same), "topk:%.6f", millionths / 1e6);
        struct codec codec = encoded_codec(same);
        assert_int_equal(codec.share_millionths, millionths);
        codec_text(&codec, text);
        struct codec back = encoded_codec(text);
        assert_memory_equal(&back, &codec, sizeof(codec));
    }
    struct codec none = {0};
    codec_text(&none, text);
    assert_string_equal(text, "none");
}

static void codecs_are_the_same_if_kind_and_share_are(void **state)
{
    (void)state;
    const struct codec half = encoded_codec("fp16"), few = encoded_codec("topk:0.01");
    const struct codec fewer = encoded_codec("topk:0.001"), same = encoded_codec("topk:0.0100");
    assert_true(codec_is_same(&half, &half));
    assert_true(codec_is_same(&few, &same));
    assert_false(codec_is_same(&few, &fewer));
    assert_false(codec_is_same(&few, &half));
}

static void a_text_that_is_no_codec_is_refused_with_what_would_be_right(void **state)
{
    (void)state;
    const char *const wrong[] = {"",           "fp",       "fp16 ",      "FP16",
                                 "fp16:0.1",   "none:",    "int88",      "topk",
                                 "topk:",      "topk0.1",  "topk:0",     "topk:-0.1",
                                 "topk:1.1",   "topk:nan", "topk:0.1x",  "topk:1e-3",
                                 "topk:1:0.5", "top:0.1",  "topk:0.0.1", "topk:0.0000001",
                                 "topk: 0.1",  "topk:.",   "topk:99999", "topk:0.0100001"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct codec codec = {CODEC_KIND_COUNT, 7};
        char why[200] = "";
        assert_int_equal(codec_parse(wrong[i], &codec, why, sizeof(why)), STATUS_INVALID);
        assert_true(codec.kind == CODEC_KIND_COUNT && codec.share_millionths == 7);
        for (size_t kind = 0; kind < CODEC_KIND_COUNT; kind++) {
            assert_non_null(strstr(why, codec_rules[kind]->name));
        }
    }
}

static void sizes_are_those_of_the_closed_forms(void **state)
{
    (void)state;
    const struct {
        const char *text;
        size_t count, bytes;
    } cases[] = {
        {"none", 0, 0},
        {"none", CODEC_COUNT_MAX, 4 * (size_t)CODEC_COUNT_MAX},
        {"fp16", 3, 6},
        {"bf16", CODEC_COUNT_MAX, 2 * (size_t)CODEC_COUNT_MAX},
        {"int8", 0, 0},
        {"int8", 1, 5},
        {"int8", 256, 260},
        {"int8", 257, 265},
        {"int8", CODEC_COUNT_MAX, (size_t)CODEC_COUNT_MAX + 0x4000000},
        {"topk:0.01", 0, 0},
        {"topk:0.01", 100, 8},   // an index, as all 100 bits would take 13 bytes
        {"topk:0.01", 101, 16},  // 1.01 values are 2
        {"topk:0.07", 100, 41},  // 7 exactly; a bitmap of 13 bytes
        {"topk:0.000001", 1, 5}, // at least one; a bit takes a byte
        {"topk:1", 9, 38},
        {"topk:1", CODEC_COUNT_MAX, 4 * (size_t)CODEC_COUNT_MAX + 0x20000000},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct codec codec = encoded_codec(cases[i].text);
        assert_int_equal(codec_bytes(&codec, cases[i].count), cases[i].bytes);
    }
}

static void what_is_finite_stays_finite_and_what_is_not_does_not(void **state)
{
    (void)state;
    const float large[] = {65519.99F, 65520, 1e6F, FLT_MAX};
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
        assert_true(encoded_passed("fp16", large[i]) == 65504 &&
                    encoded_passed("fp16", -large[i]) == -65504);
    }
    assert_true(encoded_passed("bf16", FLT_MAX) == 0x1.FEp127F &&
                encoded_passed("bf16", -FLT_MAX) == -0x1.FEp127F);
    for (size_t i = 0; i < ENCODED_TEXT_COUNT; i++) {
        assert_true(isfinite(encoded_passed(encoded_texts[i], FLT_MAX)) &&
                    encoded_passed(encoded_texts[i], FLT_MAX) > 65000);
        assert_false(isfinite(encoded_passed(encoded_texts[i], INFINITY)) != 0);
        assert_false(isfinite(encoded_passed(encoded_texts[i], -INFINITY)) != 0);
        // Of which the upper half of the bits alone would be an infinity.
        float quiet_nothing;
        memcpy(&quiet_nothing, &(uint32_t){0x7F800001}, sizeof(quiet_nothing));
        assert_true(isnan(encoded_passed(encoded_texts[i], quiet_nothing)) &&
                    isnan(encoded_passed(encoded_texts[i], -NAN)));
    }
}

static void check_variant(const struct codec *codec, enum variant variant, size_t count)
{
    static struct encoded portable, encoded;
    static float values[1000], to[1001], wanted[1001];
    encoded_fill_wildly(values, count, count);
    encoded_prepare(&portable, codec_bytes(codec, count));
    encoded_prepare(&encoded, codec_bytes(codec, count));
    const struct codec_loops *loops = codec_rules[codec->kind]->loops;
    loops[VARIANT_PORTABLE].encode(codec, values, count, encoded_bytes(&portable));
    loops[variant].encode(codec, values, count, encoded_bytes(&encoded));
    encoded_check(&encoded);
    assert_memory_equal(encoded_bytes(&portable), encoded_bytes(&encoded), encoded.size);
    const enum codec_use uses[] = {CODEC_SET, CODEC_ADD, CODEC_KEEP_REST};
    for (size_t i = 0; i < 3; i++) {
        encoded_fill(to, count + 1, 3);
        memcpy(wanted, to, sizeof(to));
        loops[VARIANT_PORTABLE].decode(codec, encoded_bytes(&portable), count, uses[i], wanted);
        loops[variant].decode(codec, encoded_bytes(&encoded), count, uses[i], to);
        assert_memory_equal(to, wanted, sizeof(to));
    }
}

static void all_variants_agree_in_every_bit(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < VARIANT_COUNT; variant++) {
        if (!variant_is_supported(variant)) {
            print_message("not on this machine: variant %u\n", variant);
            continue;
        }
        for (size_t i = 0; i < ENCODED_TEXT_COUNT; i++) {
            struct codec codec = encoded_codec(encoded_texts[i]);
            for (size_t count = 0; count < 1000; count += count < 80 ? 1 : 53) {
                check_variant(&codec, variant, count);
            }
        }
    }
}

static void decoded_values_are_added_to_what_is_there(void **state)
{
    (void)state;
    static struct encoded encoded;
    static float values[700], back[701], to[700], wanted[700];
    for (size_t i = 0; i < ENCODED_TEXT_COUNT; i++) {
        struct codec codec = encoded_codec(encoded_texts[i]);
        encoded_fill(values, 700, i);
        encoded_encode(&codec, values, 700, &encoded);
        encoded_decode(&codec, &encoded, 700, back);
        encoded_fill(to, 700, i + 100);
        for (size_t k = 0; k < 700; k++) {
            wanted[k] = to[k] + back[k];
        }
        assert_int_equal(codec_decode_add(&codec, encoded_bytes(&encoded), encoded.size, 700, to),
                         STATUS_OK);
        assert_memory_equal(to, wanted, sizeof(to));
    }
}

static void an_encoding_of_another_size_is_refused_with_nothing_written(void **state)
{
    (void)state;
    static struct encoded encoded;
    static float values[300], to[300], before[300];
    for (size_t i = 0; i < ENCODED_TEXT_COUNT; i++) {
        struct codec codec = encoded_codec(encoded_texts[i]);
        encoded_fill(values, 300, i);
        encoded_fill(to, 300, 7);
        memcpy(before, to, sizeof(to));
        encoded_encode(&codec, values, 300, &encoded);
        const void *bytes = encoded_bytes(&encoded);
        for (size_t size = 0; size < 2 * encoded.size; size++) {
            enum status wanted = size == encoded.size ? STATUS_OK : STATUS_MALFORMED;
            assert_int_equal(codec_check(&codec, bytes, size, 300), wanted);
            if (wanted != STATUS_OK) {
                assert_int_equal(codec_decode(&codec, bytes, size, 300, to), wanted);
                assert_int_equal(codec_decode_add(&codec, bytes, size, 300, to), wanted);
                assert_memory_equal(to, before, sizeof(to));
            }
        }
        assert_int_equal(codec_decode(&codec, bytes, SIZE_MAX, 300, to), STATUS_MALFORMED);
        assert_int_equal(codec_decode(&codec, bytes, encoded.size, 0, to), STATUS_MALFORMED);
        assert_int_equal(codec_decode(&codec, bytes, encoded.size, CODEC_COUNT_MAX, to),
                         STATUS_MALFORMED);
    }
}

static void nothing_is_encoded_as_nothing(void **state)
{
    (void)state;
    static struct encoded encoded;
    float value = 3;
    for (size_t i = 0; i < ENCODED_TEXT_COUNT; i++) {
        struct codec codec = encoded_codec(encoded_texts[i]);
        encoded_encode(&codec, &value, 0, &encoded);
        assert_int_equal(encoded.size, 0);
        assert_int_equal(codec_encode(&codec, NULL, 0, NULL), 0);
        assert_int_equal(codec_encode_with_feedback(&codec, NULL, NULL, 0, NULL), 0);
        assert_int_equal(codec_decode_add(&codec, NULL, 0, 0, &value), STATUS_OK);
        assert_true(value == 3);
    }
}

/* Feedback, checked for what it writes around, too. */
static void encode_with_feedback(const struct codec *codec, const float *values, float *residual,
                                 size_t count, struct encoded *ret_encoded)
{
    uint8_t *bytes = encoded_prepare(ret_encoded, codec_bytes(codec, count));
    assert_int_equal(codec_encode_with_feedback(codec, values, residual, count, bytes),
                     ret_encoded->size);
    encoded_check(ret_encoded);
}

static void feedback_sends_the_sum_and_keeps_what_did_not_arrive_of_it(void **state)
{
    (void)state;
    static struct encoded encoded, of_sum;
    static float values[ENCODED_COUNT_MAX], residual[ENCODED_COUNT_MAX + 1];
    static float sum[ENCODED_COUNT_MAX], back[ENCODED_COUNT_MAX + 1];
    for (size_t i = 0; i < ENCODED_TEXT_COUNT; i++) {
        struct codec codec = encoded_codec(encoded_texts[i]);
        encoded_fill(values, ENCODED_COUNT_MAX, i);
        encoded_fill(residual, ENCODED_COUNT_MAX + 1, i + 100);
        float behind = residual[ENCODED_COUNT_MAX];
        for (size_t k = 0; k < ENCODED_COUNT_MAX; k++) {
            sum[k] = residual[k] + values[k];
        }
        encode_with_feedback(&codec, values, residual, ENCODED_COUNT_MAX, &encoded);
        encoded_encode(&codec, sum, ENCODED_COUNT_MAX, &of_sum);
        assert_memory_equal(encoded_bytes(&encoded), encoded_bytes(&of_sum), of_sum.size);
        encoded_decode(&codec, &encoded, ENCODED_COUNT_MAX, back);
        // Only a multiple of a scale can be so near to a value, and yet not differ by a float.
        double tolerance = codec.kind == CODEC_INT8 ? 1e-7 : 0;
        for (size_t k = 0; k < ENCODED_COUNT_MAX; k++) {
            double arrived_and_kept = (double)back[k] + (double)residual[k];
            assert_true(fabs(arrived_and_kept - (double)sum[k]) <=
                        tolerance * fabs((double)sum[k]));
        }
        assert_true(residual[ENCODED_COUNT_MAX] == behind);
    }
}

#define ROUNDS 400

static void over_many_rounds_feedback_loses_nothing(void **state)
{
    (void)state;
    static struct encoded encoded;
    static float values[600], residual[600], back[601];
    static double given[600], arrived[600];
    for (size_t i = 0; i < ENCODED_TEXT_COUNT; i++) {
        struct codec codec = encoded_codec(encoded_texts[i]);
        memset(residual, 0, sizeof(residual));
        memset(given, 0, sizeof(given));
        memset(arrived, 0, sizeof(arrived));
        for (uint64_t round = 0; round < ROUNDS; round++) {
            encoded_fill(values, 600, round);
            encode_with_feedback(&codec, values, residual, 600, &encoded);
            encoded_decode(&codec, &encoded, 600, back);
            for (size_t k = 0; k < 600; k++) {
                given[k] += (double)values[k];
                arrived[k] += (double)back[k];
            }
        }
        for (size_t k = 0; k < 600; k++) {
            // Values are below 16; a sum of them is rounded once in each round.
            double lost = given[k] - arrived[k] - (double)residual[k];
            assert_true(fabs(lost) <= ROUNDS * 16 * (double)FLT_EPSILON);
        }
    }
}

/* Of a value so small beside its neighbours that no round alone would send it. */
static void a_small_gradient_arrives_in_the_mean(void **state)
{
    (void)state;
    static struct encoded encoded;
    const float values[] = {1, 0.001F, -0.001F, 0.0003F};
    const char *const coarse[] = {"bf16", "int8", "topk:0.25"};
    for (size_t i = 0; i < sizeof(coarse) / sizeof(coarse[0]); i++) {
        struct codec codec = encoded_codec(coarse[i]);
        float residual[4] = {0}, back[5];
        double mean[4] = {0};
        for (unsigned round = 0; round < 20000; round++) {
            encode_with_feedback(&codec, values, residual, 4, &encoded);
            encoded_decode(&codec, &encoded, 4, back);
            for (size_t k = 0; k < 4; k++) {
                mean[k] += (double)back[k] / 20000;
            }
        }
        for (size_t k = 0; k < 4; k++) {
            assert_true(fabs(mean[k] - (double)values[k]) < 1e-4);
        }
    }
}

static void a_residual_is_never_broken_for_longer_than_a_gradient_is(void **state)
{
    (void)state;
    static struct encoded encoded;
    static float values[600], residual[600], back[601];
    for (size_t i = 0; i < ENCODED_TEXT_COUNT; i++) {
        struct codec codec = encoded_codec(encoded_texts[i]);
        for (size_t k = 0; k < 600; k++) {
            values[k] = k % 3 == 0 ? NAN : k % 3 == 1 ? INFINITY : FLT_MAX;
            residual[k] = k % 2 == 0 ? FLT_MAX : -INFINITY;
        }
        encode_with_feedback(&codec, values, residual, 600, &encoded);
        encoded_decode(&codec, &encoded, 600, back);
        assert_false(isfinite(back[0]) != 0);
        for (size_t k = 0; k < 600; k++) {
            assert_true(residual[k] == 0);
        }
        encoded_fill(values, 600, i);
        encode_with_feedback(&codec, values, residual, 600, &encoded);
        encoded_decode(&codec, &encoded, 600, back);
        for (size_t k = 0; k < 600; k++) {
            assert_true(isfinite(back[k]) && isfinite(residual[k]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_codec_comes_back_from_its_own_text),
        cmocka_unit_test(codecs_are_the_same_if_kind_and_share_are),
        cmocka_unit_test(a_text_that_is_no_codec_is_refused_with_what_would_be_right),
        cmocka_unit_test(sizes_are_those_of_the_closed_forms),
        cmocka_unit_test(what_is_finite_stays_finite_and_what_is_not_does_not),
        cmocka_unit_test(all_variants_agree_in_every_bit),
        cmocka_unit_test(decoded_values_are_added_to_what_is_there),
        cmocka_unit_test(an_encoding_of_another_size_is_refused_with_nothing_written),
        cmocka_unit_test(nothing_is_encoded_as_nothing),
        cmocka_unit_test(feedback_sends_the_sum_and_keeps_what_did_not_arrive_of_it),
        cmocka_unit_test(over_many_rounds_feedback_loses_nothing),
        cmocka_unit_test(a_small_gradient_arrives_in_the_mean),
        cmocka_unit_test(a_residual_is_never_broken_for_longer_than_a_gradient_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
