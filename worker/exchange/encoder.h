/* Encodes the values that an exchange sends when gradients are compressed, and keeps their errors
 * for the next step. Each value is encoded once in a step. */
#ifndef WORKER_EXCHANGE_ENCODER_H
#define WORKER_EXCHANGE_ENCODER_H

#include "common/base/status.h"
#include "common/channel/wire.h"
#include "common/codec/codec.h"
#include "common/vector/layout.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed, it sends values as they are. */
struct encoder {
    struct codec codec;
    float *residual;        // (value_count), owned
    unsigned char *encoded; // a place for each span's encoded bytes; owned
    uint64_t value_count;
};

enum status encoder_create(const struct codec *codec, const struct layout *layout,
                           struct encoder *ret_encoder);
void encoder_destroy(struct encoder *encoder); // zeroed is fine

bool encoder_is_on(const struct encoder *encoder);

/* Points the message at what is sent of its span of the flat vector `values`: the values
 * themselves, or encoded bytes, which stay as they are until the span is encoded again. */
void encoder_encode(struct encoder *encoder, const float *values, struct message *message);

/* Points the message at a copy of what another worker has encoded for its span. */
void encoder_keep(struct encoder *encoder, const struct message *from, struct message *message);

/* Returns STATUS_MALFORMED if the message is not in the agreed form. */
enum status encoder_check(const struct encoder *encoder, const struct message *message);

/* Decodes what came into the flat vector: replaces what is there, or adds to it. Returns
 * STATUS_MALFORMED if the message is not in the agreed form. */
enum status encoder_copy(const struct encoder *encoder, const struct message *message,
                         float *values);
enum status encoder_add(const struct encoder *encoder, const struct message *message,
                        float *values);

#endif
