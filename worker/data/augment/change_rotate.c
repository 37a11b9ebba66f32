/* Turns an image about its centre.
 *
 * Each pixel of the result looks up where it comes from, and takes the bilinear mean of the four
 * pixels around that point; pixels outside are blank. Coordinates are fixed-point numbers with 16
 * bits behind the point, and weights have 8. */
#include "common/base/random.h"
#include "worker/data/augment/changes.h"

#include <math.h>

#define ONE 65536

struct turn {
    int64_t cosine, sine; // times ONE
};

static struct turn draw_turn(uint64_t key, double degrees)
{
    double share = (double)random_unit_float(random_element(key, 0)) * 2 - 1;
    double angle = share * degrees * (3.14159265358979323846 / 180);
    // Rounded far above the last bits, in which mathematical libraries differ.
    return (struct turn){llround(cos(angle) * ONE), llround(sin(angle) * ONE)};
}

/* One plane, and what lies outside. */
struct plane {
    const uint8_t *bytes; // (rows, columns)
    int64_t rows, columns;
    uint8_t blank;
};

static int64_t at(const struct plane *plane, int64_t row, int64_t column)
{
    bool is_inside = row >= 0 && row < plane->rows && column >= 0 && column < plane->columns;
    return is_inside ? plane->bytes[row * plane->columns + column] : plane->blank;
}

/* At a point, times ONE. */
static uint8_t sample(const struct plane *plane, int64_t y, int64_t x)
{
    int64_t row = y >> 16, column = x >> 16; // also below zero: towards minus infinity
    int64_t down = (y >> 8) & 255, right = (x >> 8) & 255;
    int64_t above = at(plane, row, column) * (256 - right) + at(plane, row, column + 1) * right;
    int64_t below =
        at(plane, row + 1, column) * (256 - right) + at(plane, row + 1, column + 1) * right;
    return (uint8_t)((above * (256 - down) + below * down + ONE / 2) >> 16);
}

static void turn_plane(const struct plane *plane, struct turn turn, uint8_t *to)
{
    for (int64_t row = 0; row < plane->rows; row++) {
        for (int64_t column = 0; column < plane->columns; column++) {
            // Twice the distance to the centre, which may lie between pixels.
            int64_t down = 2 * row - (plane->rows - 1), right = 2 * column - (plane->columns - 1);
            int64_t y = turn.cosine * down + turn.sine * right + (plane->rows - 1) * ONE;
            int64_t x = turn.cosine * right - turn.sine * down + (plane->columns - 1) * ONE;
            *to++ = sample(plane, y >> 1, x >> 1);
        }
    }
}

bool change_rotate(const struct augment_image *image, double amount, uint64_t key, uint8_t *bytes,
                   uint8_t *spare)
{
    struct turn turn = draw_turn(key, amount);
    size_t plane_bytes = (size_t)image->rows * image->columns;
    for (uint32_t channel = 0; channel < image->channels; channel++) {
        const struct plane plane = {bytes + channel * plane_bytes, image->rows, image->columns,
                                    image->blank[channel]};
        turn_plane(&plane, turn, spare + channel * plane_bytes);
    }
    return true;
}
