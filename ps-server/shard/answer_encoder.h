/* Compressed gradients and parameters, between a shard and its workers.
 *
 * Pushes are decoded before the shard sees them. Where workers make their steps together they are
 * answered with the code of a change: by how much the parameters differ from what all workers have.
 * What that loses is part of the next change, so nothing is lost for ever (error feedback). Where
 * each has another version they are answered with parameters.
 *
 * Opens and sends nothing. */
#ifndef PS_SERVER_SHARD_CODES_H
#define PS_SERVER_SHARD_CODES_H

#include "common/base/status.h"
#include "common/channel/wire.h"
#include "common/codec/codec.h"
#include "common/transport/transport.h"
#include "common/vector/layout.h"

#include <stdbool.h>
#include <stdint.h>

/* Of one bucket's part. */
struct codes_part {
    struct span span;
    uint64_t start; // in `known`
    uint64_t step;  // of the code that is there; UINT64_MAX: none
    size_t bytes;
};

/* Zeroed: nothing is compressed. */
struct codes {
    struct codec codec;
    bool sends_changes;
    struct codes_part *parts; // (part_count), owned
    uint32_t part_count;
    float *known, *change; // (value_count) what all workers have; of the part that is encoded
    unsigned char *bytes;  // of each part, at a place of its own
    uint64_t value_count;
};

/* For part `index` of `shard_count` of every bucket. */
enum status codes_begin(struct codes *codes, const struct codec *codec, bool sends_changes,
                        const struct layout *layout, uint32_t index, uint32_t shard_count);
void codes_finish(struct codes *codes); // zeroed is fine

/* A SEED of parameters: what workers begin with. */
void codes_note_seed(struct codes *codes, const struct message *seed);

/* A message with a code becomes one with values, in an envelope of its own in the place of
 * *envelope. One with values stays as it is, unless it should have a code. STATUS_MALFORMED if it
 * is not as agreed; nothing has changed then. */
enum status codes_decode(const struct codes *codes, struct message *message,
                         struct envelope *envelope);

/* An answer with parameters becomes one with the code of their change, which stays as it is until
 * the next step's. */
void codes_encode(struct codes *codes, struct message *answer);

#endif
