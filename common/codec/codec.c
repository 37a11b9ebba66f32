/* Parses and applies encodings by their rows, with error feedback around any of them. */
#include "common/codec/codec.h"

#include "common/base/number.h"
#include "common/codec/codec_rules.h"
#include "common/vector/vector.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

// Values that error feedback works on at a time, so that they stay in the cache.
#define FEEDBACK_TILE ((size_t)16 * CODEC_BLOCK)

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "what is sent is as it is in memory");

const struct codec_rule *const codec_rules[CODEC_KIND_COUNT] = {
    [CODEC_NONE] = &codec_rule_none, [CODEC_FP16] = &codec_rule_fp16,
    [CODEC_BF16] = &codec_rule_bf16, [CODEC_INT8] = &codec_rule_int8,
    [CODEC_TOPK] = &codec_rule_topk,
};

static const struct codec_rule *rule_of(const struct codec *codec)
{
    assert(codec->kind < CODEC_KIND_COUNT);
    return codec_rules[codec->kind];
}

/* A whole number of millionths, from one to all of them. */
static bool parse_share(const char *text, uint32_t *ret_millionths)
{
    double share = 0;
    size_t size = number_decimal(text, &share);
    if (size == 0 || text[size] != '\0' || share > 1) {
        return false;
    }
    double millionths = share * CODEC_SHARE_MAX;
    // Parsed values are exact up to the last places of a double.
    bool is_whole = fabs(millionths - round(millionths)) < 1e-8;
    *ret_millionths = (uint32_t)round(millionths);
    return is_whole && *ret_millionths > 0;
}

/* Of the row's kind, if that is what the text says. */
static bool parse_kind(const char *text, const struct codec_rule *rule, struct codec *codec)
{
    size_t size = strlen(rule->name);
    if (strncmp(text, rule->name, size) != 0) {
        return false;
    }
    return rule->has_share
               ? text[size] == ':' && parse_share(text + size + 1, &codec->share_millionths)
               : text[size] == '\0';
}

enum status codec_parse(const char *text, struct codec *ret_codec, char *ret_why, size_t why_size)
{
    for (unsigned kind = 0; kind < CODEC_KIND_COUNT; kind++) {
        struct codec codec = {.kind = (enum codec_kind)kind};
        if (parse_kind(text, codec_rules[kind], &codec)) {
            *ret_codec = codec;
            return STATUS_OK;
        }
    }
    snprintf(ret_why, why_size,
             "wanted is none, fp16, bf16, int8 or topk:SHARE (what is sent of the values, from "
             "0.000001 to 1, with at most 6 digits behind the point)");
    return STATUS_INVALID;
}

bool codec_is_same(const struct codec *one, const struct codec *other)
{
    return one->kind == other->kind && one->share_millionths == other->share_millionths;
}

void codec_text(const struct codec *codec, char ret_text[CODEC_TEXT_BYTES])
{
    const struct codec_rule *rule = rule_of(codec);
    if (!rule->has_share) {
        snprintf(ret_text, CODEC_TEXT_BYTES, "%s", rule->name);
        return;
    }
    int length = snprintf(ret_text, CODEC_TEXT_BYTES, "%s:%u.%06u", rule->name,
                          codec->share_millionths / CODEC_SHARE_MAX,
                          codec->share_millionths % CODEC_SHARE_MAX);
    assert(length > 0 && length < CODEC_TEXT_BYTES);
    char *end = ret_text + length;
    while (end[-1] == '0') {
        end--;
    }
    end -= end[-1] == '.';
    *end = '\0';
}

size_t codec_bytes(const struct codec *codec, size_t count)
{
    assert(count <= CODEC_COUNT_MAX);
    return rule_of(codec)->bytes(codec, count);
}

size_t codec_encode(const struct codec *codec, const float *values, size_t count, void *ret_bytes)
{
    if (count > 0) { // or there may be no pointers
        rule_of(codec)->loops[variant_best()].encode(codec, values, count, ret_bytes);
    }
    return codec_bytes(codec, count);
}

size_t codec_encode_with_feedback(const struct codec *codec, const float *values, float *residual,
                                  size_t count, void *ret_bytes)
{
    const struct codec_rule *rule = rule_of(codec);
    const struct codec_loops *loops = &rule->loops[variant_best()];
    size_t tile_max = rule->is_tiled ? FEEDBACK_TILE : count;
    uint8_t *at = ret_bytes;
    for (size_t start = 0; start < count; start += tile_max) {
        size_t tile = count - start < tile_max ? count - start : tile_max;
        float *sum = residual + start;
        vector_add(sum, values + start, tile);
        loops->encode(codec, sum, tile, at);
        loops->decode(codec, at, tile, CODEC_KEEP_REST, sum);
        at += rule->bytes(codec, tile);
    }
    return codec_bytes(codec, count);
}

enum status codec_check(const struct codec *codec, const void *bytes, size_t size, size_t count)
{
    const struct codec_rule *rule = rule_of(codec);
    if (size != codec_bytes(codec, count)) {
        return STATUS_MALFORMED;
    }
    bool is_valid = count == 0 || rule->is_valid == NULL || rule->is_valid(codec, bytes, count);
    return is_valid ? STATUS_OK : STATUS_MALFORMED;
}

static enum status decode(const struct codec *codec, const uint8_t *bytes, size_t size,
                          size_t count, enum codec_use use, float *to)
{
    enum status status = codec_check(codec, bytes, size, count);
    if (status == STATUS_OK && count > 0) { // or there may be no pointers
        rule_of(codec)->loops[variant_best()].decode(codec, bytes, count, use, to);
    }
    return status;
}

enum status codec_decode(const struct codec *codec, const void *bytes, size_t size, size_t count,
                         float *ret_values)
{
    return decode(codec, bytes, size, count, CODEC_SET, ret_values);
}

enum status codec_decode_add(const struct codec *codec, const void *bytes, size_t size,
                             size_t count, float *to)
{
    return decode(codec, bytes, size, count, CODEC_ADD, to);
}
