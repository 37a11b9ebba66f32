/* What the decoders of each format share. */
#ifndef WORKER_DATA_IMAGES_DECODER_PARTS_H
#define WORKER_DATA_IMAGES_DECODER_PARTS_H

#include "worker/data/images/decoder.h"
#include "worker/data/images/square.h"

/* Memory for an image, which grows as images need it. */
struct decoder_room {
    uint8_t *bytes; // owned
    size_t size;
};

enum status decoder_room_grow(struct decoder_room *room, uint64_t size);

/* Whether an image may have so many pixels; otherwise the reason in ret_why. */
enum status decoder_check_size(uint32_t width, uint32_t height, char *ret_why, size_t why_size);

/* An image to decode, and where to say what is wrong with it. */
struct decoder_task {
    const uint8_t *bytes; // (size), borrowed
    size_t size;
    uint32_t target;              // pixels of the short side that are wanted
    const struct crop_draw *part; // borrowed; NULL: the centred square
    struct decoder_room *room;    // borrowed
    char *why;                    // (why_size), borrowed
    size_t why_size;
};

/* The smallest scale, in eighths, at which the short side of an image has the target; 8 at most. */
int decode_jpeg_eighths(uint32_t side, uint32_t target);

/* The part of an image that is drawn, where one is wanted, and its short side. */
struct square_part decoder_part(const struct decoder_task *task, uint32_t width, uint32_t height,
                                uint32_t *ret_side);

/* Decodes with a short side of at least the target, where the image has as much. *ret_source lies
 * in the room. */
enum status decode_jpeg_run(const struct decoder_task *task, struct square_source *ret_source);

/* Decodes all pixels. *ret_source lies in the room. */
enum status decode_png_run(const struct decoder_task *task, struct square_source *ret_source);

#endif
