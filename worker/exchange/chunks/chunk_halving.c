/* Halves and doubles: all that goes to one worker in a hop is one message.
 *
 * A bucket is cut into slices: slice i is segment i of each of its chunks. What a rank has for a
 * segment, its values or their mean, is a piece, and halving_plan says which pieces go where in
 * which hop. In messages and in the store the pieces of a slice are of one size, that of its
 * longest segment: chunks differ by at most one float, and what a shorter one leaves unused is
 * ignored.
 *
 * The hops of a slice are taken in turn; what comes out of turn is held. A hop is sent once those
 * before it were taken. Segments are those of chunk_direct: each rank encodes its values once, the
 * rank that adds up a segment its mean, and both are handed on as they were encoded.
 *
 * A process that carries several ranks has a slice and a store for each of them, and what one of
 * them gives to another is taken straight from its store. */
#include "common/plan/halving_plan.h"
#include "common/vector/vector.h"
#include "worker/exchange/chunks/chunks.h"
#include "worker/exchange/chunks/ring_plan.h"

#include <assert.h>
#include <string.h>

/* As one of the ranks has it that are carried here. */
struct slice {
    uint32_t bucket, index, rank;
    uint32_t *position; // the hop that comes next
    uint64_t piece_floats;
    size_t piece_bytes;
    unsigned char *store; // of pieces
};

/* The first chunk is as long as any. */
static struct span longest_chunk(const struct exchange_options *options, uint32_t bucket)
{
    return span_part(options->layout->buckets[bucket], options->world, 0);
}

static uint32_t slice_count(const struct exchange_options *options, uint32_t bucket)
{
    return ring_segment_count(longest_chunk(options, bucket), SEGMENT_FLOATS);
}

static uint32_t piece_count(const struct exchange_options *options)
{
    return halving_value_count(options->world) + options->world;
}

static size_t piece_bytes(const struct exchange_options *options, uint32_t bucket, uint32_t index)
{
    struct span longest = ring_segment(longest_chunk(options, bucket), SEGMENT_FLOATS, index);
    return codec_bytes(&options->codec, longest.count);
}

/* The store of one rank for a bucket. */
static size_t rank_bytes(const struct exchange_options *options, uint32_t bucket)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < slice_count(options, bucket); i++) {
        bytes += piece_count(options) * piece_bytes(options, bucket, i);
    }
    return bytes;
}

static struct slice slice_at(const struct chunks *chunks, uint32_t bucket, uint32_t index,
                             uint32_t rank)
{
    const struct exchange_options *options = &chunks->base.options;
    const struct chunk_bucket *state = &chunks->buckets[bucket];
    uint32_t own = rank - options->rank;
    // Slices before the last one are of whole segments.
    size_t before = (size_t)index * piece_count(options) * piece_bytes(options, bucket, 0);
    return (struct slice){
        .bucket = bucket,
        .index = index,
        .rank = rank,
        .position = state->positions + (size_t)own * chunks_segments_max(options, bucket) + index,
        .piece_floats = ring_segment(longest_chunk(options, bucket), SEGMENT_FLOATS, index).count,
        .piece_bytes = piece_bytes(options, bucket, index),
        .store = state->store + own * rank_bytes(options, bucket) + before,
    };
}

static unsigned char *piece_at(const struct slice *slice, uint32_t index)
{
    return slice->store + index * slice->piece_bytes;
}

/* The slice's segment of the chunk that the rank which is `ahead` of its own adds up; its count is
 * 0 if the chunk has none. */
static struct span segment_of(const struct exchange_options *options, const struct slice *slice,
                              uint32_t ahead)
{
    uint32_t rank = (slice->rank + ahead) % options->world;
    struct span chunk = span_part(options->layout->buckets[slice->bucket], options->world, rank);
    return slice->index < ring_segment_count(chunk, SEGMENT_FLOATS)
               ? ring_segment(chunk, SEGMENT_FLOATS, slice->index)
               : (struct span){chunk.offset, 0};
}

/* A message of the piece alone, as encoder has it. */
static struct message piece_of(const struct chunks *chunks, struct span segment,
                               const unsigned char *bytes)
{
    struct message message = {.span = segment};
    if (encoder_is_on(&chunks->encoder)) {
        message.encoded = bytes;
        message.encoded_bytes = codec_bytes(&chunks->encoder.codec, segment.count);
    } else {
        message.values = (const float *)(const void *)bytes;
    }
    return message;
}

/* Floats of the bucket that are in the slice. */
static uint64_t slice_floats(const struct exchange_options *options, const struct slice *slice)
{
    uint64_t whole = SEGMENT_FLOATS * options->world;
    uint64_t rest = options->layout->buckets[slice->bucket].count - slice->index * whole;
    return rest < whole ? rest : whole;
}

static uint32_t halving_count(const struct exchange_options *options, uint32_t bucket)
{
    return options->block.count * slice_count(options, bucket) * halving_hop_count(options->world);
}

static size_t halving_store_bytes(const struct exchange_options *options, uint32_t bucket)
{
    return options->block.count * rank_bytes(options, bucket);
}

/* Returns where a message's pieces lie; NULL if the message is not of the agreed kind. */
static const unsigned char *pieces_of(const struct chunks *chunks, const struct message *message)
{
    return encoder_is_on(&chunks->encoder) ? message->encoded : (const void *)message->values;
}

/* Brings a sound piece into the rank's gradients: added to them, or in their place. */
static void use_piece(struct chunks *chunks, uint32_t rank, const struct message *piece, bool adds)
{
    float *grads = chunks_vector(chunks, rank);
    enum status status = adds ? encoder_add(&chunks->encoder, piece, grads)
                              : encoder_copy(&chunks->encoder, piece, grads);
    assert(status == STATUS_OK);
    (void)status;
}

/* Encodes what is in the rank's gradients of a segment, as a piece. */
static void put(struct chunks *chunks, uint32_t rank, struct span segment, unsigned char *piece)
{
    struct message message = {.span = segment};
    if (segment.count == 0) {
        return;
    }
    encoder_encode(&chunks->encoder, chunks_vector(chunks, rank), &message);
    if (encoder_is_on(&chunks->encoder)) {
        memcpy(piece, message.encoded, message.encoded_bytes);
    } else {
        memcpy(piece, message.values, segment.count * sizeof(float));
    }
}

/* To another process; a rank that is here takes it from the store. */
static enum status send_hop(struct chunks *chunks, const struct slice *slice, uint32_t index)
{
    const struct exchange_options *options = &chunks->base.options;
    struct halving_hop hop = halving_hop_at(options->world, index);
    uint32_t to = (slice->rank + options->world - hop.distance) % options->world;
    if (rank_block_has(options->block, to)) {
        return STATUS_OK;
    }
    struct span pieces = {options->layout->buckets[slice->bucket].offset +
                              slice->index * SEGMENT_FLOATS,
                          hop.count * slice->piece_floats};
    struct message message = piece_of(chunks, pieces, piece_at(slice, hop.first));
    if (message.encoded != NULL) {
        message.encoded_bytes = hop.count * slice->piece_bytes;
    }
    message.bucket = slice->bucket;
    message.hop = index;
    message.rank = slice->rank;
    return chunks_send(chunks, carriers_process(options->carriers, to), &message);
}

/* The rank to which a hop of another rank goes. */
static uint32_t receiver_of(const struct exchange_options *options, const struct message *message)
{
    struct halving_hop hop = halving_hop_at(options->world, message->hop);
    return (message->rank + options->world - hop.distance) % options->world;
}

static bool halving_is_expected(const struct chunks *chunks, const struct message *message)
{
    const struct exchange_options *options = &chunks->base.options;
    uint64_t start = options->layout->buckets[message->bucket].offset;
    if (message->hop < 1 || message->hop > halving_hop_count(options->world) ||
        message->span.offset < start || (message->span.offset - start) % SEGMENT_FLOATS != 0) {
        return false;
    }
    uint64_t index = (message->span.offset - start) / SEGMENT_FLOATS;
    struct halving_hop hop = halving_hop_at(options->world, message->hop);
    if (message->rank >= options->world || rank_block_has(options->block, message->rank) ||
        !rank_block_has(options->block, receiver_of(options, message)) ||
        index >= slice_count(options, message->bucket)) {
        return false;
    }
    struct slice slice = slice_at(chunks, message->bucket, (uint32_t)index, options->rank);
    return message->span.count == hop.count * slice.piece_floats;
}

/* How many pieces at the beginning of a message are decoded here; others are handed on. */
static uint32_t own_count(uint32_t world, const struct halving_hop *hop)
{
    if (hop->is_doubling) {
        return hop->count;
    }
    return hop->distance <= world - hop->distance ? hop->distance : world - hop->distance;
}

/* The piece at `index` of those, as it came in `bytes`. */
static struct message own_piece(const struct chunks *chunks, const struct slice *slice,
                                const struct halving_hop *hop, const unsigned char *bytes,
                                uint32_t index)
{
    uint32_t ahead = hop->is_doubling ? hop->distance + index : 0;
    struct span segment = segment_of(&chunks->base.options, slice, ahead);
    return piece_of(chunks, segment, bytes + index * slice->piece_bytes);
}

/* Whether the message, with every piece that is decoded here, is in the agreed form. */
static bool is_sound(const struct chunks *chunks, const struct slice *slice,
                     const struct halving_hop *hop, const struct message *message)
{
    const unsigned char *bytes = pieces_of(chunks, message);
    if (bytes == NULL || (encoder_is_on(&chunks->encoder) &&
                          message->encoded_bytes != hop->count * slice->piece_bytes)) {
        return false;
    }
    for (uint32_t i = 0; i < own_count(chunks->base.options.world, hop); i++) {
        struct message piece = own_piece(chunks, slice, hop, bytes, i);
        if (encoder_check(&chunks->encoder, &piece) != STATUS_OK) {
            return false;
        }
    }
    return true;
}

/* Adds the values for this rank's own segment, which come in the order of their sum. Keeps the
 * others. */
static void take_values(struct chunks *chunks, const struct slice *slice,
                        const struct halving_hop *hop, const unsigned char *bytes)
{
    const struct exchange_options *options = &chunks->base.options;
    uint32_t own = own_count(options->world, hop);
    for (uint32_t i = 0; i < own; i++) {
        struct message piece = own_piece(chunks, slice, hop, bytes, i);
        use_piece(chunks, slice->rank, &piece, true);
    }
    for (uint32_t i = own; i < hop->count; i++) {
        uint32_t place = halving_place(options->world, halving_ahead(hop, i), 2 * hop->distance);
        memcpy(piece_at(slice, place), bytes + i * slice->piece_bytes, slice->piece_bytes);
    }
}

static void take_means(struct chunks *chunks, const struct slice *slice,
                       const struct halving_hop *hop, const unsigned char *bytes)
{
    memcpy(piece_at(slice, hop->first + hop->distance), bytes, hop->count * slice->piece_bytes);
    for (uint32_t i = 0; i < hop->count; i++) {
        struct message piece = own_piece(chunks, slice, hop, bytes, i);
        use_piece(chunks, slice->rank, &piece, false);
    }
}

/* Handles that this rank's own segment has been added up. */
static void complete(struct chunks *chunks, const struct slice *slice)
{
    const struct exchange_options *options = &chunks->base.options;
    struct span own = segment_of(options, slice, 0);
    unsigned char *first = piece_at(slice, halving_value_count(options->world));
    vector_scale(chunks_vector(chunks, slice->rank) + own.offset, chunks->base.mean_factor,
                 own.count);
    put(chunks, slice->rank, own, first);
    if (encoder_is_on(&chunks->encoder)) {
        const struct message mean = piece_of(chunks, own, first);
        use_piece(chunks, slice->rank, &mean, false); // what the others will have
    }
}

/* Takes the hop that comes next, whose pieces lie in `bytes`, and sends the one behind it. */
static enum status take_hop(struct chunks *chunks, const struct slice *slice,
                            const unsigned char *bytes)
{
    struct halving_hop hop = halving_hop_at(chunks->base.options.world, *slice->position);
    ++*slice->position;
    if (hop.is_doubling) {
        take_means(chunks, slice, &hop, bytes);
    } else {
        take_values(chunks, slice, &hop, bytes);
    }
    if (hop.completes) {
        complete(chunks, slice);
    }
    return hop.goes_on ? send_hop(chunks, slice, *slice->position) : STATUS_OK;
}

static bool is_over(const struct chunks *chunks, const struct slice *slice)
{
    return *slice->position > halving_hop_count(chunks->base.options.world);
}

/* Where the hop that comes next is sent by a rank that is here, and was: its pieces; or NULL. */
static const unsigned char *find_here(const struct chunks *chunks, const struct slice *slice)
{
    const struct exchange_options *options = &chunks->base.options;
    if (is_over(chunks, slice)) {
        return NULL;
    }
    struct halving_hop hop = halving_hop_at(options->world, *slice->position);
    uint32_t from = (slice->rank + hop.distance) % options->world;
    if (!rank_block_has(options->block, from)) {
        return NULL;
    }
    struct slice sender = slice_at(chunks, slice->bucket, slice->index, from);
    return *sender.position >= *slice->position ? piece_at(&sender, hop.first) : NULL;
}

/* Takes what ranks that are here give to each other. One that was taken may let others follow. */
static enum status go_on_here(struct chunks *chunks, uint32_t bucket, uint32_t index)
{
    const struct rank_block block = chunks->base.options.block;
    enum status status = STATUS_OK;
    bool has_taken = block.count > 1;
    while (status == STATUS_OK && has_taken) {
        has_taken = false;
        for (uint32_t i = 0; i < block.count && status == STATUS_OK; i++) {
            struct slice slice = slice_at(chunks, bucket, index, block.first + i);
            const unsigned char *bytes = find_here(chunks, &slice);
            if (bytes != NULL) {
                status = take_hop(chunks, &slice, bytes);
                has_taken = true;
            }
        }
    }
    return status;
}

/* Whether all ranks that are here have taken all hops of a slice. */
static bool is_final(const struct chunks *chunks, uint32_t bucket, uint32_t index)
{
    const struct rank_block block = chunks->base.options.block;
    bool are_over = true;
    for (uint32_t i = 0; i < block.count; i++) {
        struct slice slice = slice_at(chunks, bucket, index, block.first + i);
        are_over = are_over && is_over(chunks, &slice);
    }
    return are_over;
}

static enum status halving_handle(struct chunks *chunks, const struct message *message,
                                  enum chunk_fate *ret_fate)
{
    const struct exchange_options *options = &chunks->base.options;
    uint64_t start = options->layout->buckets[message->bucket].offset;
    uint32_t index = (uint32_t)((message->span.offset - start) / SEGMENT_FLOATS);
    struct slice slice = slice_at(chunks, message->bucket, index, receiver_of(options, message));
    struct halving_hop hop = halving_hop_at(options->world, message->hop);
    if (message->hop > *slice.position) {
        *ret_fate = CHUNK_EARLY;
        return STATUS_OK;
    }
    if (message->hop < *slice.position || !is_sound(chunks, &slice, &hop, message)) {
        *ret_fate = CHUNK_REFUSED;
        return STATUS_OK;
    }
    *ret_fate = CHUNK_TAKEN;
    enum status status = take_hop(chunks, &slice, pieces_of(chunks, message));
    if (status == STATUS_OK) {
        status = go_on_here(chunks, message->bucket, index);
    }
    if (status == STATUS_OK && is_final(chunks, message->bucket, index)) {
        chunks_mark_final(chunks, message->bucket, slice_floats(options, &slice));
    }
    return status;
}

/* The sender of the next hop of a slice: of the one that is furthest behind, which others may wait
 * for. */
static uint32_t halving_awaits(const struct chunks *chunks, uint32_t bucket)
{
    const struct exchange_options *options = &chunks->base.options;
    uint32_t least = halving_hop_count(options->world) + 1, from = options->rank;
    for (uint32_t i = 0; i < slice_count(options, bucket); i++) {
        for (uint32_t k = 0; k < options->block.count; k++) {
            struct slice slice = slice_at(chunks, bucket, i, options->rank + k);
            uint32_t hop = *slice.position;
            if (hop >= least) {
                continue;
            }
            uint32_t sender =
                (slice.rank + halving_hop_at(options->world, hop).distance) % options->world;
            if (!rank_block_has(options->block, sender)) {
                least = hop;
                from = sender;
            }
        }
    }
    return carriers_process(options->carriers, from);
}

/* What a rank has of a slice sets out. */
static enum status begin_slice(struct chunks *chunks, const struct slice *slice)
{
    const struct exchange_options *options = &chunks->base.options;
    *slice->position = 1;
    for (uint32_t ahead = 1; ahead < options->world; ahead++) {
        struct span segment = segment_of(options, slice, options->world - ahead);
        put(chunks, slice->rank, segment, piece_at(slice, halving_place(options->world, ahead, 1)));
    }
    return send_hop(chunks, slice, 1);
}

static enum status halving_begin(struct chunks *chunks, uint32_t bucket)
{
    const struct exchange_options *options = &chunks->base.options;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < slice_count(options, bucket) && status == STATUS_OK; i++) {
        for (uint32_t k = 0; k < options->block.count && status == STATUS_OK; k++) {
            struct slice slice = slice_at(chunks, bucket, i, options->rank + k);
            status = begin_slice(chunks, &slice);
        }
        if (status == STATUS_OK) {
            status = go_on_here(chunks, bucket, i);
        }
    }
    return status;
}

const struct chunk_algorithm chunk_halving = {
    .count = halving_count,
    .store_bytes = halving_store_bytes,
    .begin = halving_begin,
    .is_expected = halving_is_expected,
    .awaits = halving_awaits,
    .handle = halving_handle,
};
