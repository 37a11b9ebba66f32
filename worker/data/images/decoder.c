/* Tells formats apart, has the right one decoded, and scales. */
#include "worker/data/images/decoder.h"

#include "worker/data/images/decoder_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct decoder {
    uint32_t size;
    struct square *square;
    const struct crop_draw *part; // borrowed
    struct decoder_room room;
};

enum status decoder_room_grow(struct decoder_room *room, uint64_t size)
{
    if (size <= room->size) {
        return STATUS_OK;
    }
    uint8_t *bytes = realloc(room->bytes, size);
    if (bytes == NULL) {
        return STATUS_NO_MEMORY;
    }
    room->bytes = bytes;
    room->size = size;
    return STATUS_OK;
}

enum status decoder_check_size(uint32_t width, uint32_t height, char *ret_why, size_t why_size)
{
    if (width == 0 || height == 0) {
        snprintf(ret_why, why_size, "it has %u x %u pixels", width, height);
        return STATUS_MALFORMED;
    }
    if ((uint64_t)width * height > DECODER_PIXELS_MAX) {
        snprintf(ret_why, why_size, "it has %u x %u pixels; %llu are the limit", width, height,
                 (unsigned long long)DECODER_PIXELS_MAX);
        return STATUS_MALFORMED;
    }
    return STATUS_OK;
}

enum status decoder_create(uint32_t size, struct decoder **ret_decoder)
{
    struct decoder *decoder = calloc(1, sizeof(*decoder));
    if (decoder == NULL) {
        return STATUS_NO_MEMORY;
    }
    decoder->size = size;
    if (square_create(size, &decoder->square) != STATUS_OK) {
        decoder_destroy(decoder);
        return STATUS_NO_MEMORY;
    }
    *ret_decoder = decoder;
    return STATUS_OK;
}

void decoder_destroy(struct decoder *decoder)
{
    if (decoder == NULL) {
        return;
    }
    square_destroy(decoder->square);
    free(decoder->room.bytes);
    free(decoder);
}

struct square_part decoder_part(const struct decoder_task *task, uint32_t width, uint32_t height,
                                uint32_t *ret_side)
{
    if (task->part == NULL) {
        *ret_side = width < height ? width : height;
        return (struct square_part){0};
    }
    struct crop_box box = crop_draw_box(task->part, width, height);
    *ret_side = box.width < box.height ? box.width : box.height;
    return (struct square_part){box.left, box.top, box.width, box.height};
}

void decoder_set_part(struct decoder *decoder, const struct crop_draw *part)
{
    decoder->part = part;
}

bool decoder_is_png(const uint8_t *bytes, size_t size)
{
    return size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1A\n", 8) == 0;
}

enum status decoder_run(struct decoder *decoder, const uint8_t *bytes, size_t size,
                        uint8_t *ret_pixels, char *ret_why, size_t why_size)
{
    struct decoder_task task = {.bytes = bytes,
                                .size = size,
                                .target = decoder->size,
                                .part = decoder->part,
                                .room = &decoder->room,
                                .why = ret_why,
                                .why_size = why_size};
    struct square_source source;
    enum status status = decoder_is_png(bytes, size) ? decode_png_run(&task, &source)
                                                     : decode_jpeg_run(&task, &source);
    return status == STATUS_OK ? square_make(decoder->square, &source, ret_pixels) : status;
}
