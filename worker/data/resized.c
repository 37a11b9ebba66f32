/* Bilinear interpolation: along rows, then along columns, from weights that are known beforehand.
 */
#include "worker/data/resized.h"

#include "common/base/log.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

// Floats of an image before it is scaled: read into a thread's stack.
#define INNER_MAX ((size_t)3 * 128 * 128)

struct resized {
    struct dataset base;
    struct dataset *inner; // owned
    uint32_t size;
    struct pixels_tap *rows, *columns; // (size), owned: one allocation, from rows on
};

static void fill_taps(struct pixels_tap *taps, uint32_t count, uint32_t inner)
{
    for (uint32_t i = 0; i < count; i++) {
        double centre = (i + 0.5) * inner / count - 0.5;
        double low = floor(fmax(0, centre));
        taps[i].low = (uint32_t)low;
        taps[i].high = taps[i].low + 1 < inner ? taps[i].low + 1 : inner - 1;
        taps[i].weight = (float)fmax(0, centre - low);
    }
}

static float between(float low, float high, float weight)
{
    return low + (high - low) * weight;
}

static void scale_plane(const struct resized *resized, const float *from, float *to)
{
    uint32_t width = resized->inner->sample.columns, size = resized->size;
    for (uint32_t row = 0; row < size; row++) {
        const struct pixels_tap *tap = &resized->rows[row];
        const float *low = from + (size_t)tap->low * width;
        const float *high = from + (size_t)tap->high * width;
        for (uint32_t i = 0; i < size; i++) {
            const struct pixels_tap *column = &resized->columns[i];
            float first = between(low[column->low], low[column->high], column->weight);
            float second = between(high[column->low], high[column->high], column->weight);
            to[(size_t)row * size + i] = between(first, second, tap->weight);
        }
    }
}

/* From the pixels of an image as the inner dataset has it. */
static void scale_image(const struct resized *resized, const float *pixels, float *ret_pixels)
{
    struct shape inner = resized->inner->sample;
    for (uint32_t channel = 0; channel < inner.channels; channel++) {
        scale_plane(resized, pixels + (size_t)channel * inner.rows * inner.columns,
                    ret_pixels + (size_t)channel * resized->size * resized->size);
    }
}

static enum status resized_read(const struct dataset *dataset, uint64_t index, float *ret_pixels,
                                uint32_t *ret_label)
{
    const struct resized *resized = (const struct resized *)dataset;
    float pixels[INNER_MAX];
    enum status status = dataset_read(resized->inner, index, pixels, ret_label);
    if (status == STATUS_OK) {
        scale_image(resized, pixels, ret_pixels);
    }
    return status;
}

static void resized_convert(const struct dataset *dataset, const uint8_t *bytes, float *ret_pixels)
{
    const struct resized *resized = (const struct resized *)dataset;
    float pixels[INNER_MAX];
    dataset_convert(resized->inner, bytes, pixels);
    scale_image(resized, pixels, ret_pixels);
}

static void resized_close(struct dataset *dataset)
{
    struct resized *resized = (struct resized *)dataset;
    dataset_close(resized->inner);
    free(resized->rows);
    free(resized);
}

static void resized_describe(const struct dataset *dataset, struct pixels_source *ret_source)
{
    const struct resized *resized = (const struct resized *)dataset;
    resized->inner->ops->describe(resized->inner, ret_source);
    ret_source->row_taps = resized->rows;
    ret_source->column_taps = resized->columns;
}

static enum status resized_read_bytes(const struct dataset *dataset, uint64_t index,
                                      uint8_t *ret_bytes, uint32_t *ret_label)
{
    const struct resized *resized = (const struct resized *)dataset;
    return resized->inner->ops->read_bytes(resized->inner, index, ret_bytes, ret_label);
}

static const struct dataset_ops resized_byte_ops = {
    .read = resized_read,
    .describe = resized_describe,
    .read_bytes = resized_read_bytes,
    .convert = resized_convert,
    .close = resized_close,
};

static const struct dataset_ops resized_ops = {
    .read = resized_read,
    .close = resized_close,
};

enum status dataset_resize(struct dataset *inner, uint32_t size, struct dataset **ret_dataset)
{
    struct shape sample = inner->sample;
    assert(size <= RESIZED_ROWS_MAX);
    if (size == 0 || (sample.rows == size && sample.columns == size)) {
        *ret_dataset = inner;
        return STATUS_OK;
    }
    if ((uint64_t)sample.channels * sample.rows * sample.columns > INNER_MAX) {
        log_error("images of %ux%ux%u are too large to be resized: leave out --image-size",
                  sample.channels, sample.rows, sample.columns);
        dataset_close(inner);
        return STATUS_UNSUPPORTED;
    }
    struct resized *resized = calloc(1, sizeof(*resized));
    struct pixels_tap *taps = calloc(2 * (size_t)size, sizeof(*taps));
    if (resized == NULL || taps == NULL) {
        log_error("not enough memory for images of %ux%u", size, size);
        free(resized);
        free(taps);
        dataset_close(inner);
        return STATUS_NO_MEMORY;
    }
    resized->base = *inner;
    resized->base.origin = dataset_origin(inner);
    resized->base.ops = inner->ops->describe != NULL ? &resized_byte_ops : &resized_ops;
    resized->base.sample.rows = resized->base.sample.columns = size;
    resized->inner = inner;
    resized->size = size;
    resized->rows = taps;
    resized->columns = taps + size;
    fill_taps(resized->rows, size, sample.rows);
    fill_taps(resized->columns, size, sample.columns);
    *ret_dataset = &resized->base;
    return STATUS_OK;
}
