/* Compressed gradients and parameters, between a shard and its workers.
 *
 * Pushes are decoded before the shard sees them. Where workers make their steps together they are
 * answered with an encoded change: by how much the parameters differ from what all workers have.
 * What that loses is part of the next change, so nothing is lost for ever (error feedback). A shard
 * that hands back means answers with the encoded mean, and adds what that loses to the next one.
 * Where each worker has another version they are answered with parameters.
 *
 * Opens and sends nothing. */
#ifndef PS_SERVER_SHARD_ANSWER_ENCODER_H
#define PS_SERVER_SHARD_ANSWER_ENCODER_H

#include "common/base/status.h"
#include "common/channel/wire.h"
#include "common/codec/codec.h"
#include "common/transport/transport.h"
#include "common/vector/layout.h"

#include <stdbool.h>
#include <stdint.h>

enum encoded_answers {
    ANSWERS_PLAIN,
    ANSWERS_CHANGES, // of the parameters
    ANSWERS_MEANS,   // of gradients
};

/* Of one bucket's part. */
struct encoded_part {
    struct span span;
    uint64_t start; // in `known`
    uint64_t step;  // of what is encoded there; UINT64_MAX: nothing
    size_t bytes;
};

/* Zeroed: nothing is compressed. */
struct answer_encoder {
    struct codec codec;
    enum encoded_answers answers;
    struct encoded_part *parts; // (part_count), owned
    uint32_t part_count;
    float *known, *change; // (value_count) what all workers have; of the part that is encoded
    float *residual;       // (value_count) of means: what the last encoding has lost
    unsigned char *bytes;  // of each part, at a place of its own
    uint64_t value_count;
};

/* For part `index` of `shard_count` of every bucket. */
enum status answer_encoder_begin(struct answer_encoder *encoder, const struct codec *codec,
                                 enum encoded_answers answers, const struct layout *layout,
                                 uint32_t index, uint32_t shard_count);
void answer_encoder_finish(struct answer_encoder *encoder); // zeroed is fine

/* A SEED of parameters: what workers begin with. */
void answer_encoder_note_seed(struct answer_encoder *encoder, const struct message *seed);

/* A message with encoded values becomes one with plain ones, in an envelope of its own in the place
 * of *envelope. One with plain values stays as it is, unless they should be encoded.
 * STATUS_MALFORMED if it is not as agreed; nothing has changed then. */
enum status answer_encoder_decode(const struct answer_encoder *encoder, struct message *message,
                                  struct envelope *envelope);

/* An answer with parameters becomes one with their encoded change, or with the encoded mean, which
 * stays as it is until the next step's. */
void answer_encoder_encode(struct answer_encoder *encoder, struct message *answer);

#endif
