/* Batches read ahead into a ring of slots.
 *
 * There is one slot more than batches are read ahead: the one that the caller holds. Batches are
 * counted from 0; batch i lies in slot i modulo the number of slots.
 *
 *     taken - 1          held by the caller, until the next batcher_next
 *     taken ... ready-1  read, waiting
 *     ready              being filled by the loader, the only thread that does
 *
 * A seek drops what waits and begins a new generation; the loader notices between two samples, and
 * throws away what it was filling. batcher_destroy is a seek to nowhere. The mutex guards all that
 * changes, but for the slots themselves: filling one and using one are kept apart by the counts. */
#include "worker/data/batcher.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/random.h"
#include "worker/data/augment/augment.h"
#include "worker/data/sampler.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#define DEPTH_MAX 1024

struct position {
    uint64_t epoch, step;
};

struct slot {
    void *pixels; // (batch_size, C, H, W), floats or bytes
    uint32_t *labels;
    uint64_t *sample_keys;
    uint32_t count;
    uint64_t epoch;
};

struct batcher {
    struct batcher_options options;
    const struct dataset *dataset;     // borrowed
    uint64_t sample_bytes, slot_bytes; // of pixels

    // Owned.
    struct slot *slots; // (slot_count), views into the memory
    uint32_t slot_count;
    void *memory; // of all slots: pixels, then keys, then labels
    uint64_t memory_bytes;
    bool has_locked_memory; // for the device

    // Used by whoever fills: the loader if there is one.
    struct sampler *sampler;
    uint32_t *indices; // (batch_size)
    bool augments;
    struct augment_image image; // as stored
    uint8_t *stored, *spare;    // (C, H, W) each, one allocation from `stored` on; NULL: none

    pthread_t loader;
    bool has_loader, has_lock;
    pthread_mutex_t lock;
    pthread_cond_t changed; // any of what follows
    uint64_t taken, ready;
    struct position position; // of batch `ready`
    enum status failure;      // of batch `ready`: it cannot be read
    bool is_stopping;
    atomic_uint_fast64_t generation; // changes under the lock; peeked at without it
};

/* ---- filling ---- */

static bool is_at_end(const struct batcher *batcher)
{
    return batcher->position.step >= sampler_step_count(batcher->sampler);
}

static struct position position_after(const struct batcher *batcher, struct position position)
{
    position.step++;
    if (batcher->options.is_training && position.step == sampler_step_count(batcher->sampler)) {
        position = (struct position){.epoch = position.epoch + 1};
    }
    return position;
}

/* The same pixels or bytes as without an augmentation, of a changed image. */
static enum status read_augmented(struct batcher *batcher, uint64_t epoch, uint32_t index,
                                  void *pixels, uint32_t *ret_label)
{
    uint64_t key = random_key(batcher->options.seed, RANDOM_AUGMENT, epoch, index);
    bool reads_bytes = batcher->options.reads_bytes;
    uint8_t *bytes = reads_bytes ? pixels : batcher->stored;
    enum status status = dataset_read_bytes(batcher->dataset, index, bytes, ret_label);
    if (status != STATUS_OK) {
        return status;
    }
    augment_apply(&batcher->options.augmentation, &batcher->image, key, bytes, batcher->spare);
    if (!reads_bytes) {
        dataset_convert(batcher->dataset, bytes, pixels);
    }
    return STATUS_OK;
}

static enum status read_sample(struct batcher *batcher, uint64_t epoch, uint32_t index,
                               void *pixels, uint32_t *ret_label)
{
    if (batcher->augments) {
        return read_augmented(batcher, epoch, index, pixels, ret_label);
    }
    if (batcher->options.reads_bytes) {
        return dataset_read_bytes(batcher->dataset, index, pixels, ret_label);
    }
    return dataset_read(batcher->dataset, index, pixels, ret_label);
}

/* Reads the batch of a position into a slot. Gives up when the generation is over. */
static enum status fill(struct batcher *batcher, struct slot *slot, struct position position,
                        uint64_t generation)
{
    sampler_take(batcher->sampler, position.epoch, position.step, batcher->indices, &slot->count);
    slot->epoch = position.epoch;
    for (uint32_t i = 0; i < batcher->options.batch_size; i++) {
        if (atomic_load_explicit(&batcher->generation, memory_order_relaxed) != generation) {
            return STATUS_OK;
        }
        uint32_t index = i < slot->count ? batcher->indices[i] : 0;
        void *pixels = (char *)slot->pixels + i * batcher->sample_bytes;
        enum status status = read_sample(batcher, position.epoch, index, pixels, &slot->labels[i]);
        if (status != STATUS_OK) {
            return status;
        }
        slot->sample_keys[i] =
            random_key(batcher->options.seed, RANDOM_DROPOUT, position.epoch, index);
    }
    return STATUS_OK;
}

/* Fills the slot of batch `ready`. Called with the lock held, which it gives up meanwhile. */
static void fill_next(struct batcher *batcher)
{
    uint64_t generation = atomic_load(&batcher->generation);
    struct position position = batcher->position;
    struct slot *slot = &batcher->slots[batcher->ready % batcher->slot_count];
    pthread_mutex_unlock(&batcher->lock);
    uint64_t began_ns = trace_enter(batcher->options.trace, TRACE_READ, TRACE_NO_BUCKET);
    enum status status = fill(batcher, slot, position, generation);
    trace_leave(batcher->options.trace, began_ns,
                &(struct trace_tag){.kind = TRACE_READ,
                                    .bucket = TRACE_NO_BUCKET,
                                    .step = position.epoch * sampler_step_count(batcher->sampler) +
                                            position.step});
    pthread_mutex_lock(&batcher->lock);
    if (atomic_load(&batcher->generation) != generation) {
        return;
    }
    batcher->failure = status;
    if (status == STATUS_OK) {
        batcher->ready++;
        batcher->position = position_after(batcher, position);
    }
    pthread_cond_broadcast(&batcher->changed);
}

/* Whether there is a batch to fill, and a slot for it. */
static bool may_fill(const struct batcher *batcher)
{
    return batcher->ready - batcher->taken < batcher->options.depth && !is_at_end(batcher) &&
           batcher->failure == STATUS_OK;
}

static void *run_loader(void *argument)
{
    struct batcher *batcher = argument;
    pthread_mutex_lock(&batcher->lock);
    while (!batcher->is_stopping) {
        if (may_fill(batcher)) {
            fill_next(batcher);
        } else {
            pthread_cond_wait(&batcher->changed, &batcher->lock);
        }
    }
    pthread_mutex_unlock(&batcher->lock);
    return NULL;
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

static uint64_t sample_bytes(const struct batcher *batcher)
{
    const struct shape *shape = &batcher->dataset->sample;
    struct pixels_source source;
    if (batcher->options.reads_bytes && dataset_describe(batcher->dataset, &source)) {
        return pixels_bytes(&source);
    }
    return (uint64_t)shape->channels * shape->rows * shape->columns * sizeof(float);
}

/* Every slot begins at a multiple of MEMORY_ALIGNMENT. */
static enum status create_slots(struct batcher *batcher)
{
    uint64_t batch_size = batcher->options.batch_size;
    batcher->slot_count = batcher->options.depth + 1;
    batcher->sample_bytes = sample_bytes(batcher);
    uint64_t pixel_bytes, sample_count = batcher->slot_count * batch_size;
    if (__builtin_mul_overflow(batch_size, batcher->sample_bytes, &batcher->slot_bytes) ||
        __builtin_add_overflow(batcher->slot_bytes, MEMORY_ALIGNMENT - 1, &batcher->slot_bytes) ||
        __builtin_mul_overflow(batcher->slot_bytes, batcher->slot_count, &pixel_bytes) ||
        __builtin_add_overflow(pixel_bytes, sample_count * (sizeof(uint64_t) + sizeof(uint32_t)),
                               &batcher->memory_bytes)) {
        return STATUS_NO_MEMORY;
    }
    batcher->slot_bytes -= batcher->slot_bytes % MEMORY_ALIGNMENT;
    pixel_bytes = batcher->slot_count * batcher->slot_bytes;
    batcher->slots = calloc(batcher->slot_count, sizeof(*batcher->slots));
    batcher->indices = calloc(batch_size, sizeof(*batcher->indices));
    batcher->memory = memory_create_large(batcher->memory_bytes);
    if (batcher->slots == NULL || batcher->indices == NULL || batcher->memory == NULL) {
        return STATUS_NO_MEMORY;
    }
    char *pixels = batcher->memory;
    uint64_t *keys = (void *)(pixels + pixel_bytes);
    uint32_t *labels = (void *)(keys + sample_count);
    for (uint32_t i = 0; i < batcher->slot_count; i++) {
        batcher->slots[i] = (struct slot){
            .pixels = pixels + i * batcher->slot_bytes,
            .labels = labels + i * batch_size,
            .sample_keys = keys + i * batch_size,
        };
    }
    struct device *device = batcher->options.device;
    batcher->has_locked_memory =
        device != NULL && device_lock_memory(device, batcher->memory, batcher->memory_bytes);
    return STATUS_OK;
}

/* Whether training images can be changed, and memory for that. */
static enum status prepare_augmentation(struct batcher *batcher)
{
    const struct batcher_options *options = &batcher->options;
    struct pixels_source source;
    char why[AUGMENT_WHY_BYTES];
    if (!options->is_training || !augmentation_is_on(&options->augmentation)) {
        return STATUS_OK;
    }
    if (!dataset_describe(batcher->dataset, &source)) {
        log_error(
            "--augment needs images that are stored as bytes, as cifar10 and mnist have them; "
            "leave it out");
        return STATUS_INVALID;
    }
    batcher->image = augment_image_of(&source);
    if (augment_check(&options->augmentation, &batcher->image, why, sizeof(why)) != STATUS_OK) {
        log_error("--augment: %s", why);
        return STATUS_INVALID;
    }
    uint64_t bytes = pixels_bytes(&source);
    batcher->stored = calloc(2, bytes);
    if (batcher->stored == NULL) {
        return STATUS_NO_MEMORY;
    }
    batcher->spare = batcher->stored + bytes;
    batcher->augments = true;
    return STATUS_OK;
}

/* Signals are for the thread that made the loader. */
static enum status start_loader(struct batcher *batcher)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&batcher->loader, NULL, run_loader, batcher);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        return STATUS_NO_MEMORY;
    }
    batcher->has_loader = true;
    pthread_setname_np(batcher->loader, "loader");
    return STATUS_OK;
}

static enum status init(struct batcher *batcher)
{
    enum status status = sampler_create(&batcher->options, &batcher->sampler);
    if (status != STATUS_OK) {
        return status;
    }
    status = create_slots(batcher);
    if (status != STATUS_OK) {
        return status;
    }
    status = prepare_augmentation(batcher);
    if (status != STATUS_OK) {
        return status;
    }
    if (pthread_mutex_init(&batcher->lock, NULL) != 0) {
        return STATUS_NO_MEMORY;
    }
    pthread_cond_init(&batcher->changed, NULL); // which never fails on Linux
    batcher->has_lock = true;
    return batcher->options.depth > 0 ? start_loader(batcher) : STATUS_OK;
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
    batcher->dataset = dataset;
    status = init(batcher);
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

static void stop_loader(struct batcher *batcher)
{
    pthread_mutex_lock(&batcher->lock);
    batcher->is_stopping = true;
    atomic_fetch_add(&batcher->generation, 1);
    pthread_cond_broadcast(&batcher->changed);
    pthread_mutex_unlock(&batcher->lock);
    pthread_join(batcher->loader, NULL);
}

void batcher_destroy(struct batcher *batcher)
{
    if (batcher == NULL) {
        return;
    }
    if (batcher->has_loader) {
        stop_loader(batcher);
    }
    if (batcher->has_lock) {
        pthread_cond_destroy(&batcher->changed);
        pthread_mutex_destroy(&batcher->lock);
    }
    if (batcher->has_locked_memory) {
        device_unlock_memory(batcher->options.device, batcher->memory);
    }
    memory_destroy_large(batcher->memory, batcher->memory_bytes);
    free(batcher->stored);
    free(batcher->indices);
    free(batcher->slots);
    sampler_destroy(batcher->sampler);
    free(batcher);
}

/* ---- use ---- */

/* Waits, or without a loader reads, until batch `taken` is there. Called with the lock held. */
static void await_batch(struct batcher *batcher)
{
    while (batcher->ready == batcher->taken && !is_at_end(batcher) &&
           batcher->failure == STATUS_OK) {
        if (batcher->has_loader) {
            pthread_cond_wait(&batcher->changed, &batcher->lock);
        } else {
            fill_next(batcher);
        }
    }
}

enum status batcher_next(struct batcher *batcher, struct batch *ret_batch)
{
    pthread_mutex_lock(&batcher->lock);
    await_batch(batcher);
    if (batcher->ready == batcher->taken) {
        enum status status = batcher->failure;
        pthread_mutex_unlock(&batcher->lock);
        return status != STATUS_OK ? status : STATUS_END_OF_DATA;
    }
    const struct slot *slot = &batcher->slots[batcher->taken % batcher->slot_count];
    batcher->taken++;
    pthread_cond_broadcast(&batcher->changed);
    pthread_mutex_unlock(&batcher->lock);
    *ret_batch = (struct batch){
        .pixels = batcher->options.reads_bytes ? NULL : slot->pixels,
        .bytes = batcher->options.reads_bytes ? slot->pixels : NULL,
        .labels = slot->labels,
        .sample_keys = slot->sample_keys,
        .count = slot->count,
        .epoch = slot->epoch,
    };
    return STATUS_OK;
}

enum status batcher_seek(struct batcher *batcher, uint64_t epoch, uint64_t step)
{
    uint64_t step_count = sampler_step_count(batcher->sampler);
    struct position position = {0};
    if (batcher->options.is_training) {
        if (step > step_count) {
            log_error("step %llu of an epoch of %llu cannot be resumed", (unsigned long long)step,
                      (unsigned long long)step_count);
            return STATUS_INVALID;
        }
        position = (struct position){.epoch = epoch, .step = step};
        if (step == step_count) {
            position = (struct position){.epoch = epoch + 1};
        }
    }
    pthread_mutex_lock(&batcher->lock);
    atomic_fetch_add(&batcher->generation, 1);
    batcher->ready = batcher->taken;
    batcher->position = position;
    batcher->failure = STATUS_OK;
    pthread_cond_broadcast(&batcher->changed);
    pthread_mutex_unlock(&batcher->lock);
    return STATUS_OK;
}
