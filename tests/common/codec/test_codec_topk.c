/* Tests of the encoding of the largest values, against brute force. */
#include "tests/support/common/encoded.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <float.h>
#include <math.h>
#include <string.h>

/* One for each value that comes before i in the order of what is sent. */
static size_t rank_of(const float *values, size_t count, size_t i)
{
    size_t rank = 0;
    for (size_t j = 0; j < count; j++) {
        uint32_t mine = encoded_bits(values[i]) << 1, other = encoded_bits(values[j]) << 1;
        rank += other > mine || (other == mine && j < i);
    }
    return rank;
}

static void topk_sends_exactly_the_largest_and_of_equals_the_first(void **state)
{
    (void)state;
    const uint32_t shares[] = {1, 999, 10000, 31250, 100000, 333333, 999999, 1000000};
    float values[1500], back[1501];
    for (size_t row = 0; row < 8; row++) {
        char text[CODEC_TEXT_BYTES];
        codec_text(&(struct codec){CODEC_TOPK, shares[row]}, text);
        for (size_t count = 1; count <= 1500; count = count * 5 / 4 + 1) {
            encoded_fill(values, count, count);
            values[count / 2] = count % 2 == 0 ? INFINITY : values[count / 2];
            size_t k = (count * shares[row] + 999999) / 1000000;
            encoded_pass(text, values, count, back);
            for (size_t i = 0; i < count; i++) {
                float wanted = rank_of(values, count, i) < k ? values[i] : 0;
                assert_int_equal(encoded_bits(back[i]), encoded_bits(wanted));
            }
        }
    }
}

static void nan_is_larger_than_infinity_is_larger_than_what_is_finite(void **state)
{
    (void)state;
    const float values[] = {FLT_MAX, 1, -INFINITY, FLT_MAX, NAN, 2};
    const float one[] = {0, 0, 0, 0, NAN, 0}, two[] = {0, 0, -INFINITY, 0, NAN, 0};
    float back[7];
    encoded_pass("topk:0.1", values, 6, back);
    assert_memory_equal(back, one, sizeof(one));
    encoded_pass("topk:0.3", values, 6, back);
    assert_memory_equal(back, two, sizeof(two));
}

/* Refused by both ways to decode, with nothing written. */
static void check_refused(const struct codec *codec, struct encoded *encoded, size_t count)
{
    float to[64], before[64];
    encoded_fill(to, 64, 5);
    memcpy(before, to, sizeof(to));
    const void *bytes = encoded_bytes(encoded);
    assert_int_equal(codec_check(codec, bytes, encoded->size, count), STATUS_MALFORMED);
    assert_int_equal(codec_decode(codec, bytes, encoded->size, count, to), STATUS_MALFORMED);
    assert_int_equal(codec_decode_add(codec, bytes, encoded->size, count, to), STATUS_MALFORMED);
    assert_memory_equal(to, before, sizeof(to));
}

static void indices_that_do_not_ascend_or_are_beyond_the_end_are_refused(void **state)
{
    (void)state;
    const uint32_t wrong[][2] = {{3, 3},
                                 {4, 3},
                                 {0, 64},
                                 {64, 65},
                                 {1, UINT32_MAX},
                                 {UINT32_MAX, 0},
                                 {UINT32_MAX, UINT32_MAX}};
    const uint32_t right[][2] = {{0, 1}, {0, 63}, {62, 63}};
    static struct encoded encoded;
    struct codec codec = encoded_codec("topk:0.02");
    uint8_t *bytes = encoded_prepare(&encoded, codec_bytes(&codec, 64));
    assert_int_equal(encoded.size, 16);
    memset(bytes, 0, 16);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        memcpy(bytes + 8, wrong[i], 8);
        check_refused(&codec, &encoded, 64);
    }
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        const float values[] = {1, 2};
        float back[65];
        memcpy(bytes, values, 8);
        memcpy(bytes + 8, right[i], 8);
        encoded_decode(&codec, &encoded, 64, back);
        for (uint32_t k = 0; k < 64; k++) {
            assert_true(back[k] == (k == right[i][0] ? 1.0F : k == right[i][1] ? 2.0F : 0));
        }
    }
}

static void a_bitmap_of_another_number_of_values_or_beyond_the_end_is_refused(void **state)
{
    (void)state;
    static struct encoded encoded;
    struct codec codec = encoded_codec("topk:0.2");
    // 3 of 13 values, in 2 bytes.
    uint8_t *bytes = encoded_prepare(&encoded, codec_bytes(&codec, 13));
    assert_int_equal(encoded.size, 14);
    const float values[] = {1, 2, 3};
    memcpy(bytes, values, sizeof(values));
    for (uint32_t bitmap = 0; bitmap <= 0xFFFF; bitmap++) {
        memcpy(bytes + 12, &(uint16_t){(uint16_t)bitmap}, 2);
        if (__builtin_popcount(bitmap) != 3 || bitmap >= 1 << 13) {
            check_refused(&codec, &encoded, 13);
            continue;
        }
        float back[14], next = 1;
        encoded_decode(&codec, &encoded, 13, back);
        for (uint32_t i = 0; i < 13; i++) {
            assert_true(back[i] == (bitmap >> i & 1 ? next : 0));
            next += (float)(bitmap >> i & 1);
        }
    }
}

static void what_topk_does_not_send_is_not_touched_by_an_addition(void **state)
{
    (void)state;
    static struct encoded encoded;
    struct codec codec = encoded_codec("topk:0.25");
    const float values[] = {1, -4, 3, 2};
    float to[] = {-0.0F, -0.0F, -0.0F, -0.0F};
    const float wanted[] = {-0.0F, -4, -0.0F, -0.0F};
    encoded_encode(&codec, values, 4, &encoded);
    assert_int_equal(codec_decode_add(&codec, encoded_bytes(&encoded), encoded.size, 4, to),
                     STATUS_OK);
    assert_memory_equal(to, wanted, sizeof(to));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topk_sends_exactly_the_largest_and_of_equals_the_first),
        cmocka_unit_test(nan_is_larger_than_infinity_is_larger_than_what_is_finite),
        cmocka_unit_test(indices_that_do_not_ascend_or_are_beyond_the_end_are_refused),
        cmocka_unit_test(a_bitmap_of_another_number_of_values_or_beyond_the_end_is_refused),
        cmocka_unit_test(what_topk_does_not_send_is_not_touched_by_an_addition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
