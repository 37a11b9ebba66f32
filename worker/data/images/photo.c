/* Scale and shift of each channel. */
#include "worker/data/images/photo.h"

#include "worker/data/dataset.h"

#include <assert.h>
#include <stddef.h>

#define CHANNELS 3

// Of ImageNet's training images, by which most networks for photographs are normalised.
static const float means[CHANNELS] = {0.485f, 0.456f, 0.406f};
static const float deviations[CHANNELS] = {0.229f, 0.224f, 0.225f};

void photo_describe(struct shape sample, struct pixels_source *ret_source)
{
    assert(sample.channels == CHANNELS);
    *ret_source = (struct pixels_source){
        .channels = sample.channels, .rows = sample.rows, .columns = sample.columns};
    for (uint32_t c = 0; c < CHANNELS; c++) {
        ret_source->scale[c] = 1 / (255 * deviations[c]);
        ret_source->shift[c] = -means[c] / deviations[c];
    }
}

void photo_convert(struct shape sample, const uint8_t *bytes, float *ret_pixels)
{
    struct pixels_source source;
    photo_describe(sample, &source);
    dataset_scale_bytes(&source, bytes, ret_pixels);
}
