/* Shuffles the places of a class, as far as they are held back. */
#include "worker/data/validation.h"

#include "common/base/random.h"

#define SHARE 10

void validation_draw(uint64_t seed, uint32_t class, uint32_t *places, uint64_t count,
                     bool *held_back)
{
    uint64_t held = count / SHARE;
    held = held == 0 && count >= 2 ? 1 : held;
    struct random_sequence sequence = {random_key(seed, RANDOM_IMAGES, class, 0)};
    for (uint64_t i = 0; i < held; i++) {
        uint64_t j = i + random_below(&sequence, count - i);
        uint32_t place = places[i];
        places[i] = places[j];
        places[j] = place;
        held_back[places[i]] = true;
    }
}
