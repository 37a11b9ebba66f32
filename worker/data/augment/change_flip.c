/* Exchanges left and right of an image. */
#include "common/base/random.h"
#include "worker/data/augment/changes.h"

#include <string.h>

#define WORD sizeof(uint64_t)

/* Words of both ends change places, and bytes of what is left in the middle. */
static void flip_row(uint8_t *left, size_t count)
{
    for (; count >= 2 * WORD; left += WORD, count -= 2 * WORD) {
        uint64_t first, last;
        memcpy(&first, left, WORD);
        memcpy(&last, left + count - WORD, WORD);
        first = __builtin_bswap64(first);
        last = __builtin_bswap64(last);
        memcpy(left, &last, WORD);
        memcpy(left + count - WORD, &first, WORD);
    }
    for (uint8_t *right = left + count - 1; left < right; left++, right--) {
        uint8_t kept = *left;
        *left = *right;
        *right = kept;
    }
}

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
        flip_row(bytes + row * image->columns, image->columns);
    }
    return false;
}
