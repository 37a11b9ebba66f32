/* What an exchange sends of a vector when gradients are compressed: codes in the place of values,
 * and what they lost, for the next step. Each value is encoded once in a step. */
#ifndef WORKER_EXCHANGE_CODER_H
#define WORKER_EXCHANGE_CODER_H

#include "common/base/status.h"
#include "common/channel/wire.h"
#include "common/codec/codec.h"
#include "common/vector/layout.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: values are sent as they are. */
struct coder {
    struct codec codec;
    float *residual;      // (value_count), owned
    unsigned char *codes; // of each span, at a place of its own; owned
    uint64_t value_count;
};

enum status coder_create(const struct codec *codec, const struct layout *layout,
                         struct coder *ret_coder);
void coder_destroy(struct coder *coder); // zeroed is fine

bool coder_is_on(const struct coder *coder);

/* Points the message at what is sent of its span, of the flat vector `values`: there, or at a code
 * that stays as it is until the span is encoded again. */
void coder_encode(struct coder *coder, const float *values, struct message *message);

/* Points the message at a copy of somebody else's code of its span. */
void coder_keep(struct coder *coder, const struct message *from, struct message *message);

/* STATUS_MALFORMED if what came is not in the form that was agreed. */
enum status coder_check(const struct coder *coder, const struct message *message);

/* What came, into the flat vector: in the place of what is there, or added to it.
 * STATUS_MALFORMED if it is not in the form that was agreed. */
enum status coder_copy(const struct coder *coder, const struct message *message, float *values);
enum status coder_add(const struct coder *coder, const struct message *message, float *values);

#endif
