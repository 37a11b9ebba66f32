/* Moves an image, as padding and cropping it does. */
#include "common/base/random.h"
#include "worker/data/augment/changes.h"

#include <string.h>

/* From -reach to reach. */
static int32_t draw_offset(uint64_t key, uint32_t index, uint32_t reach)
{
    uint64_t choices = 2 * (uint64_t)reach + 1;
    return (int32_t)(random_element(key, index) * choices >> 32) - (int32_t)reach;
}

/* A row that lies `offset` columns further right in `from`. */
static void copy_row(const uint8_t *from, int32_t offset, uint32_t columns, uint8_t blank,
                     uint8_t *to)
{
    uint32_t distance = (uint32_t)(offset < 0 ? -offset : offset), count = columns - distance;
    if (offset >= 0) {
        memcpy(to, from + distance, count);
        memset(to + count, blank, distance);
    } else {
        memset(to, blank, distance);
        memcpy(to + distance, from, count);
    }
}

bool change_crop(const struct augment_image *image, double amount, uint64_t key, uint8_t *bytes,
                 uint8_t *spare)
{
    int32_t down = draw_offset(key, 0, (uint32_t)amount);
    int32_t right = draw_offset(key, 1, (uint32_t)amount);
    uint32_t rows = image->rows, columns = image->columns;
    for (uint32_t channel = 0; channel < image->channels; channel++) {
        const uint8_t *plane = bytes + (size_t)channel * rows * columns;
        uint8_t *to = spare + (size_t)channel * rows * columns;
        for (uint32_t row = 0; row < rows; row++, to += columns) {
            int64_t source = (int64_t)row + down;
            if (source < 0 || source >= rows) {
                memset(to, image->blank[channel], columns);
            } else {
                copy_row(plane + source * columns, right, columns, image->blank[channel], to);
            }
        }
    }
    return true;
}
