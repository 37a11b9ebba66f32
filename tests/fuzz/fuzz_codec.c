/* Fuzzes the encodings of vectors, as a peer sends them: bytes are refused, with nothing written,
 * or are the same values by both ways to decode, which come back from their own encoding; and
 * floats that are encoded with feedback arrive, and leave a residual that is finite.
 *
 * The first three bytes of an input are the kind and the share, the fourth is the count. */
#include "common/codec/codec.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_BYTES 4
#define COUNT_STEP   3 // so that counts reach beyond a block
#define COUNT_MAX    (UINT8_MAX * COUNT_STEP)

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Equal, or both NaN, of whatever bits. */
static bool are_same(const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!(a[i] == b[i] || (isnan(a[i]) && isnan(b[i])))) {
            return false;
        }
    }
    return true;
}

static void check_text(const struct codec *codec)
{
    char text[CODEC_TEXT_BYTES], why[200];
    struct codec back;
    codec_text(codec, text);
    enum status status = codec_parse(text, &back, why, sizeof(why));
    assert(status == STATUS_OK && memcmp(&back, codec, sizeof(back)) == 0);
}

/* What an encoding stands for stands for itself. (int8 may change its scale by a last place.) */
static void check_again(const struct codec *codec, const float *values, size_t count)
{
    float back[COUNT_MAX];
    size_t size = codec_bytes(codec, count);
    uint8_t *bytes = malloc(size + 1);
    assert(bytes != NULL);
    size_t written = codec_encode(codec, values, count, bytes);
    assert(written == size);
    enum status status = codec_decode(codec, bytes, size, count, back);
    assert(status == STATUS_OK);
    assert(codec->kind == CODEC_INT8 || are_same(values, back, count));
    free(bytes);
}

static void check_decode(const struct codec *codec, const uint8_t *bytes, size_t size, size_t count)
{
    static const float zeros[COUNT_MAX];
    float values[COUNT_MAX] = {0}, sums[COUNT_MAX] = {0};
    enum status status = codec_decode(codec, bytes, size, count, values);
    enum status again = codec_decode_add(codec, bytes, size, count, sums);
    assert(status == again);
    if (status == STATUS_OK) {
        assert(size == codec_bytes(codec, count));
        assert(are_same(values, sums, count));
        check_again(codec, values, count);
    } else {
        assert(status == STATUS_MALFORMED);
        assert(memcmp(values, zeros, sizeof(zeros)) == 0 &&
               memcmp(sums, zeros, sizeof(zeros)) == 0);
    }
}

static void check_feedback(const struct codec *codec, const uint8_t *bytes, size_t size)
{
    float values[COUNT_MAX], residual[COUNT_MAX] = {0}, back[COUNT_MAX];
    size_t count = size / sizeof(float) < COUNT_MAX ? size / sizeof(float) : COUNT_MAX;
    memcpy(values, bytes, count * sizeof(float));
    size_t encoded_size = codec_bytes(codec, count);
    uint8_t *encoded = malloc(encoded_size + 1);
    assert(encoded != NULL);
    for (unsigned round = 0; round < 2; round++) {
        codec_encode_with_feedback(codec, values, residual, count, encoded);
        enum status status = codec_decode(codec, encoded, encoded_size, count, back);
        assert(status == STATUS_OK);
        for (size_t i = 0; i < count; i++) {
            assert(isfinite(residual[i]));
        }
    }
    free(encoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < HEADER_BYTES) {
        return 0;
    }
    struct codec codec = {.kind = (enum codec_kind)(bytes[0] % CODEC_KIND_COUNT)};
    if (codec.kind == CODEC_TOPK) {
        codec.share_millionths = ((uint32_t)bytes[1] << 8 | bytes[2]) * 16 % CODEC_SHARE_MAX + 1;
    }
    check_text(&codec);
    check_decode(&codec, bytes + HEADER_BYTES, size - HEADER_BYTES, (size_t)bytes[3] * COUNT_STEP);
    check_feedback(&codec, bytes + HEADER_BYTES, size - HEADER_BYTES);
    return 0;
}
