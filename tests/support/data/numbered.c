/* Makes samples of their numbers, and checks them. */
#include "tests/support/data/numbered.h"

#include "common/base/random.h"
#include "common/vector/layout.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static enum status numbered_read(const struct dataset *dataset, uint64_t index, float *ret_pixels,
                                 uint32_t *ret_label)
{
    struct numbered_reads *reads = ((const struct numbered *)dataset)->reads;
    if (atomic_fetch_add(&reads->count, 1) == reads->gate_at) {
        sem_post(&reads->arrived);
        sem_wait(&reads->gate);
    }
    for (uint32_t i = 0; i < NUMBERED_PIXELS; i++) {
        ret_pixels[i] = (float)(index * 10 + i);
    }
    *ret_label = (uint32_t)(index % NUMBERED_CLASSES);
    return atomic_load(&reads->broken) == index + 1 ? STATUS_IO : STATUS_OK;
}

static void numbered_close(struct dataset *dataset)
{
    (void)dataset;
}

static const struct dataset_ops numbered_ops = {.read = numbered_read, .close = numbered_close};

void numbered_init(struct numbered *numbered, struct numbered_reads *reads)
{
    *numbered = (struct numbered){
        .dataset = {.ops = &numbered_ops,
                    .sample = {.channels = 1, .rows = 2, .columns = 3},
                    .sample_count = NUMBERED_SAMPLES,
                    .class_count = NUMBERED_CLASSES},
        .reads = reads,
    };
    *reads = (struct numbered_reads){.gate_at = UINT32_MAX};
    sem_init(&reads->arrived, 0, 0);
    sem_init(&reads->gate, 0, 0);
}

struct batcher_options numbered_training(uint32_t global_batch, uint32_t world, uint32_t rank,
                                         uint32_t depth)
{
    struct span slice = span_part((struct span){0, global_batch}, world, rank);
    return (struct batcher_options){
        .batch_size = (uint32_t)slice.count,
        .global_batch = global_batch,
        .rank = rank,
        .world = world,
        .seed = NUMBERED_SEED,
        .is_training = true,
        .depth = depth,
    };
}

struct batcher *numbered_batcher(struct batcher_options options, const struct numbered *numbered)
{
    struct batcher *batcher = NULL;
    assert_int_equal(batcher_create(&options, &numbered->dataset, &batcher), STATUS_OK);
    return batcher;
}

struct batch numbered_next(struct batcher *batcher)
{
    struct batch batch = {0};
    assert_int_equal(batcher_next(batcher, &batch), STATUS_OK);
    return batch;
}

uint32_t numbered_check_sample(const struct batch *batch, uint32_t i)
{
    uint32_t index = (uint32_t)batch->pixels[(size_t)i * NUMBERED_PIXELS] / 10;
    for (uint32_t k = 0; k < NUMBERED_PIXELS; k++) {
        assert_true(batch->pixels[(size_t)i * NUMBERED_PIXELS + k] == (float)(index * 10 + k));
    }
    assert_int_equal(batch->labels[i], index % NUMBERED_CLASSES);
    assert_int_equal(batch->sample_keys[i],
                     random_key(NUMBERED_SEED, RANDOM_DROPOUT, batch->epoch, index));
    return index;
}

void numbered_check_equal(const struct batch *a, const struct batch *b, uint32_t batch_size)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->epoch, b->epoch);
    assert_memory_equal(a->pixels, b->pixels, sizeof(float) * batch_size * NUMBERED_PIXELS);
    assert_memory_equal(a->labels, b->labels, sizeof(uint32_t) * batch_size);
    assert_memory_equal(a->sample_keys, b->sample_keys, sizeof(uint64_t) * batch_size);
}
