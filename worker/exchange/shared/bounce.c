/* Sums pieces of buckets by way of bounce buffers. */
#include "worker/exchange/shared/bounce.h"

#include "common/job/all_reduce.h"
#include "worker/exchange/ring_mean.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

// The floats of a piece. Small buckets have smaller pieces, so that there is one for each worker.
// What two workers have in all buffers fits in a core's cache.
#define PIECE_FLOATS       (UINT64_C(8) * 1024)
#define SMALL_PIECE_FLOATS (UINT64_C(2) * 1024)
#define SMALL_BUCKET       (16 * PIECE_FLOATS)
#define BUFFERS            8

/* What workers did with the piece in a buffer. Both counters only grow, and wrap around. */
struct buffer {
    _Alignas(BOUNCE_ALIGNMENT) _Atomic uint32_t entered; // workers, in all rounds
    _Alignas(BOUNCE_ALIGNMENT) _Atomic uint32_t round;   // last round whose mean is there
};

/* What is in a buffer. */
struct piece {
    struct span span;
    uint32_t bucket;
};

struct bounce {
    struct bounce_options options;
    struct buffer *buffers; // (BUFFERS), shared
    float *places;          // (BUFFERS, world, PIECE_FLOATS), shared
    uint64_t entered;       // pieces that this worker has entered, of all steps
    uint64_t left;          // how many of those it has left
    struct piece pieces[BUFFERS];

    // Buckets that are ready and not entirely entered yet, by turns of bucket_count.
    uint32_t *queue;
    uint64_t queue_begin, queue_end;
    uint64_t offset;   // floats of the first one that have entered
    uint64_t *missing; // floats of each bucket whose mean is not there
};

size_t bounce_bytes(uint32_t world)
{
    return BUFFERS * (sizeof(struct buffer) + world * PIECE_FLOATS * sizeof(float));
}

enum status bounce_create(const struct bounce_options *options, struct bounce **ret_bounce)
{
    assert(options->world >= 1 && options->world <= ALL_REDUCE_SHARED_MAX);
    uint32_t bucket_count = options->layout->bucket_count;
    struct bounce *bounce = calloc(1, sizeof(*bounce));
    if (bounce == NULL) {
        return STATUS_NO_MEMORY;
    }
    bounce->queue = calloc(bucket_count, sizeof(*bounce->queue));
    bounce->missing = calloc(bucket_count, sizeof(*bounce->missing));
    if (bounce->queue == NULL || bounce->missing == NULL) {
        bounce_destroy(bounce);
        return STATUS_NO_MEMORY;
    }
    bounce->options = *options;
    bounce->buffers = (struct buffer *)(void *)options->start;
    bounce->places = (float *)(void *)(options->start + BUFFERS * sizeof(struct buffer));
    *ret_bounce = bounce;
    return STATUS_OK;
}

void bounce_destroy(struct bounce *bounce)
{
    if (bounce != NULL) {
        free(bounce->queue);
        free(bounce->missing);
        free(bounce);
    }
}

static struct buffer *buffer_of(const struct bounce *bounce, uint64_t piece)
{
    return &bounce->buffers[piece % BUFFERS];
}

/* How often the piece's buffer has been used, this time included. */
static uint32_t round_of(uint64_t piece)
{
    return (uint32_t)(piece / BUFFERS) + 1;
}

static bool is_owner(const struct bounce *bounce, uint64_t piece)
{
    return piece % bounce->options.world == bounce->options.rank;
}

static float *place_of(const struct bounce *bounce, uint64_t piece, uint32_t rank)
{
    return bounce->places + (piece % BUFFERS * bounce->options.world + rank) * PIECE_FLOATS;
}

void bounce_arrive(struct bounce *bounce, uint32_t bucket)
{
    uint32_t bucket_count = bounce->options.layout->bucket_count;
    assert(bounce->missing[bucket] == 0 && bounce->queue_end - bounce->queue_begin < bucket_count);
    bounce->missing[bucket] = bounce->options.layout->buckets[bucket].count;
    bounce->queue[bounce->queue_end++ % bucket_count] = bucket;
}

static bool can_leave(const struct bounce *bounce)
{
    return bounce->left < bounce->entered &&
           atomic_load(&buffer_of(bounce, bounce->left)->round) == round_of(bounce->left);
}

static void leave(struct bounce *bounce)
{
    uint64_t piece = bounce->left++;
    const struct piece *of = &bounce->pieces[piece % BUFFERS];
    if (!is_owner(bounce, piece)) {
        memcpy(bounce->options.vector + of->span.offset,
               place_of(bounce, piece, bounce->options.rank), of->span.count * sizeof(float));
    }
    bounce->missing[of->bucket] -= of->span.count;
}

static bool can_enter(const struct bounce *bounce)
{
    return bounce->queue_begin < bounce->queue_end && bounce->entered - bounce->left < BUFFERS;
}

/* The piece that comes next. */
static struct piece cut(struct bounce *bounce)
{
    const struct layout *layout = bounce->options.layout;
    uint32_t bucket = bounce->queue[bounce->queue_begin % layout->bucket_count];
    struct span whole = layout->buckets[bucket];
    uint64_t most = whole.count <= SMALL_BUCKET ? SMALL_PIECE_FLOATS : PIECE_FLOATS;
    uint64_t rest = whole.count - bounce->offset;
    struct span span = {whole.offset + bounce->offset, rest < most ? rest : most};
    bounce->offset += span.count;
    if (bounce->offset == whole.count) {
        bounce->offset = 0;
        bounce->queue_begin++;
    }
    return (struct piece){span, bucket};
}

/* The count of entries into the piece's buffer, when all workers have entered. */
static uint32_t all_entered(const struct bounce *bounce, uint64_t piece)
{
    return round_of(piece) * (bounce->options.world - 1);
}

/* Returns whether the owner waits for nobody else. */
static bool enter(struct bounce *bounce)
{
    uint64_t piece = bounce->entered++;
    struct piece *of = &bounce->pieces[piece % BUFFERS];
    *of = cut(bounce);
    if (is_owner(bounce, piece)) {
        return false;
    }
    memcpy(place_of(bounce, piece, bounce->options.rank), bounce->options.vector + of->span.offset,
           of->span.count * sizeof(float));
    uint32_t entered = atomic_fetch_add(&buffer_of(bounce, piece)->entered, 1) + 1;
    return entered == all_entered(bounce, piece);
}

/* Finds a piece of this worker's that all others have entered and that it has not added up. */
static bool find_whole(const struct bounce *bounce, uint64_t *ret_piece)
{
    for (uint64_t piece = bounce->left; piece < bounce->entered; piece++) {
        const struct buffer *buffer = buffer_of(bounce, piece);
        if (is_owner(bounce, piece) && atomic_load(&buffer->round) != round_of(piece) &&
            atomic_load(&buffer->entered) == all_entered(bounce, piece)) {
            *ret_piece = piece;
            return true;
        }
    }
    return false;
}

static void add_up(const struct bounce *bounce, uint64_t piece)
{
    const struct piece *of = &bounce->pieces[piece % BUFFERS];
    uint32_t world = bounce->options.world;
    float *vectors[ALL_REDUCE_SHARED_MAX];
    for (uint32_t rank = 0; rank < world; rank++) {
        vectors[rank] = rank == bounce->options.rank ? bounce->options.vector + of->span.offset
                                                     : place_of(bounce, piece, rank);
    }
    ring_mean(bounce->options.layout->buckets[of->bucket], of->span, vectors, world);
    atomic_store(&buffer_of(bounce, piece)->round, round_of(piece));
}

enum bounce_did bounce_work(struct bounce *bounce)
{
    // Adding up comes last: it takes longest, and there is time for it while others are behind.
    uint64_t piece;
    if (can_leave(bounce)) {
        leave(bounce);
        return BOUNCE_WORK;
    }
    if (can_enter(bounce)) {
        return enter(bounce) ? BOUNCE_NEWS : BOUNCE_WORK;
    }
    if (find_whole(bounce, &piece)) {
        add_up(bounce, piece);
        return BOUNCE_NEWS;
    }
    return BOUNCE_NOTHING;
}

bool bounce_has_work(const struct bounce *bounce)
{
    uint64_t piece;
    return can_leave(bounce) || can_enter(bounce) || find_whole(bounce, &piece);
}

bool bounce_is_complete(const struct bounce *bounce, uint32_t bucket)
{
    return bounce->missing[bucket] == 0;
}
