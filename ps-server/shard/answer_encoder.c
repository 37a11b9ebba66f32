/* Codes in, changes out. */
#include "ps-server/shard/codes.h"

#include "common/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static enum status create_parts(struct codes *codes, const struct layout *layout, uint32_t index,
                                uint32_t shard_count)
{
    codes->part_count = layout->bucket_count;
    codes->parts = calloc(layout->bucket_count, sizeof(*codes->parts));
    if (codes->parts == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < layout->bucket_count; i++) {
        struct span span = span_part(layout->buckets[i], shard_count, index);
        if (span.count > CODEC_COUNT_MAX) {
            return STATUS_UNSUPPORTED;
        }
        codes->parts[i] =
            (struct codes_part){.span = span, .start = codes->value_count, .step = UINT64_MAX};
        codes->value_count += span.count;
    }
    return STATUS_OK;
}

enum status codes_begin(struct codes *codes, const struct codec *codec, bool sends_changes,
                        const struct layout *layout, uint32_t index, uint32_t shard_count)
{
    codes_finish(codes);
    if (codec->kind == CODEC_NONE) {
        return STATUS_OK;
    }
    codes->codec = *codec;
    codes->sends_changes = sends_changes;
    enum status status = create_parts(codes, layout, index, shard_count);
    if (status == STATUS_OK && sends_changes && codes->value_count > 0) {
        codes->known = memory_create_large(codes->value_count * sizeof(float));
        codes->change = memory_create_large(codes->value_count * sizeof(float));
        codes->bytes = memory_create_large(codes->value_count * CODEC_VALUE_BYTES_MAX);
        if (codes->known == NULL || codes->change == NULL || codes->bytes == NULL) {
            status = STATUS_NO_MEMORY;
        }
    }
    if (status != STATUS_OK) {
        codes_finish(codes);
    }
    return status;
}

void codes_finish(struct codes *codes)
{
    free(codes->parts);
    memory_destroy_large(codes->known, codes->value_count * sizeof(float));
    memory_destroy_large(codes->change, codes->value_count * sizeof(float));
    memory_destroy_large(codes->bytes, codes->value_count * CODEC_VALUE_BYTES_MAX);
    *codes = (struct codes){0};
}

/* The part of a message's bucket, if its span is that; NULL otherwise. */
static struct codes_part *part_of(const struct codes *codes, const struct message *message)
{
    if (message->bucket >= codes->part_count) {
        return NULL;
    }
    struct codes_part *part = &codes->parts[message->bucket];
    bool is_whole =
        message->span.offset == part->span.offset && message->span.count == part->span.count;
    return is_whole && part->span.count > 0 ? part : NULL;
}

void codes_note_seed(struct codes *codes, const struct message *seed)
{
    const struct codes_part *part = part_of(codes, seed);
    if (codes->known != NULL && part != NULL && seed->vector == 0) {
        memcpy(codes->known + part->start, seed->values, part->span.count * sizeof(float));
    }
}

enum status codes_decode(const struct codes *codes, struct message *message,
                         struct envelope *envelope)
{
    bool is_due = codes->codec.kind != CODEC_NONE && message->kind == MESSAGE_PUSH;
    if (!is_due && message->code == NULL) {
        return STATUS_OK;
    }
    if (!is_due || message->code == NULL || part_of(codes, message) == NULL) {
        return STATUS_MALFORMED;
    }
    struct envelope decoded;
    float *values;
    enum status status = envelope_make_floats(message->span.count, &decoded, &values);
    if (status != STATUS_OK) {
        return status;
    }
    status = codec_decode(&codes->codec, message->code, message->code_bytes, message->span.count,
                          values);
    if (status != STATUS_OK) {
        envelope_release(&decoded);
        return status;
    }
    decoded.peer = envelope->peer;
    envelope_release(envelope);
    envelope_move(envelope, &decoded);
    message->code = NULL;
    message->code_bytes = 0;
    message->values = envelope->payload;
    return STATUS_OK;
}

/* The change since the last one, once for all workers. */
static void encode_part(struct codes *codes, struct codes_part *part, const struct message *answer)
{
    float *known = codes->known + part->start, *change = codes->change + part->start;
    unsigned char *code = codes->bytes + CODEC_VALUE_BYTES_MAX * part->start;
    for (uint64_t i = 0; i < part->span.count; i++) {
        change[i] = answer->values[i] - known[i];
    }
    part->bytes = codec_encode(&codes->codec, change, part->span.count, code);
    part->step = answer->step;
    enum status status =
        codec_decode_add(&codes->codec, code, part->bytes, part->span.count, known);
    assert(status == STATUS_OK);
    (void)status;
}

void codes_encode(struct codes *codes, struct message *answer)
{
    struct codes_part *part = part_of(codes, answer);
    if (!codes->sends_changes || part == NULL || answer->kind != MESSAGE_PARAMS ||
        answer->vector > 0 || answer->values == NULL) {
        return;
    }
    if (part->step != answer->step) {
        encode_part(codes, part, answer);
    }
    answer->values = NULL;
    answer->code = codes->bytes + CODEC_VALUE_BYTES_MAX * part->start;
    answer->code_bytes = part->bytes;
}
