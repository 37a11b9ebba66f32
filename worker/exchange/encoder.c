/* Encodes spans of a vector, and keeps the errors for the next step. */
#include "worker/exchange/encoder.h"

#include "common/base/memory.h"
#include "common/vector/vector.h"

#include <assert.h>
#include <string.h>

enum status encoder_create(const struct codec *codec, const struct layout *layout,
                           struct encoder *ret_encoder)
{
    *ret_encoder = (struct encoder){.codec = *codec, .value_count = layout->value_count};
    if (codec->kind == CODEC_NONE) {
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < layout->bucket_count; i++) {
        if (layout->buckets[i].count > CODEC_COUNT_MAX) {
            return STATUS_UNSUPPORTED;
        }
    }
    ret_encoder->residual = memory_create_large(layout->value_count * sizeof(float));
    ret_encoder->encoded = memory_create_large(layout->value_count * CODEC_VALUE_BYTES_MAX);
    if (ret_encoder->residual == NULL || ret_encoder->encoded == NULL) {
        encoder_destroy(ret_encoder);
        return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

void encoder_destroy(struct encoder *encoder)
{
    memory_destroy_large(encoder->residual, encoder->value_count * sizeof(float));
    memory_destroy_large(encoder->encoded, encoder->value_count * CODEC_VALUE_BYTES_MAX);
    *encoder = (struct encoder){0};
}

bool encoder_is_on(const struct encoder *encoder)
{
    return encoder->codec.kind != CODEC_NONE;
}

static unsigned char *place_of(const struct encoder *encoder, struct span span)
{
    return encoder->encoded + CODEC_VALUE_BYTES_MAX * span.offset;
}

void encoder_encode(struct encoder *encoder, const float *values, struct message *message)
{
    struct span span = message->span;
    if (!encoder_is_on(encoder)) {
        message->values = values + span.offset;
        return;
    }
    unsigned char *encoded = place_of(encoder, span);
    assert(codec_bytes(&encoder->codec, span.count) <= CODEC_VALUE_BYTES_MAX * span.count);
    message->encoded_bytes =
        codec_encode_with_feedback(&encoder->codec, values + span.offset,
                                   encoder->residual + span.offset, span.count, encoded);
    message->encoded = encoded;
}

void encoder_keep(struct encoder *encoder, const struct message *from, struct message *message)
{
    unsigned char *encoded = place_of(encoder, message->span);
    memcpy(encoded, from->encoded, from->encoded_bytes);
    message->encoded = encoded;
    message->encoded_bytes = from->encoded_bytes;
}

/* Whether a message has encoded values of the right length where that was agreed, and plain ones
 * otherwise. */
static bool is_agreed(const struct encoder *encoder, const struct message *message)
{
    return encoder_is_on(encoder)
               ? message->encoded != NULL &&
                     message->encoded_bytes == codec_bytes(&encoder->codec, message->span.count)
               : message->values != NULL;
}

enum status encoder_check(const struct encoder *encoder, const struct message *message)
{
    if (!is_agreed(encoder, message)) {
        return STATUS_MALFORMED;
    }
    return encoder_is_on(encoder) ? codec_check(&encoder->codec, message->encoded,
                                                message->encoded_bytes, message->span.count)
                                  : STATUS_OK;
}

enum status encoder_copy(const struct encoder *encoder, const struct message *message,
                         float *values)
{
    struct span span = message->span;
    if (!is_agreed(encoder, message)) {
        return STATUS_MALFORMED;
    }
    if (encoder_is_on(encoder)) {
        return codec_decode(&encoder->codec, message->encoded, message->encoded_bytes, span.count,
                            values + span.offset);
    }
    memcpy(values + span.offset, message->values, span.count * sizeof(float));
    return STATUS_OK;
}

enum status encoder_add(const struct encoder *encoder, const struct message *message, float *values)
{
    struct span span = message->span;
    if (!is_agreed(encoder, message)) {
        return STATUS_MALFORMED;
    }
    if (encoder_is_on(encoder)) {
        return codec_decode_add(&encoder->codec, message->encoded, message->encoded_bytes,
                                span.count, values + span.offset);
    }
    vector_add(values + span.offset, message->values, span.count);
    return STATUS_OK;
}
