/* Two passes, along rows and then along columns, as square.c has them for decoded images. A part is
 * never larger than the image, so a pixel of the result comes from few of the source. */
#include "worker/data/augment/resized_crop.h"

#include "worker/data/scale_axis.h"

/* What the passes need, one behind the other in the scratch. */
struct room {
    struct scale_axis columns, rows;
    uint8_t *narrow; // (rows of the part, columns)
};

static size_t weights_of(uint32_t size)
{
    const struct scale_part all = {.side = size, .high = size};
    return scale_axis_weights(size, &all);
}

static size_t axis_bytes(uint32_t size)
{
    return size * sizeof(struct scale_tap) + weights_of(size) * sizeof(int32_t);
}

/* Rounded up, so that the taps of the next axis are aligned. */
static size_t axis_room(uint32_t size)
{
    return (axis_bytes(size) + sizeof(struct scale_tap) - 1) / sizeof(struct scale_tap) *
           sizeof(struct scale_tap);
}

size_t resized_crop_scratch(const struct augment_image *image)
{
    return axis_room(image->rows) + axis_room(image->columns) +
           (size_t)image->rows * image->columns;
}

static struct scale_axis axis_at(void *scratch, uint32_t size)
{
    struct scale_tap *taps = scratch;
    return (struct scale_axis){
        .taps = taps, .weights = (void *)(taps + size), .capacity = weights_of(size)};
}

static void plan(const struct augment_image *image, const struct crop_box *box, void *scratch,
                 struct room *ret_room)
{
    const struct scale_part columns = {box->left, box->width, box->left, box->left + box->width};
    const struct scale_part rows = {box->top, box->height, box->top, box->top + box->height};
    uint8_t *at = scratch;
    ret_room->columns = axis_at(at, image->columns);
    at += axis_room(image->columns);
    ret_room->rows = axis_at(at, image->rows);
    ret_room->narrow = at + axis_room(image->rows);
    scale_axis_plan(&ret_room->columns, image->columns, &columns);
    scale_axis_plan(&ret_room->rows, image->rows, &rows);
}

/* A pixel of the result, of pixels that lie `stride` apart. */
static uint8_t join(const struct scale_axis *axis, uint32_t index, const uint8_t *from,
                    size_t stride)
{
    const struct scale_tap *tap = &axis->taps[index];
    int32_t sum = 0;
    for (uint32_t k = 0; k < tap->count; k++) {
        sum += axis->weights[tap->weights_at + k] * from[(tap->first + k) * stride];
    }
    return scale_round(sum);
}

static void scale_plane(const struct room *room, const struct crop_box *box, uint32_t rows,
                        uint32_t columns, uint8_t *bytes)
{
    uint8_t *narrow = room->narrow;
    for (uint32_t row = box->top; row < box->top + box->height; row++) {
        for (uint32_t i = 0; i < columns; i++) {
            narrow[(size_t)row * columns + i] =
                join(&room->columns, i, bytes + (size_t)row * columns, 1);
        }
    }
    for (uint32_t row = 0; row < rows; row++) {
        for (uint32_t i = 0; i < columns; i++) {
            bytes[(size_t)row * columns + i] = join(&room->rows, row, narrow + i, columns);
        }
    }
}

void resized_crop(const struct augment_image *image, const struct crop_draw *draw, void *scratch,
                  uint8_t *bytes)
{
    struct crop_box box = crop_draw_box(draw, image->columns, image->rows);
    struct room room;
    plan(image, &box, scratch, &room);
    size_t plane = (size_t)image->rows * image->columns;
    for (uint32_t c = 0; c < image->channels; c++) {
        scale_plane(&room, &box, image->rows, image->columns, bytes + c * plane);
    }
}
