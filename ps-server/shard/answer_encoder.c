/* Decodes what workers push, and encodes changes of parameters, or means of gradients. */
#include "ps-server/shard/answer_encoder.h"

#include "common/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static enum status create_parts(struct answer_encoder *encoder, const struct layout *layout,
                                uint32_t index, uint32_t shard_count)
{
    encoder->part_count = layout->bucket_count;
    encoder->parts = calloc(layout->bucket_count, sizeof(*encoder->parts));
    if (encoder->parts == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < layout->bucket_count; i++) {
        struct span span = span_part(layout->buckets[i], shard_count, index);
        if (span.count > CODEC_COUNT_MAX) {
            return STATUS_UNSUPPORTED;
        }
        encoder->parts[i] =
            (struct encoded_part){.span = span, .start = encoder->value_count, .step = UINT64_MAX};
        encoder->value_count += span.count;
    }
    return STATUS_OK;
}

static enum status create_vectors(struct answer_encoder *encoder)
{
    const size_t bytes = encoder->value_count * sizeof(float);
    if (encoder->answers == ANSWERS_PLAIN || bytes == 0) {
        return STATUS_OK;
    }
    encoder->bytes = memory_create_large(encoder->value_count * CODEC_VALUE_BYTES_MAX);
    bool is_whole = encoder->bytes != NULL;
    if (encoder->answers == ANSWERS_MEANS) {
        encoder->residual = memory_create_large(bytes);
        is_whole = is_whole && encoder->residual != NULL;
    } else {
        encoder->known = memory_create_large(bytes);
        encoder->change = memory_create_large(bytes);
        is_whole = is_whole && encoder->known != NULL && encoder->change != NULL;
    }
    return is_whole ? STATUS_OK : STATUS_NO_MEMORY;
}

enum status answer_encoder_begin(struct answer_encoder *encoder, const struct codec *codec,
                                 enum encoded_answers answers, const struct layout *layout,
                                 uint32_t index, uint32_t shard_count)
{
    answer_encoder_finish(encoder);
    if (codec->kind == CODEC_NONE) {
        return STATUS_OK;
    }
    encoder->codec = *codec;
    encoder->answers = answers;
    enum status status = create_parts(encoder, layout, index, shard_count);
    status = status == STATUS_OK ? create_vectors(encoder) : status;
    if (status != STATUS_OK) {
        answer_encoder_finish(encoder);
    }
    return status;
}

void answer_encoder_finish(struct answer_encoder *encoder)
{
    free(encoder->parts);
    memory_destroy_large(encoder->known, encoder->value_count * sizeof(float));
    memory_destroy_large(encoder->change, encoder->value_count * sizeof(float));
    memory_destroy_large(encoder->residual, encoder->value_count * sizeof(float));
    memory_destroy_large(encoder->bytes, encoder->value_count * CODEC_VALUE_BYTES_MAX);
    *encoder = (struct answer_encoder){0};
}

/* The part of a message's bucket, if its span is that; NULL otherwise. */
static struct encoded_part *part_of(const struct answer_encoder *encoder,
                                    const struct message *message)
{
    if (message->bucket >= encoder->part_count) {
        return NULL;
    }
    struct encoded_part *part = &encoder->parts[message->bucket];
    bool is_whole =
        message->span.offset == part->span.offset && message->span.count == part->span.count;
    return is_whole && part->span.count > 0 ? part : NULL;
}

void answer_encoder_note_seed(struct answer_encoder *encoder, const struct message *seed)
{
    const struct encoded_part *part = part_of(encoder, seed);
    if (encoder->known != NULL && part != NULL && seed->vector == 0) {
        memcpy(encoder->known + part->start, seed->values, part->span.count * sizeof(float));
    }
}

enum status answer_encoder_decode(const struct answer_encoder *encoder, struct message *message,
                                  struct envelope *envelope)
{
    bool is_due = encoder->codec.kind != CODEC_NONE && message->kind == MESSAGE_PUSH;
    if (!is_due && message->encoded == NULL) {
        return STATUS_OK;
    }
    if (!is_due || message->encoded == NULL || part_of(encoder, message) == NULL) {
        return STATUS_MALFORMED;
    }
    struct envelope decoded;
    float *values;
    enum status status = envelope_make_floats(message->span.count, &decoded, &values);
    if (status != STATUS_OK) {
        return status;
    }
    status = codec_decode(&encoder->codec, message->encoded, message->encoded_bytes,
                          message->span.count, values);
    if (status != STATUS_OK) {
        envelope_release(&decoded);
        return status;
    }
    decoded.peer = envelope->peer;
    envelope_release(envelope);
    envelope_move(envelope, &decoded);
    message->encoded = NULL;
    message->encoded_bytes = 0;
    message->values = envelope->payload;
    return STATUS_OK;
}

/* The mean of a step, with what the last one has lost. */
static size_t encode_mean(const struct answer_encoder *encoder, const struct encoded_part *part,
                          const float *mean, unsigned char *encoded)
{
    return codec_encode_with_feedback(&encoder->codec, mean, encoder->residual + part->start,
                                      part->span.count, encoded);
}

/* The change since the last one. */
static size_t encode_change(const struct answer_encoder *encoder, const struct encoded_part *part,
                            const float *params, unsigned char *encoded)
{
    float *known = encoder->known + part->start, *change = encoder->change + part->start;
    for (uint64_t i = 0; i < part->span.count; i++) {
        change[i] = params[i] - known[i];
    }
    size_t bytes = codec_encode(&encoder->codec, change, part->span.count, encoded);
    enum status status = codec_decode_add(&encoder->codec, encoded, bytes, part->span.count, known);
    assert(status == STATUS_OK);
    (void)status;
    return bytes;
}

/* Once for all workers. */
static void encode_part(struct answer_encoder *encoder, struct encoded_part *part,
                        const struct message *answer)
{
    unsigned char *encoded = encoder->bytes + CODEC_VALUE_BYTES_MAX * part->start;
    part->bytes = encoder->answers == ANSWERS_MEANS
                      ? encode_mean(encoder, part, answer->values, encoded)
                      : encode_change(encoder, part, answer->values, encoded);
    part->step = answer->step;
}

void answer_encoder_encode(struct answer_encoder *encoder, struct message *answer)
{
    struct encoded_part *part = part_of(encoder, answer);
    if (encoder->answers == ANSWERS_PLAIN || part == NULL || answer->kind != MESSAGE_PARAMS ||
        answer->vector > 0 || answer->values == NULL) {
        return;
    }
    if (part->step != answer->step) {
        encode_part(encoder, part, answer);
    }
    answer->values = NULL;
    answer->encoded = encoder->bytes + CODEC_VALUE_BYTES_MAX * part->start;
    answer->encoded_bytes = part->bytes;
}
