/* Codes of spans, and their residuals. */
#include "worker/exchange/coder.h"

#include "common/base/memory.h"
#include "common/vector/vector.h"

#include <assert.h>
#include <string.h>

enum status coder_create(const struct codec *codec, const struct layout *layout,
                         struct coder *ret_coder)
{
    *ret_coder = (struct coder){.codec = *codec, .value_count = layout->value_count};
    if (codec->kind == CODEC_NONE) {
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < layout->bucket_count; i++) {
        if (layout->buckets[i].count > CODEC_COUNT_MAX) {
            return STATUS_UNSUPPORTED;
        }
    }
    ret_coder->residual = memory_create_large(layout->value_count * sizeof(float));
    ret_coder->codes = memory_create_large(layout->value_count * CODEC_VALUE_BYTES_MAX);
    if (ret_coder->residual == NULL || ret_coder->codes == NULL) {
        coder_destroy(ret_coder);
        return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

void coder_destroy(struct coder *coder)
{
    memory_destroy_large(coder->residual, coder->value_count * sizeof(float));
    memory_destroy_large(coder->codes, coder->value_count * CODEC_VALUE_BYTES_MAX);
    *coder = (struct coder){0};
}

bool coder_is_on(const struct coder *coder)
{
    return coder->codec.kind != CODEC_NONE;
}

static unsigned char *place_of(const struct coder *coder, struct span span)
{
    return coder->codes + CODEC_VALUE_BYTES_MAX * span.offset;
}

void coder_encode(struct coder *coder, const float *values, struct message *message)
{
    struct span span = message->span;
    if (!coder_is_on(coder)) {
        message->values = values + span.offset;
        return;
    }
    unsigned char *code = place_of(coder, span);
    assert(codec_bytes(&coder->codec, span.count) <= CODEC_VALUE_BYTES_MAX * span.count);
    message->code_bytes = codec_encode_with_feedback(
        &coder->codec, values + span.offset, coder->residual + span.offset, span.count, code);
    message->code = code;
}

void coder_keep(struct coder *coder, const struct message *from, struct message *message)
{
    unsigned char *code = place_of(coder, message->span);
    memcpy(code, from->code, from->code_bytes);
    message->code = code;
    message->code_bytes = from->code_bytes;
}

/* Whether a message has a code where that was agreed, of the right length, and values otherwise. */
static bool is_agreed(const struct coder *coder, const struct message *message)
{
    return coder_is_on(coder)
               ? message->code != NULL &&
                     message->code_bytes == codec_bytes(&coder->codec, message->span.count)
               : message->values != NULL;
}

enum status coder_check(const struct coder *coder, const struct message *message)
{
    if (!is_agreed(coder, message)) {
        return STATUS_MALFORMED;
    }
    return coder_is_on(coder)
               ? codec_check(&coder->codec, message->code, message->code_bytes, message->span.count)
               : STATUS_OK;
}

enum status coder_copy(const struct coder *coder, const struct message *message, float *values)
{
    struct span span = message->span;
    if (!is_agreed(coder, message)) {
        return STATUS_MALFORMED;
    }
    if (coder_is_on(coder)) {
        return codec_decode(&coder->codec, message->code, message->code_bytes, span.count,
                            values + span.offset);
    }
    memcpy(values + span.offset, message->values, span.count * sizeof(float));
    return STATUS_OK;
}

enum status coder_add(const struct coder *coder, const struct message *message, float *values)
{
    struct span span = message->span;
    if (!is_agreed(coder, message)) {
        return STATUS_MALFORMED;
    }
    if (coder_is_on(coder)) {
        return codec_decode_add(&coder->codec, message->code, message->code_bytes, span.count,
                                values + span.offset);
    }
    vector_add(values + span.offset, message->values, span.count);
    return STATUS_OK;
}
