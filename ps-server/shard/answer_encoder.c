/* Decodes what workers push, and encodes changes of parameters. */
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

enum status answer_encoder_begin(struct answer_encoder *encoder, const struct codec *codec,
                                 bool sends_changes, const struct layout *layout, uint32_t index,
                                 uint32_t shard_count)
{
    answer_encoder_finish(encoder);
    if (codec->kind == CODEC_NONE) {
        return STATUS_OK;
    }
    encoder->codec = *codec;
    encoder->sends_changes = sends_changes;
    enum status status = create_parts(encoder, layout, index, shard_count);
    if (status == STATUS_OK && sends_changes && encoder->value_count > 0) {
        encoder->known = memory_create_large(encoder->value_count * sizeof(float));
        encoder->change = memory_create_large(encoder->value_count * sizeof(float));
        encoder->bytes = memory_create_large(encoder->value_count * CODEC_VALUE_BYTES_MAX);
        if (encoder->known == NULL || encoder->change == NULL || encoder->bytes == NULL) {
            status = STATUS_NO_MEMORY;
        }
    }
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

/* The change since the last one, once for all workers. */
static void encode_part(struct answer_encoder *encoder, struct encoded_part *part,
                        const struct message *answer)
{
    float *known = encoder->known + part->start, *change = encoder->change + part->start;
    unsigned char *encoded = encoder->bytes + CODEC_VALUE_BYTES_MAX * part->start;
    for (uint64_t i = 0; i < part->span.count; i++) {
        change[i] = answer->values[i] - known[i];
    }
    part->bytes = codec_encode(&encoder->codec, change, part->span.count, encoded);
    part->step = answer->step;
    enum status status =
        codec_decode_add(&encoder->codec, encoded, part->bytes, part->span.count, known);
    assert(status == STATUS_OK);
    (void)status;
}

void answer_encoder_encode(struct answer_encoder *encoder, struct message *answer)
{
    struct encoded_part *part = part_of(encoder, answer);
    if (!encoder->sends_changes || part == NULL || answer->kind != MESSAGE_PARAMS ||
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
