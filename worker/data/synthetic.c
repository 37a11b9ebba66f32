/* Dataset `synthetic`: noise that is drawn once, so that reading costs a copy: what a job runs at
 * when its input is free. There is nothing to learn from it: labels are random, too. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "worker/data/dataset_rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CHANNELS      3
#define SIDE_PIXELS   32
#define IMAGE_FLOATS  ((size_t)CHANNELS * SIDE_PIXELS * SIDE_PIXELS)
#define CLASS_COUNT   10
#define TRAIN_SAMPLES 8192
#define TEST_SAMPLES  2048

// Images that all samples share: few enough to stay in a core's cache.
#define POOL_IMAGES 32
#define POOL_BYTES  (sizeof(float) * POOL_IMAGES * IMAGE_FLOATS)

struct synthetic {
    struct dataset dataset;
    uint64_t key; // of (seed, split)
    float *pool;  // (POOL_IMAGES, C, H, W)
};

/* The sum of two uniform numbers, scaled to unit deviation. */
static float noise_of(uint32_t bits)
{
    int32_t sum = (int32_t)(bits & 0xFFFF) + (int32_t)(bits >> 16);
    return (float)(sum - 0xFFFF) * (2.4494897f * 0x1p-16f);
}

static enum status synthetic_read(const struct dataset *dataset, uint64_t index, float *ret_pixels,
                                  uint32_t *ret_label)
{
    const struct synthetic *synthetic = (const struct synthetic *)dataset;
    memcpy(ret_pixels, synthetic->pool + (index % POOL_IMAGES) * IMAGE_FLOATS,
           sizeof(float) * IMAGE_FLOATS);
    *ret_label = (uint32_t)(random_mix(synthetic->key + index) % CLASS_COUNT);
    return STATUS_OK;
}

static void synthetic_close(struct dataset *dataset)
{
    struct synthetic *synthetic = (struct synthetic *)dataset;
    memory_destroy_large(synthetic->pool, POOL_BYTES);
    free(synthetic);
}

static enum status synthetic_open(const char *path, const struct dataset_options *options,
                                  struct dataset **ret_dataset)
{
    assert(path[0] == '\0');
    struct synthetic *synthetic = calloc(1, sizeof(*synthetic));
    float *pool = memory_create_large(POOL_BYTES);
    if (synthetic == NULL || pool == NULL) {
        memory_destroy_large(pool, POOL_BYTES);
        free(synthetic);
        return STATUS_NO_MEMORY;
    }
    synthetic->dataset = (struct dataset){
        .ops = &dataset_synthetic_ops,
        .sample = {.channels = CHANNELS, .rows = SIDE_PIXELS, .columns = SIDE_PIXELS},
        .sample_count = options->split == DATASET_TRAIN ? TRAIN_SAMPLES : TEST_SAMPLES,
        .class_count = CLASS_COUNT,
    };
    synthetic->key = random_key(options->seed, RANDOM_SYNTHETIC, (uint64_t)options->split, 0);
    synthetic->pool = pool;
    for (uint32_t i = 0; i < POOL_IMAGES * (uint32_t)IMAGE_FLOATS; i++) {
        pool[i] = noise_of(random_element(synthetic->key, i));
    }
    *ret_dataset = &synthetic->dataset;
    return STATUS_OK;
}

const struct dataset_ops dataset_synthetic_ops = {
    .open = synthetic_open,
    .read = synthetic_read,
    .close = synthetic_close,
};
