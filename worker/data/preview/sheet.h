/* A sheet of images to look at: eight rows of eight tiles, on white. Pure.
 *
 * Each pixel of an image is a square of zoom x zoom on the sheet. A gap of SHEET_GAP lies around
 * each tile. Tiles that no image is put on stay white, as the gaps are: what augmentation blanks is
 * grey. */
#ifndef WORKER_DATA_PREVIEW_SHEET_H
#define WORKER_DATA_PREVIEW_SHEET_H

#include "common/base/status.h"
#include "worker/device/pixels.h"

#include <stddef.h>
#include <stdint.h>

#define SHEET_ACROSS    8 // tiles of a row, and rows
#define SHEET_TILES     64
#define SHEET_GAP       4 // pixels
#define SHEET_WHITE     255
#define SHEET_TILE_WISH 128 // pixels that a tile has at most, if its zoom may be chosen
#define SHEET_SIDE_MAX  8400
#define SHEET_ZOOM_MAX  64

/* How bytes were made pixels, of each channel: pixel = byte * scale + shift. */
struct sheet_tones {
    float scale[PIXELS_CHANNELS_MAX], shift[PIXELS_CHANNELS_MAX];
};

struct sheet {
    uint32_t channels, rows, columns; // of an image; one channel or three
    uint32_t zoom;
    uint32_t width, height; // of the sheet, in pixels
    uint8_t *pixels;        // (height, width, channels), owned
};

/* Sets sizes, and makes the sheet white. zoom 0: the largest whole number at which a tile has at
 * most SHEET_TILE_WISH rows and columns, at least 1. STATUS_INVALID: it would have more than
 * SHEET_SIDE_MAX rows or columns; width and height say how many. STATUS_NO_MEMORY. */
enum status sheet_init(struct sheet *sheet, uint32_t channels, uint32_t rows, uint32_t columns,
                       uint32_t zoom);
void sheet_finish(struct sheet *sheet); // zeroed is fine

/* Puts pixels (C, H, W) on a tile, made bytes again: rounded, and what is beyond black or white is
 * that. Tiles count from 0, row by row. */
void sheet_put(struct sheet *sheet, uint32_t tile, const float *pixels,
               const struct sheet_tones *tones);

#endif
