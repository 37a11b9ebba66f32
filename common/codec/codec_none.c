/* Raw floats: the encoding that loses nothing. */
#include "common/codec/codec_rules.h"

static size_t bytes_of(const struct codec *codec, size_t count)
{
    (void)codec;
    return count * sizeof(float);
}

VARIANT_BODY void none_encode_body(const float *restrict values, size_t count,
                                   uint8_t *restrict ret_bytes)
{
    memcpy(ret_bytes, values, count * sizeof(float));
}

VARIANT_BODY void none_decode_body(const uint8_t *restrict bytes, size_t count, enum codec_use use,
                                   float *restrict to)
{
    for (size_t i = 0; i < count; i++) {
        float decoded;
        memcpy(&decoded, bytes + i * sizeof(decoded), sizeof(decoded));
        to[i] = codec_used(use, to[i], decoded);
    }
}

CODEC_DEFINE_LOOPS(none)

const struct codec_rule codec_rule_none = {
    .name = "none",
    .is_tiled = true,
    .bytes = bytes_of,
    .loops = CODEC_LOOPS(none),
};
