/* Converts the bytes of the inner dataset by its own scale and shift. */
#include "worker/data/normalized.h"

#include "common/base/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct normalized {
    struct dataset base;
    struct dataset *inner; // owned
    float scale[PIXELS_CHANNELS_MAX], shift[PIXELS_CHANNELS_MAX];
};

static void normalized_describe(const struct dataset *dataset, struct pixels_source *ret_source)
{
    const struct normalized *normalized = (const struct normalized *)dataset;
    normalized->inner->ops->describe(normalized->inner, ret_source);
    memcpy(ret_source->scale, normalized->scale, sizeof(normalized->scale));
    memcpy(ret_source->shift, normalized->shift, sizeof(normalized->shift));
}

static enum status normalized_read_bytes(const struct dataset *dataset, uint64_t index,
                                         uint8_t *ret_bytes, uint32_t *ret_label)
{
    const struct normalized *normalized = (const struct normalized *)dataset;
    return dataset_read_bytes(normalized->inner, index, ret_bytes, ret_label);
}

static enum status normalized_read_part(const struct dataset *dataset, uint64_t index,
                                        const struct crop_draw *part, uint8_t *ret_bytes,
                                        uint32_t *ret_label)
{
    const struct normalized *normalized = (const struct normalized *)dataset;
    return dataset_read_part(normalized->inner, index, part, ret_bytes, ret_label);
}

static void normalized_close(struct dataset *dataset)
{
    struct normalized *normalized = (struct normalized *)dataset;
    dataset_close(normalized->inner);
    free(normalized);
}

static const struct dataset_ops normalized_ops = {
    .read = dataset_read_by_bytes,
    .describe = normalized_describe,
    .read_bytes = normalized_read_bytes,
    .convert = dataset_convert_as_described,
    .close = normalized_close,
};

static const struct dataset_ops normalized_part_ops = {
    .read = dataset_read_by_bytes,
    .describe = normalized_describe,
    .read_bytes = normalized_read_bytes,
    .convert = dataset_convert_as_described,
    .read_part = normalized_read_part,
    .close = normalized_close,
};

static enum status check(const struct dataset *inner, const struct normalization *normalization)
{
    if (inner->ops->describe == NULL) {
        log_error("--normalize needs images that are stored as bytes, as cifar10 and mnist have "
                  "them; leave it out");
        return STATUS_INVALID;
    }
    if (normalization->kind == NORMALIZATION_GIVEN &&
        normalization->channels != inner->sample.channels) {
        log_error("--normalize has means for %u channel%s; the images have %u: give a mean and a "
                  "deviation for each channel",
                  normalization->channels, normalization->channels == 1 ? "" : "s",
                  inner->sample.channels);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

enum status dataset_normalize(struct dataset *inner, const struct normalization *normalization,
                              struct dataset **ret_dataset)
{
    if (normalization->kind == NORMALIZATION_USUAL) {
        *ret_dataset = inner;
        return STATUS_OK;
    }
    assert(normalization->kind != NORMALIZATION_DATASET);
    enum status status = check(inner, normalization);
    struct normalized *normalized = status == STATUS_OK ? calloc(1, sizeof(*normalized)) : NULL;
    if (normalized == NULL) {
        dataset_close(inner);
        return status == STATUS_OK ? STATUS_NO_MEMORY : status;
    }
    normalized->base = *inner;
    normalized->base.origin = dataset_origin(inner);
    normalized->base.ops = dataset_has_parts(inner) ? &normalized_part_ops : &normalized_ops;
    normalized->inner = inner;
    bool is_given = normalization->kind == NORMALIZATION_GIVEN;
    for (uint32_t c = 0; c < inner->sample.channels; c++) {
        float deviation = is_given ? normalization->deviation[c] : 1;
        normalized->scale[c] = 1 / (255 * deviation);
        normalized->shift[c] = is_given ? -normalization->mean[c] / deviation : 0;
    }
    *ret_dataset = &normalized->base;
    return STATUS_OK;
}
