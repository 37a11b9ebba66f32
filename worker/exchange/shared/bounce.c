/* Slots, and the pieces in them. */
#include "worker/exchange/shared/stage.h"

#include "common/job/all_reduce.h"
#include "worker/exchange/ring_mean.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

// Pieces, in floats; of a small bucket they are smaller, so that there is one for everybody. What
// two workers have in all slots fits in the cache of a core.
#define PIECE_FLOATS       (UINT64_C(8) * 1024)
#define SMALL_PIECE_FLOATS (UINT64_C(2) * 1024)
#define SMALL_BUCKET       (16 * PIECE_FLOATS)
#define SLOTS              8

/* Who did what with the piece in it. Both only grow, and wrap around. */
struct slot {
    _Alignas(STAGE_ALIGNMENT) _Atomic uint32_t entered; // workers, in all rounds
    _Alignas(STAGE_ALIGNMENT) _Atomic uint32_t round;   // the last one whose mean is there
};

/* What is in a slot. */
struct piece {
    struct span span;
    uint32_t bucket;
};

struct stage {
    struct stage_options options;
    struct slot *slots; // (SLOTS), shared
    float *places;      // (SLOTS, world, PIECE_FLOATS), shared
    uint64_t entered;   // pieces that this worker has entered, of all steps
    uint64_t left;      // of them, those that it has left
    struct piece pieces[SLOTS];

    // Buckets that are ready and not yet entered as a whole, by turns of bucket_count.
    uint32_t *queue;
    uint64_t queue_begin, queue_end;
    uint64_t offset;   // how much of the first one has entered, in floats
    uint64_t *missing; // of each bucket, the floats whose mean is not there
};

size_t stage_bytes(uint32_t world)
{
    return SLOTS * (sizeof(struct slot) + world * PIECE_FLOATS * sizeof(float));
}

enum status stage_create(const struct stage_options *options, struct stage **ret_stage)
{
    assert(options->world >= 1 && options->world <= ALL_REDUCE_SHARED_MAX);
    uint32_t bucket_count = options->layout->bucket_count;
    struct stage *stage = calloc(1, sizeof(*stage));
    if (stage == NULL) {
        return STATUS_NO_MEMORY;
    }
    stage->queue = calloc(bucket_count, sizeof(*stage->queue));
    stage->missing = calloc(bucket_count, sizeof(*stage->missing));
    if (stage->queue == NULL || stage->missing == NULL) {
        stage_destroy(stage);
        return STATUS_NO_MEMORY;
    }
    stage->options = *options;
    stage->slots = (struct slot *)(void *)options->start;
    stage->places = (float *)(void *)(options->start + SLOTS * sizeof(struct slot));
    *ret_stage = stage;
    return STATUS_OK;
}

void stage_destroy(struct stage *stage)
{
    if (stage != NULL) {
        free(stage->queue);
        free(stage->missing);
        free(stage);
    }
}

static struct slot *slot_of(const struct stage *stage, uint64_t piece)
{
    return &stage->slots[piece % SLOTS];
}

/* How often the piece's slot has been taken with it. */
static uint32_t round_of(uint64_t piece)
{
    return (uint32_t)(piece / SLOTS) + 1;
}

static bool is_owner(const struct stage *stage, uint64_t piece)
{
    return piece % stage->options.world == stage->options.rank;
}

static float *place_of(const struct stage *stage, uint64_t piece, uint32_t rank)
{
    return stage->places + (piece % SLOTS * stage->options.world + rank) * PIECE_FLOATS;
}

void stage_arrive(struct stage *stage, uint32_t bucket)
{
    uint32_t bucket_count = stage->options.layout->bucket_count;
    assert(stage->missing[bucket] == 0 && stage->queue_end - stage->queue_begin < bucket_count);
    stage->missing[bucket] = stage->options.layout->buckets[bucket].count;
    stage->queue[stage->queue_end++ % bucket_count] = bucket;
}

static bool can_leave(const struct stage *stage)
{
    return stage->left < stage->entered &&
           atomic_load(&slot_of(stage, stage->left)->round) == round_of(stage->left);
}

static void leave(struct stage *stage)
{
    uint64_t piece = stage->left++;
    const struct piece *of = &stage->pieces[piece % SLOTS];
    if (!is_owner(stage, piece)) {
        memcpy(stage->options.vector + of->span.offset, place_of(stage, piece, stage->options.rank),
               of->span.count * sizeof(float));
    }
    stage->missing[of->bucket] -= of->span.count;
}

static bool can_enter(const struct stage *stage)
{
    return stage->queue_begin < stage->queue_end && stage->entered - stage->left < SLOTS;
}

/* The piece that comes next. */
static struct piece cut(struct stage *stage)
{
    const struct layout *layout = stage->options.layout;
    uint32_t bucket = stage->queue[stage->queue_begin % layout->bucket_count];
    struct span whole = layout->buckets[bucket];
    uint64_t most = whole.count <= SMALL_BUCKET ? SMALL_PIECE_FLOATS : PIECE_FLOATS;
    uint64_t rest = whole.count - stage->offset;
    struct span span = {whole.offset + stage->offset, rest < most ? rest : most};
    stage->offset += span.count;
    if (stage->offset == whole.count) {
        stage->offset = 0;
        stage->queue_begin++;
    }
    return (struct piece){span, bucket};
}

/* Of workers that enter the piece's slot, how many have when all have. */
static uint32_t all_entered(const struct stage *stage, uint64_t piece)
{
    return round_of(piece) * (stage->options.world - 1);
}

/* Returns whether the owner waits for nobody else. */
static bool enter(struct stage *stage)
{
    uint64_t piece = stage->entered++;
    struct piece *of = &stage->pieces[piece % SLOTS];
    *of = cut(stage);
    if (is_owner(stage, piece)) {
        return false;
    }
    memcpy(place_of(stage, piece, stage->options.rank), stage->options.vector + of->span.offset,
           of->span.count * sizeof(float));
    uint32_t entered = atomic_fetch_add(&slot_of(stage, piece)->entered, 1) + 1;
    return entered == all_entered(stage, piece);
}

/* A piece of this worker's that all others have entered, and that it has not added up. */
static bool find_whole(const struct stage *stage, uint64_t *ret_piece)
{
    for (uint64_t piece = stage->left; piece < stage->entered; piece++) {
        const struct slot *slot = slot_of(stage, piece);
        if (is_owner(stage, piece) && atomic_load(&slot->round) != round_of(piece) &&
            atomic_load(&slot->entered) == all_entered(stage, piece)) {
            *ret_piece = piece;
            return true;
        }
    }
    return false;
}

static void add_up(const struct stage *stage, uint64_t piece)
{
    const struct piece *of = &stage->pieces[piece % SLOTS];
    uint32_t world = stage->options.world;
    float *vectors[ALL_REDUCE_SHARED_MAX];
    for (uint32_t rank = 0; rank < world; rank++) {
        vectors[rank] = rank == stage->options.rank ? stage->options.vector + of->span.offset
                                                    : place_of(stage, piece, rank);
    }
    ring_mean(stage->options.layout->buckets[of->bucket], of->span, vectors, world);
    atomic_store(&slot_of(stage, piece)->round, round_of(piece));
}

enum stage_did stage_work(struct stage *stage)
{
    // Adding up comes last: it takes longest, and there is time for it where others are behind.
    uint64_t piece;
    if (can_leave(stage)) {
        leave(stage);
        return STAGE_WORK;
    }
    if (can_enter(stage)) {
        return enter(stage) ? STAGE_NEWS : STAGE_WORK;
    }
    if (find_whole(stage, &piece)) {
        add_up(stage, piece);
        return STAGE_NEWS;
    }
    return STAGE_NOTHING;
}

bool stage_has_work(const struct stage *stage)
{
    uint64_t piece;
    return can_leave(stage) || can_enter(stage) || find_whole(stage, &piece);
}

bool stage_is_complete(const struct stage *stage, uint32_t bucket)
{
    return stage->missing[bucket] == 0;
}
