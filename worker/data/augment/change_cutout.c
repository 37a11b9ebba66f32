/* Blanks a square of an image. */
#include "common/base/random.h"
#include "worker/data/augment/changes.h"

#include <string.h>

/* The part of [0, size) that a square of `side` covers. */
struct range {
    uint32_t begin, end;
};

static struct range draw_range(uint64_t key, uint32_t index, uint32_t size, uint32_t side)
{
    uint32_t centre = (uint32_t)((uint64_t)random_element(key, index) * size >> 32);
    int64_t begin = (int64_t)centre - side / 2, end = begin + side;
    return (struct range){
        .begin = begin < 0 ? 0 : (uint32_t)begin,
        .end = end > size ? size : (uint32_t)end,
    };
}

bool change_cutout(const struct augment_image *image, double amount, uint64_t key, uint8_t *bytes,
                   uint8_t *spare)
{
    (void)spare;
    struct range rows = draw_range(key, 0, image->rows, (uint32_t)amount);
    struct range columns = draw_range(key, 1, image->columns, (uint32_t)amount);
    for (uint32_t channel = 0; channel < image->channels; channel++) {
        uint8_t *plane = bytes + (size_t)channel * image->rows * image->columns;
        for (uint32_t row = rows.begin; row < rows.end; row++) {
            memset(plane + (size_t)row * image->columns + columns.begin, image->blank[channel],
                   columns.end - columns.begin);
        }
    }
    return false;
}
