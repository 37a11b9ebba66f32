/* Exchanges left and right of an image. */
#include "common/base/random.h"
#include "worker/data/augment/changes.h"

bool change_flip(const struct augment_image *image, double amount, uint64_t key, uint8_t *bytes,
                 uint8_t *spare)
{
    (void)amount;
    (void)spare;
    if (random_element(key, 0) >> 31 == 0) {
        return false;
    }
    size_t row_count = (size_t)image->channels * image->rows;
    for (size_t row = 0; row < row_count; row++) {
        uint8_t *left = bytes + row * image->columns, *right = left + image->columns - 1;
        for (; left < right; left++, right--) {
            uint8_t kept = *left;
            *left = *right;
            *right = kept;
        }
    }
    return false;
}
