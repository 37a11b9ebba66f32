/* Vectors that go through an encoding. */
#include "tests/support/common/encoded.h"

#include "common/base/random.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <float.h>
#include <math.h>
#include <string.h>

#define CANARY    0xA5
#define UNTOUCHED 12345

const char *const encoded_texts[ENCODED_TEXT_COUNT] = {
    "none", "fp16", "bf16", "int8", "topk:0.001", "topk:0.02", "topk:0.4", "topk:1"};

struct codec encoded_codec(const char *text)
{
    struct codec codec;
    char why[200];
    assert_int_equal(codec_parse(text, &codec, why, sizeof(why)), STATUS_OK);
    return codec;
}

uint8_t *encoded_bytes(struct encoded *encoded)
{
    return encoded->room + ENCODED_MARGIN + 1;
}

uint8_t *encoded_prepare(struct encoded *encoded, size_t size)
{
    assert_true(size <= sizeof(encoded->room) - ENCODED_MARGIN - 1 - ENCODED_MARGIN);
    encoded->size = size;
    memset(encoded->room, CANARY, ENCODED_MARGIN + 1 + size + ENCODED_MARGIN);
    return encoded_bytes(encoded);
}

void encoded_check(const struct encoded *encoded)
{
    uint8_t canaries[ENCODED_MARGIN + 1];
    memset(canaries, CANARY, sizeof(canaries));
    assert_memory_equal(encoded->room, canaries, ENCODED_MARGIN + 1);
    assert_memory_equal(encoded->room + ENCODED_MARGIN + 1 + encoded->size, canaries,
                        ENCODED_MARGIN);
}

void encoded_encode(const struct codec *codec, const float *values, size_t count,
                    struct encoded *ret_encoded)
{
    uint8_t *bytes = encoded_prepare(ret_encoded, codec_bytes(codec, count));
    assert_int_equal(codec_encode(codec, values, count, bytes), ret_encoded->size);
    encoded_check(ret_encoded);
}

void encoded_decode(const struct codec *codec, struct encoded *encoded, size_t count,
                    float *ret_values)
{
    ret_values[count] = UNTOUCHED;
    assert_int_equal(codec_decode(codec, encoded_bytes(encoded), encoded->size, count, ret_values),
                     STATUS_OK);
    assert_true(ret_values[count] == UNTOUCHED);
}

void encoded_pass(const char *text, const float *values, size_t count, float *ret_values)
{
    static struct encoded encoded;
    struct codec codec = encoded_codec(text);
    encoded_encode(&codec, values, count, &encoded);
    encoded_decode(&codec, &encoded, count, ret_values);
}

float encoded_passed(const char *text, float value)
{
    float back[2];
    encoded_pass(text, &value, 1, back);
    return back[0];
}

uint32_t encoded_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

void encoded_fill(float *values, size_t count, uint64_t seed)
{
    struct random_sequence sequence = {seed};
    for (size_t i = 0; i < count; i++) {
        float unit = random_unit_float((uint32_t)random_next(&sequence)) - 0.5F;
        values[i] = ldexpf(unit, (int)random_below(&sequence, 30) - 25);
        uint64_t choice = random_below(&sequence, 10);
        if (choice == 0) {
            values[i] = 0;
        } else if (choice <= 3) {
            values[i] = unit < 0 ? -0x1p-6F : 0x1p-6F;
        }
    }
}

void encoded_fill_wildly(float *values, size_t count, uint64_t seed)
{
    const float odd[] = {65504, 65520, 6e-8F, 3e-8F, 1e-40F, -FLT_MAX, FLT_MIN, -0.0F};
    struct random_sequence sequence = {seed};
    encoded_fill(values, count, seed + 1);
    for (size_t i = 0; i < count; i++) {
        uint64_t choice = random_below(&sequence, 40);
        values[i] = choice < 8 ? odd[choice] : values[i];
        values[i] = choice == 8 && i % 5 == 0 ? INFINITY : values[i];
        values[i] = choice == 9 && i % 5 == 0 ? NAN : values[i];
    }
}
