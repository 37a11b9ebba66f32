/* Decodes JPEG by libturbojpeg, at an eighth to eight eighths of the size. */
#include "worker/data/images/decoder_parts.h"
#include "worker/data/images/jpeg_header.h"

#include <stdio.h>
#include <string.h>
#include <turbojpeg.h>

// Slow but exact arithmetic, which is the same in all its implementations; and no file that makes
// the decoder work for minutes by thousands of scans.
#define FLAGS (TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS)

int decode_jpeg_eighths(uint32_t side, uint32_t target)
{
    tjscalingfactor scale = {.num = 1, .denom = 8};
    while (scale.num < 8 && (uint32_t)TJSCALED((int)side, scale) < target) {
        scale.num++;
    }
    return scale.num;
}

/* What the library says of an image that it could not decode in full. */
static enum status explain(tjhandle handle, const struct decoder_task *task)
{
    const char *text = tjGetErrorStr2(handle);
    // Bytes between two segments are of no use, and do no harm: the image is whole.
    if (tjGetErrorCode(handle) == TJERR_WARNING && strstr(text, "extraneous bytes") != NULL) {
        return STATUS_OK;
    }
    snprintf(task->why, task->why_size, "its data are broken: %s", text);
    return STATUS_MALFORMED;
}

/* (C, M, Y, K) to (R, G, B), in place: each pixel moves to the front. */
static void convert_cmyk(uint8_t *bytes, size_t pixels, bool is_inverted)
{
    for (size_t i = 0; i < pixels; i++) {
        const uint8_t *from = bytes + 4 * i;
        uint32_t black = is_inverted ? from[3] : 255u - from[3];
        for (size_t c = 0; c < 3; c++) {
            uint32_t light = is_inverted ? from[c] : 255u - from[c];
            bytes[3 * i + c] = (uint8_t)((light * black + 127) / 255);
        }
    }
}

static struct square_part scaled(struct square_part part, int eighths)
{
    double scale = eighths / 8.0;
    return (struct square_part){part.left * scale, part.top * scale, part.width * scale,
                                part.height * scale};
}

/* Width, height, orientation and part of what will be decoded, and room for it. */
static enum status plan(const struct decoder_task *task, struct jpeg_header *ret_header,
                        struct square_source *ret_source)
{
    struct jpeg_header header;
    enum status status =
        jpeg_header_parse(task->bytes, task->size, &header, task->why, task->why_size);
    if (status == STATUS_END_OF_DATA) {
        snprintf(task->why, task->why_size, "it ends in its head: it was cut short");
        return STATUS_MALFORMED;
    }
    if (status == STATUS_OK) {
        status = decoder_check_size(header.width, header.height, task->why, task->why_size);
    }
    if (status != STATUS_OK) {
        return status;
    }
    uint32_t side;
    struct square_part part = decoder_part(task, header.width, header.height, &side);
    const tjscalingfactor scale = {.num = decode_jpeg_eighths(side, task->target), .denom = 8};
    uint32_t width = (uint32_t)TJSCALED((int)header.width, scale);
    uint32_t height = (uint32_t)TJSCALED((int)header.height, scale);
    uint64_t pixel_bytes = header.components == 4 ? 4 : 3;
    if (decoder_room_grow(task->room, pixel_bytes * width * height) != STATUS_OK) {
        return STATUS_NO_MEMORY;
    }
    *ret_header = header;
    *ret_source = (struct square_source){.pixels = task->room->bytes,
                                         .width = width,
                                         .height = height,
                                         .orientation = header.orientation,
                                         .part = scaled(part, scale.num)};
    return STATUS_OK;
}

/* A handle for each image: one that is used again keeps the tables of the image before, and takes
 * them for one that has none. */
static enum status decode(const struct decoder_task *task, const struct square_source *source,
                          int format)
{
    tjhandle handle = tjInitDecompress();
    if (handle == NULL) {
        return STATUS_NO_MEMORY;
    }
    int failed = tjDecompress2(handle, task->bytes, task->size, task->room->bytes,
                               (int)source->width, 0, (int)source->height, format, FLAGS);
    enum status status = failed != 0 ? explain(handle, task) : STATUS_OK;
    tjDestroy(handle);
    return status;
}

enum status decode_jpeg_run(const struct decoder_task *task, struct square_source *ret_source)
{
    struct jpeg_header header;
    enum status status = plan(task, &header, ret_source);
    if (status != STATUS_OK) {
        return status;
    }
    bool is_cmyk = header.components == 4;
    status = decode(task, ret_source, is_cmyk ? TJPF_CMYK : TJPF_RGB);
    if (status == STATUS_OK && is_cmyk) {
        convert_cmyk(task->room->bytes, (size_t)ret_source->width * ret_source->height,
                     header.is_inverted);
    }
    return status;
}
