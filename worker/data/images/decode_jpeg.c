/* Decodes JPEG by libturbojpeg, at an eighth to eight eighths of the size. */
#include "worker/data/images/decoder_parts.h"
#include "worker/data/images/jpeg_header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

// Slow but exact arithmetic, which is the same in all its implementations; and no file that makes
// the decoder work for minutes by thousands of scans.
#define FLAGS (TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS)

struct decode_jpeg {
    tjhandle handle;
};

enum status decode_jpeg_create(struct decode_jpeg **ret_jpeg)
{
    struct decode_jpeg *jpeg = calloc(1, sizeof(*jpeg));
    if (jpeg == NULL) {
        return STATUS_NO_MEMORY;
    }
    jpeg->handle = tjInitDecompress();
    if (jpeg->handle == NULL) {
        free(jpeg);
        return STATUS_NO_MEMORY;
    }
    *ret_jpeg = jpeg;
    return STATUS_OK;
}

void decode_jpeg_destroy(struct decode_jpeg *jpeg)
{
    if (jpeg != NULL) {
        tjDestroy(jpeg->handle);
        free(jpeg);
    }
}

/* The smallest scale at which the short side has the target. */
static tjscalingfactor choose_scale(uint32_t side, uint32_t target)
{
    tjscalingfactor scale = {.num = 1, .denom = 1};
    for (int eighths = 1; eighths < 8; eighths++) {
        tjscalingfactor smaller = {.num = eighths, .denom = 8};
        if ((uint32_t)TJSCALED((int)side, smaller) >= target) {
            scale = smaller;
            break;
        }
    }
    return scale;
}

/* What the library says of an image that it could not decode in full. */
static enum status explain(const struct decode_jpeg *jpeg, const struct decoder_task *task)
{
    const char *text = tjGetErrorStr2(jpeg->handle);
    // Bytes between two segments are of no use, and do no harm: the image is whole.
    if (tjGetErrorCode(jpeg->handle) == TJERR_WARNING && strstr(text, "extraneous bytes") != NULL) {
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

enum status decode_jpeg_run(struct decode_jpeg *jpeg, const struct decoder_task *task,
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
    uint32_t side = header.width < header.height ? header.width : header.height;
    tjscalingfactor scale = choose_scale(side, task->target);
    int width = TJSCALED((int)header.width, scale), height = TJSCALED((int)header.height, scale);
    bool is_cmyk = header.components == 4;
    size_t pixels = (size_t)width * (size_t)height;
    if (decoder_room_grow(task->room, pixels * (is_cmyk ? 4 : 3)) != STATUS_OK) {
        return STATUS_NO_MEMORY;
    }
    if (tjDecompress2(jpeg->handle, task->bytes, task->size, task->room->bytes, width, 0, height,
                      is_cmyk ? TJPF_CMYK : TJPF_RGB, FLAGS) != 0) {
        status = explain(jpeg, task);
        if (status != STATUS_OK) {
            return status;
        }
    }
    if (is_cmyk) {
        convert_cmyk(task->room->bytes, pixels, header.is_inverted);
    }
    *ret_source = (struct square_source){.pixels = task->room->bytes,
                                         .width = (uint32_t)width,
                                         .height = (uint32_t)height,
                                         .orientation = header.orientation};
    return STATUS_OK;
}
