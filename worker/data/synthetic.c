/* Dataset `synthetic`: noise that is drawn once, so that reading costs a copy: what a job runs at
 * when its input is free. There is nothing to learn from it: labels are random, too.
 *
 * `synthetic:DATA` takes shape, classes and number of images from another dataset, at the size that
 * the job scales it to, and reads none of its images while it trains. Where DATA stores bytes, the
 * noise is drawn as bytes, too: a device that makes pixels of bytes is given as many as of DATA.
 * Others copy pixels that were made of them beforehand. */
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/options/names.h"
#include "worker/data/dataset_rows.h"
#include "worker/data/resized.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// Without DATA.
#define CHANNELS      3
#define SIDE_PIXELS   32
#define CLASS_COUNT   10
#define TRAIN_SAMPLES 8192
#define TEST_SAMPLES  2048

// Images that all samples share: few enough to stay in a core's cache.
#define POOL_IMAGES_MIN 2
#define POOL_IMAGES_MAX 32
#define POOL_BYTES_MAX  ((size_t)1 << 20)

struct synthetic {
    struct dataset dataset;
    struct dataset *like; // DATA, owned; NULL: there is none
    uint64_t key;         // of (seed, split)
    uint32_t pool_images;
    size_t image_floats, image_bytes; // of one; 0 bytes: it has none
    float *pixels;                    // (pool_images, C, H, W), owned
    uint8_t *bytes;                   // (pool_images, as DATA stores them), owned; NULL: none
};

/* The sum of two uniform numbers, scaled to unit deviation. */
static float noise_of(uint32_t bits)
{
    int32_t sum = (int32_t)(bits & 0xFFFF) + (int32_t)(bits >> 16);
    return (float)(sum - 0xFFFF) * (2.4494897f * 0x1p-16f);
}

static uint32_t label_of(const struct synthetic *synthetic, uint64_t index)
{
    return (uint32_t)(random_mix(synthetic->key + index) % synthetic->dataset.class_count);
}

static enum status synthetic_read(const struct dataset *dataset, uint64_t index, float *ret_pixels,
                                  uint32_t *ret_label)
{
    const struct synthetic *synthetic = (const struct synthetic *)dataset;
    memcpy(ret_pixels,
           synthetic->pixels + (index % synthetic->pool_images) * synthetic->image_floats,
           sizeof(float) * synthetic->image_floats);
    *ret_label = label_of(synthetic, index);
    return STATUS_OK;
}

static void synthetic_describe(const struct dataset *dataset, struct pixels_source *ret_source)
{
    const struct synthetic *synthetic = (const struct synthetic *)dataset;
    synthetic->like->ops->describe(synthetic->like, ret_source);
}

static enum status synthetic_read_bytes(const struct dataset *dataset, uint64_t index,
                                        uint8_t *ret_bytes, uint32_t *ret_label)
{
    const struct synthetic *synthetic = (const struct synthetic *)dataset;
    memcpy(ret_bytes, synthetic->bytes + (index % synthetic->pool_images) * synthetic->image_bytes,
           synthetic->image_bytes);
    *ret_label = label_of(synthetic, index);
    return STATUS_OK;
}

static void synthetic_convert(const struct dataset *dataset, const uint8_t *bytes,
                              float *ret_pixels)
{
    const struct synthetic *synthetic = (const struct synthetic *)dataset;
    dataset_convert(synthetic->like, bytes, ret_pixels);
}

static size_t pixels_size(const struct synthetic *synthetic)
{
    return sizeof(float) * synthetic->pool_images * synthetic->image_floats;
}

static void synthetic_close(struct dataset *dataset)
{
    struct synthetic *synthetic = (struct synthetic *)dataset;
    memory_destroy_large(synthetic->pixels, pixels_size(synthetic));
    free(synthetic->bytes);
    dataset_close(synthetic->like);
    free(synthetic);
}

static const struct dataset_ops synthetic_byte_ops = {
    .read = synthetic_read,
    .describe = synthetic_describe,
    .read_bytes = synthetic_read_bytes,
    .convert = synthetic_convert,
    .close = synthetic_close,
};

/* The dataset whose shape is taken, at the size that the job scales it to. */
static enum status open_like(const char *data, const struct dataset_options *options,
                             struct dataset **ret_like)
{
    struct dataset *like;
    if (names_is_synthetic(data)) {
        log_error("--data: synthetic:%s is noise in the shape of noise: name another dataset, or "
                  "leave out \":%s\"",
                  data, data);
        return STATUS_INVALID;
    }
    enum status status = dataset_open(data, options, &like);
    return status == STATUS_OK ? dataset_resize(like, options->image_size, ret_like) : status;
}

static void take_shape(struct synthetic *synthetic, enum dataset_split split)
{
    const struct dataset *like = synthetic->like;
    struct pixels_source source;
    synthetic->dataset = (struct dataset){
        .ops = &dataset_synthetic_ops,
        .sample = {.channels = CHANNELS, .rows = SIDE_PIXELS, .columns = SIDE_PIXELS},
        .sample_count = split == DATASET_TRAIN ? TRAIN_SAMPLES : TEST_SAMPLES,
        .class_count = CLASS_COUNT,
    };
    if (like != NULL) {
        synthetic->dataset.sample = like->sample;
        synthetic->dataset.sample_count = like->sample_count;
        synthetic->dataset.class_count = like->class_count;
    }
    if (like != NULL && dataset_describe(like, &source)) {
        synthetic->dataset.ops = &synthetic_byte_ops;
        synthetic->image_bytes = pixels_bytes(&source);
    }
    const struct shape *sample = &synthetic->dataset.sample;
    synthetic->image_floats = (size_t)sample->channels * sample->rows * sample->columns;
    size_t fitting = POOL_BYTES_MAX / (sizeof(float) * synthetic->image_floats);
    synthetic->pool_images = fitting < POOL_IMAGES_MIN   ? POOL_IMAGES_MIN
                             : fitting < POOL_IMAGES_MAX ? (uint32_t)fitting
                                                         : POOL_IMAGES_MAX;
}

static void draw(struct synthetic *synthetic)
{
    size_t count = synthetic->pool_images * synthetic->image_floats;
    for (size_t i = 0; synthetic->bytes == NULL && i < count; i++) {
        synthetic->pixels[i] = noise_of(random_element(synthetic->key, (uint32_t)i));
    }
    count = synthetic->pool_images * synthetic->image_bytes;
    for (size_t i = 0; i < count; i++) {
        synthetic->bytes[i] = (uint8_t)random_element(synthetic->key, (uint32_t)i);
    }
    for (uint32_t i = 0; synthetic->bytes != NULL && i < synthetic->pool_images; i++) {
        dataset_convert(synthetic->like, synthetic->bytes + i * synthetic->image_bytes,
                        synthetic->pixels + i * synthetic->image_floats);
    }
}

static enum status synthetic_open(const char *path, const struct dataset_options *options,
                                  struct dataset **ret_dataset)
{
    struct synthetic *synthetic = calloc(1, sizeof(*synthetic));
    if (synthetic == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = path[0] != '\0' ? open_like(path, options, &synthetic->like) : STATUS_OK;
    if (status != STATUS_OK) {
        free(synthetic);
        return status;
    }
    take_shape(synthetic, options->split);
    synthetic->key = random_key(options->seed, RANDOM_SYNTHETIC, (uint64_t)options->split, 0);
    synthetic->pixels = memory_create_large(pixels_size(synthetic));
    if (synthetic->image_bytes > 0) {
        synthetic->bytes = calloc(synthetic->pool_images, synthetic->image_bytes);
    }
    if (synthetic->pixels == NULL || (synthetic->image_bytes > 0 && synthetic->bytes == NULL)) {
        synthetic_close(&synthetic->dataset);
        return STATUS_NO_MEMORY;
    }
    draw(synthetic);
    *ret_dataset = &synthetic->dataset;
    return STATUS_OK;
}

const struct dataset_ops dataset_synthetic_ops = {
    .open = synthetic_open,
    .read = synthetic_read,
    .close = synthetic_close,
};
