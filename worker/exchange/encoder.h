/* What an exchange sends of a vector when gradients are compressed: encoded values, and
 * their errors, for the next step. Each value is encoded once in a step. */
#ifndef WORKER_EXCHANGE_ENCODER_H
#define WORKER_EXCHANGE_ENCODER_H

#include "common/base/status.h"
#include "common/channel/wire.h"
#include "common/codec/codec.h"
#include "common/vector/layout.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: values are sent as they are. */
struct encoder {
    struct codec codec;
    float *residual;        // (value_count), owned
    unsigned char *encoded; // of each span, at a place of its own; owned
    uint64_t value_count;
};

enum status encoder_create(const struct codec *codec, const struct layout *layout,
                           struct encoder *ret_encoder);
void encoder_destroy(struct encoder *encoder); // zeroed is fine

bool encoder_is_on(const struct encoder *encoder);

/* Points the message at what is sent of its span, of the flat vector `values`: there, or at encoded
 * bytes that stay as they are until the span is encoded again. */
void encoder_encode(struct encoder *encoder, const float *values, struct message *message);

/* Points the message at a copy of what another worker has encoded of its span. */
void encoder_keep(struct encoder *encoder, const struct message *from, struct message *message);

/* STATUS_MALFORMED if what came is not in the form that was agreed. */
enum status encoder_check(const struct encoder *encoder, const struct message *message);

/* What came, into the flat vector: in the place of what is there, or added to it.
 * STATUS_MALFORMED if it is not in the form that was agreed. */
enum status encoder_copy(const struct encoder *encoder, const struct message *message,
                         float *values);
enum status encoder_add(const struct encoder *encoder, const struct message *message,
                        float *values);

#endif
