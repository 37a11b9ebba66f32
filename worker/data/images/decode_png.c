/* Decodes PNG by libpng's simple interface, which knows all its kinds. */
#include "worker/data/images/decoder_parts.h"

#include <png.h>
#include <stdio.h>

enum status decoder_allows_png(char *ret_why, size_t why_size)
{
    (void)ret_why, (void)why_size;
    return STATUS_OK;
}

static enum status read_pixels(png_image *image, const struct decoder_task *task)
{
    // Behind what is transparent.
    static const png_color white = {255, 255, 255};
    enum status status = decoder_check_size(image->width, image->height, task->why, task->why_size);
    if (status != STATUS_OK) {
        return status;
    }
    image->format = PNG_FORMAT_RGB;
    if (decoder_room_grow(task->room, (uint64_t)DECODER_CHANNELS * image->width * image->height) !=
        STATUS_OK) {
        return STATUS_NO_MEMORY;
    }
    if (png_image_finish_read(image, &white, task->room->bytes, 0, NULL) == 0) {
        snprintf(task->why, task->why_size, "its data are broken: %s", image->message);
        return STATUS_MALFORMED;
    }
    return STATUS_OK;
}

enum status decode_png_run(const struct decoder_task *task, struct square_source *ret_source)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (png_image_begin_read_from_memory(&image, task->bytes, task->size) == 0) {
        snprintf(task->why, task->why_size, "its data are broken: %s", image.message);
        return STATUS_MALFORMED;
    }
    uint32_t side;
    *ret_source =
        (struct square_source){.width = image.width,
                               .height = image.height,
                               .orientation = 1,
                               .part = decoder_part(task, image.width, image.height, &side)};
    enum status status = read_pixels(&image, task);
    png_image_free(&image);
    ret_source->pixels = task->room->bytes;
    return status;
}
