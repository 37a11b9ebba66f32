/* Draws rectangles: four numbers for each try. */
#include "worker/data/crop.h"

#include "common/base/random.h"

#include <math.h>
#include <stdbool.h>

#define TRIES    10
#define NARROW   (3.0 / 4)
#define WIDE     (4.0 / 3)
#define FRACTION 0x1p32

static double draw_unit(const struct crop_draw *draw, uint32_t index)
{
    return random_element(draw->key, index) / FRACTION;
}

/* Width over height. Rounded far above the last bits, in which mathematical libraries differ. */
static double draw_shape(const struct crop_draw *draw, uint32_t index)
{
    double reach = log(WIDE);
    return round(exp((2 * draw_unit(draw, index) - 1) * reach) * 65536) / 65536;
}

/* One of `count` places. */
static uint32_t draw_place(const struct crop_draw *draw, uint32_t index, uint32_t count)
{
    return (uint32_t)((uint64_t)random_element(draw->key, index) * count >> 32);
}

static bool try_box(const struct crop_draw *draw, uint32_t first, struct crop_box *box,
                    const struct crop_box *whole)
{
    double all = (double)whole->width * whole->height;
    double area = all * (draw->least + (draw->most - draw->least) * draw_unit(draw, first));
    double shape = draw_shape(draw, first + 1);
    double width = round(sqrt(area * shape)), height = round(sqrt(area / shape));
    if (width < 1 || height < 1 || width > whole->width || height > whole->height) {
        return false;
    }
    box->width = (uint32_t)width;
    box->height = (uint32_t)height;
    box->top = draw_place(draw, first + 2, whole->height - box->height + 1);
    box->left = draw_place(draw, first + 3, whole->width - box->width + 1);
    return true;
}

struct crop_box crop_draw_box(const struct crop_draw *draw, uint32_t width, uint32_t height)
{
    const struct crop_box whole = {0, 0, width, height};
    struct crop_box box = whole;
    for (uint32_t i = 0; i < TRIES; i++) {
        if (try_box(draw, 4 * i, &box, &whole)) {
            return box;
        }
    }
    double narrow = round(width / NARROW), wide = round(height * WIDE);
    box.height = narrow < height ? (uint32_t)narrow : height;
    box.width = wide < width ? (uint32_t)wide : width;
    box.top = (height - box.height) / 2;
    box.left = (width - box.width) / 2;
    return box;
}
