/* Batches read ahead into a ring of slots, by threads that take a few samples at a time.
 *
 * There is one slot more than batches are read ahead: the one that the caller holds. Batches are
 * counted from 0; batch i lies in slot i modulo the number of slots.
 *
 *     taken - 1            held by the caller, until the next batcher_next
 *     taken ... ready-1    read, waiting
 *     ready ... begun-1    being read; of the last one, samples from next_sample on are still to be
 *                          handed out
 *
 * Samples are handed out in portions, in order, so batches end in about their order; who reads
 * which portion is left to chance, and changes nothing. A slow sample holds up its own batch alone:
 * others are read meanwhile, as far ahead as there are slots.
 *
 * A seek drops what waits and begins a new generation. Threads notice between two samples. Until
 * the last portion of an earlier generation has ended nothing is handed out, as it may lie in any
 * slot. batcher_destroy is a seek to nowhere. The lock of the loaders guards all that changes, but
 * for the slots' memory: filling a slot and using one are kept apart by the counts. */
#include "worker/data/batches/batcher.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/vector/layout.h"
#include "worker/data/batches/batch_slots.h"
#include "worker/data/batches/loaders.h"
#include "worker/data/batches/sample_reader.h"
#include "worker/data/batches/sampler.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define DEPTH_MAX 1024

// A portion has at most so many bytes, unless it is one sample, and of a batch at most a part:
// enough that taking one costs nothing, few enough that threads end a batch together.
#define PORTION_BYTES  65536
#define BATCH_PORTIONS 8

struct batcher {
    struct loaders_source source; // of the loaders
    struct batcher_options options;
    uint32_t portion; // samples

    // Owned.
    struct batch_slots slots;
    struct sampler *sampler;
    struct sample_reader reader;

    struct loaders *loaders; // borrowed or owned
    bool owns_loaders, has_joined;
    pthread_mutex_t *lock;  // of the loaders
    pthread_cond_t changed; // for the user: a batch is there, it cannot be read, or the last
                            // portion of an earlier generation has ended
    bool has_condition;
    uint64_t taken, ready, begun;
    uint32_t next_sample;           // of batch `begun` - 1; batch_size: all are handed out
    struct batch_position position; // of batch `begun`
    bool is_opening;                // somebody finds out what batch `begun` has
    uint32_t working;               // portions that are being read
    uint32_t stale;                 // those of earlier generations
    enum status failure;            // of batch `failed`, the first that cannot be read
    uint64_t failed;
    uint64_t read_ns;                // when the last batch had been read, with a trace
    atomic_uint_fast64_t generation; // changes under the lock; peeked at without it
};

/* ---- filling: with the lock held, which is given up between begin_work and end_work ---- */

static bool is_at_end(const struct batcher *batcher)
{
    return batcher->position.step >= sampler_step_count(batcher->sampler);
}

static struct batch_position position_after(const struct batcher *batcher,
                                            struct batch_position position)
{
    position.step++;
    if (batcher->options.is_training && position.step == sampler_step_count(batcher->sampler)) {
        position = (struct batch_position){.epoch = position.epoch + 1};
    }
    return position;
}

static struct batch_slot *slot_of(const struct batcher *batcher, uint64_t batch)
{
    return &batcher->slots.list[batch % batcher->slots.count];
}

static bool has_open_batch(const struct batcher *batcher)
{
    return batcher->next_sample < batcher->options.batch_size;
}

/* Whether there is a batch to begin, and a slot for it. */
static bool may_begin(const struct batcher *batcher)
{
    uint32_t depth = batcher->options.depth > 0 ? batcher->options.depth : 1;
    return batcher->begun - batcher->taken < depth && !is_at_end(batcher);
}

static bool has_work(const struct batcher *batcher)
{
    return batcher->failure == STATUS_OK && batcher->stale == 0 && !batcher->is_opening &&
           (has_open_batch(batcher) || may_begin(batcher));
}

static uint64_t begin_work(struct batcher *batcher)
{
    batcher->working++;
    uint64_t generation = atomic_load(&batcher->generation);
    pthread_mutex_unlock(batcher->lock);
    return generation;
}

/* False: the work was for an earlier generation. */
static bool end_work(struct batcher *batcher, uint64_t generation)
{
    pthread_mutex_lock(batcher->lock);
    if (atomic_load(&batcher->generation) == generation) {
        batcher->working--;
        return true;
    }
    batcher->stale--;
    if (batcher->stale == 0) {
        pthread_cond_broadcast(&batcher->changed);
        loaders_wake(batcher->loaders);
    }
    return false;
}

/* Finds out which samples batch `begun` has; a new epoch is a shuffle. */
static void open_batch(struct batcher *batcher)
{
    struct batch_slot *slot = slot_of(batcher, batcher->begun);
    struct batch_position position = batcher->position;
    batcher->is_opening = true;
    uint64_t generation = begin_work(batcher);
    sampler_take(batcher->sampler, position.epoch, position.step, slot->indices, &slot->count);
    slot->position = position;
    slot->pending = batcher->options.batch_size;
    slot->began_ns = trace_begin(batcher->options.trace);
    if (end_work(batcher, generation)) {
        batcher->is_opening = false;
        batcher->begun++;
        batcher->next_sample = 0;
        batcher->position = position_after(batcher, position);
        loaders_wake(batcher->loaders);
    }
}

/* Reads samples into a slot. Gives up when the generation is over. */
static enum status fill(struct batcher *batcher, const struct batch_slot *slot, struct span samples,
                        uint64_t generation)
{
    uint64_t epoch = slot->position.epoch, sample_bytes = batcher->reader.sample_bytes;
    struct sample_room *room;
    enum status status = sample_reader_begin(&batcher->reader, &room);
    if (status != STATUS_OK) {
        return status;
    }
    for (uint64_t i = samples.offset; i < samples.offset + samples.count; i++) {
        if (atomic_load_explicit(&batcher->generation, memory_order_relaxed) != generation) {
            break;
        }
        uint32_t index = i < slot->count ? slot->indices[i] : 0;
        const struct sample_target target = {.pixels = (char *)slot->pixels + i * sample_bytes,
                                             .label = &slot->labels[i],
                                             .mixed = &slot->mixed[i]};
        status = sample_reader_read(&batcher->reader, room, epoch, index, &target);
        if (status != STATUS_OK) {
            break;
        }
        slot->sample_keys[i] = random_key(batcher->options.seed, RANDOM_DROPOUT, epoch, index);
    }
    sample_reader_end(&batcher->reader, room);
    return status;
}

/* In a timeline one batch is read after the other: each from its begin, or the end of the one
 * before, on. */
static void record(struct batcher *batcher, const struct batch_slot *slot)
{
    struct trace_tape *tape = batcher->options.trace;
    if (tape == NULL) {
        return;
    }
    uint64_t before_ns = batcher->read_ns;
    batcher->read_ns = clock_now_ns();
    trace_record(
        tape, slot->began_ns > before_ns ? slot->began_ns : before_ns, batcher->read_ns,
        &(struct trace_tag){.kind = TRACE_READ,
                            .bucket = TRACE_NO_BUCKET,
                            .step = slot->position.epoch * sampler_step_count(batcher->sampler) +
                                    slot->position.step});
}

static void note_read(struct batcher *batcher, struct batch_slot *slot, uint32_t samples)
{
    slot->pending -= samples;
    uint64_t before = batcher->ready;
    while (batcher->ready < batcher->begun && slot_of(batcher, batcher->ready)->pending == 0) {
        record(batcher, slot_of(batcher, batcher->ready));
        batcher->ready++;
    }
    if (batcher->ready > before) {
        pthread_cond_broadcast(&batcher->changed);
    }
}

/* Nothing is handed out after a failure, and portions go in order: all batches before the failed
 * one are complete or under way. */
static void note_failure(struct batcher *batcher, uint64_t batch, enum status status)
{
    if (batcher->failure == STATUS_OK || batch < batcher->failed) {
        batcher->failure = status;
        batcher->failed = batch;
        pthread_cond_broadcast(&batcher->changed);
    }
}

static void read_portion(struct batcher *batcher)
{
    uint64_t batch = batcher->begun - 1;
    uint32_t left = batcher->options.batch_size - batcher->next_sample;
    uint32_t count = left < batcher->portion ? left : batcher->portion;
    const struct span samples = {batcher->next_sample, count};
    struct batch_slot *slot = slot_of(batcher, batch);
    batcher->next_sample += count;
    uint64_t generation = begin_work(batcher);
    uint64_t began_ns = trace_enter(batcher->options.trace, TRACE_READ, TRACE_NO_BUCKET);
    enum status status = fill(batcher, slot, samples, generation);
    trace_leave(batcher->options.trace, began_ns, NULL);
    if (!end_work(batcher, generation)) {
        return;
    }
    if (status != STATUS_OK) {
        note_failure(batcher, batch, status);
    } else {
        note_read(batcher, slot, count);
    }
}

/* Begins a batch, or reads a portion of one. */
static void work(struct batcher *batcher)
{
    if (has_open_batch(batcher)) {
        read_portion(batcher);
    } else {
        open_batch(batcher);
    }
}

static void source_work(struct loaders_source *source)
{
    work((struct batcher *)source);
}

/* In batches of which all samples are handed out. */
static uint64_t source_ahead(const struct loaders_source *source)
{
    const struct batcher *batcher = (const struct batcher *)source;
    if (!has_work(batcher)) {
        return LOADERS_NOTHING;
    }
    return batcher->begun - batcher->taken - (has_open_batch(batcher) ? 1 : 0);
}

/* ---- creation ---- */

/* Sets sample_count. */
static enum status check_options(struct batcher_options *options, const struct dataset *dataset)
{
    assert(options->depth <= DEPTH_MAX && options->world > 0);
    if (options->sample_count == 0) {
        options->sample_count = dataset->sample_count;
    }
    if (options->sample_count > dataset->sample_count || options->sample_count > UINT32_MAX) {
        log_error("%llu samples asked for; the dataset has %llu, and %u is the limit",
                  (unsigned long long)options->sample_count,
                  (unsigned long long)dataset->sample_count, UINT32_MAX);
        return STATUS_INVALID;
    }
    if (options->is_training &&
        (options->global_batch > options->sample_count || options->global_batch < options->world)) {
        log_error("a global batch of %u must be at least the %u workers and at most the %llu "
                  "training samples: change --global-batch",
                  options->global_batch, options->world, (unsigned long long)options->sample_count);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static void plan_portions(struct batcher *batcher)
{
    uint32_t batch_size = batcher->options.batch_size;
    uint64_t fitting = PORTION_BYTES / batcher->reader.sample_bytes;
    uint32_t most = batch_size / BATCH_PORTIONS;
    uint32_t portion = fitting < most ? (uint32_t)fitting : most;
    batcher->portion = portion > 0 ? portion : 1;
    batcher->next_sample = batch_size; // no batch has begun
}

/* Without loaders that others share, one thread, or none. */
static enum status join_loaders(struct batcher *batcher)
{
    static const struct loaders_options one = {.threads = 1, .processors = 1};
    bool shares = batcher->options.depth > 0 && batcher->options.loaders != NULL;
    batcher->loaders = shares ? batcher->options.loaders : NULL;
    if (!shares) {
        enum status status =
            loaders_create(batcher->options.depth > 0 ? &one : NULL, &batcher->loaders);
        if (status != STATUS_OK) {
            return status;
        }
        batcher->owns_loaders = true;
    }
    batcher->source = (struct loaders_source){.ahead = source_ahead, .work = source_work};
    batcher->lock = loaders_lock(batcher->loaders);
    pthread_mutex_lock(batcher->lock);
    loaders_join(batcher->loaders, &batcher->source);
    pthread_mutex_unlock(batcher->lock);
    batcher->has_joined = true;
    return STATUS_OK;
}

static enum status init(struct batcher *batcher, const struct dataset *dataset)
{
    enum status status = sampler_create(&batcher->options, &batcher->sampler);
    if (status != STATUS_OK) {
        return status;
    }
    status = sample_reader_init(&batcher->reader, &batcher->options, dataset,
                                sampler_part(batcher->sampler));
    if (status != STATUS_OK) {
        return status;
    }
    const struct batcher_options *options = &batcher->options;
    status = batch_slots_init(&batcher->slots, options->depth + 1, options->batch_size,
                              batcher->reader.sample_bytes, options->device);
    if (status != STATUS_OK) {
        return status;
    }
    plan_portions(batcher);
    pthread_cond_init(&batcher->changed, NULL); // which never fails on Linux
    batcher->has_condition = true;
    return join_loaders(batcher);
}

enum status batcher_create(const struct batcher_options *options, const struct dataset *dataset,
                           struct batcher **ret_batcher)
{
    struct batcher_options checked = *options;
    enum status status = check_options(&checked, dataset);
    if (status != STATUS_OK) {
        return status;
    }
    struct batcher *batcher = calloc(1, sizeof(*batcher));
    if (batcher == NULL) {
        return STATUS_NO_MEMORY;
    }
    batcher->options = checked;
    status = init(batcher, dataset);
    if (status != STATUS_OK) {
        if (status == STATUS_NO_MEMORY) {
            log_error("not enough memory to read %u batches of %u samples ahead", checked.depth,
                      checked.batch_size);
        }
        batcher_destroy(batcher);
        return status;
    }
    *ret_batcher = batcher;
    return STATUS_OK;
}

/* What is being read belongs to the past. With the lock held. */
static void begin_generation(struct batcher *batcher)
{
    atomic_fetch_add(&batcher->generation, 1);
    batcher->stale += batcher->working;
    batcher->working = 0;
    batcher->is_opening = false;
    batcher->ready = batcher->begun = batcher->taken;
    batcher->next_sample = batcher->options.batch_size;
    batcher->failure = STATUS_OK;
}

static void leave_loaders(struct batcher *batcher)
{
    pthread_mutex_lock(batcher->lock);
    begin_generation(batcher);
    loaders_leave(batcher->loaders, &batcher->source);
    while (batcher->stale > 0) {
        pthread_cond_wait(&batcher->changed, batcher->lock);
    }
    pthread_mutex_unlock(batcher->lock);
}

void batcher_destroy(struct batcher *batcher)
{
    if (batcher == NULL) {
        return;
    }
    if (batcher->has_joined) {
        leave_loaders(batcher);
    }
    if (batcher->owns_loaders) {
        loaders_destroy(batcher->loaders);
    }
    if (batcher->has_condition) {
        pthread_cond_destroy(&batcher->changed);
    }
    batch_slots_finish(&batcher->slots);
    sample_reader_finish(&batcher->reader);
    sampler_destroy(batcher->sampler);
    free(batcher);
}

/* ---- use ---- */

struct span batcher_part(const struct batcher *batcher)
{
    return sampler_part(batcher->sampler);
}

/* Whether batch `taken` is there, cannot be read, or does not exist. */
static bool is_decided(const struct batcher *batcher)
{
    bool is_past_end = batcher->begun == batcher->taken && is_at_end(batcher);
    bool has_failed = batcher->failure != STATUS_OK && batcher->failed == batcher->taken;
    return batcher->ready > batcher->taken || is_past_end || has_failed;
}

/* Waits, or without loaders reads. Called with the lock held; tells how long. */
static uint64_t await_batch(struct batcher *batcher)
{
    if (is_decided(batcher)) {
        return 0;
    }
    uint64_t began_ns = clock_now_ns();
    while (!is_decided(batcher)) {
        if (loaders_count(batcher->loaders) > 0) {
            pthread_cond_wait(&batcher->changed, batcher->lock);
        } else {
            work(batcher);
        }
    }
    return clock_now_ns() - began_ns;
}

enum status batcher_next(struct batcher *batcher, struct batch *ret_batch)
{
    pthread_mutex_lock(batcher->lock);
    uint64_t waited_ns = await_batch(batcher);
    if (batcher->ready == batcher->taken) {
        enum status status = batcher->failure;
        pthread_mutex_unlock(batcher->lock);
        return status != STATUS_OK ? status : STATUS_END_OF_DATA;
    }
    const struct batch_slot *slot = slot_of(batcher, batcher->taken);
    batcher->taken++;
    loaders_note_use(batcher->loaders, waited_ns);
    loaders_wake(batcher->loaders);
    pthread_mutex_unlock(batcher->lock);
    *ret_batch = (struct batch){
        .pixels = batcher->options.reads_bytes ? NULL : slot->pixels,
        .bytes = batcher->options.reads_bytes ? slot->pixels : NULL,
        .labels = slot->labels,
        .mixed = sample_reader_mixes(&batcher->reader) ? slot->mixed : NULL,
        .sample_keys = slot->sample_keys,
        .count = slot->count,
        .epoch = slot->position.epoch,
    };
    return STATUS_OK;
}

enum status batcher_seek(struct batcher *batcher, uint64_t epoch, uint64_t step)
{
    uint64_t step_count = sampler_step_count(batcher->sampler);
    struct batch_position position = {0};
    if (batcher->options.is_training) {
        if (step > step_count) {
            log_error("step %llu of an epoch of %llu cannot be resumed", (unsigned long long)step,
                      (unsigned long long)step_count);
            return STATUS_INVALID;
        }
        position = (struct batch_position){.epoch = epoch, .step = step};
        if (step == step_count) {
            position = (struct batch_position){.epoch = epoch + 1};
        }
    }
    pthread_mutex_lock(batcher->lock);
    begin_generation(batcher);
    batcher->position = position;
    loaders_wake(batcher->loaders);
    pthread_mutex_unlock(batcher->lock);
    return STATUS_OK;
}
