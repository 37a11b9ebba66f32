/* Places tiles, and makes bytes of pixels. */
#include "worker/data/preview/sheet.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static_assert(SHEET_TILES == SHEET_ACROSS * SHEET_ACROSS, "rows and columns");

static uint32_t choose_zoom(uint32_t rows, uint32_t columns)
{
    uint32_t zoom = SHEET_TILE_WISH / (rows > columns ? rows : columns);
    return zoom > 0 ? zoom : 1;
}

static uint32_t side_of(uint32_t pixels, uint32_t zoom)
{
    return SHEET_GAP + SHEET_ACROSS * (pixels * zoom + SHEET_GAP);
}

enum status sheet_init(struct sheet *sheet, uint32_t channels, uint32_t rows, uint32_t columns,
                       uint32_t zoom)
{
    assert(channels == 1 || channels == 3);
    assert(zoom <= SHEET_ZOOM_MAX && rows <= SHEET_SIDE_MAX && columns <= SHEET_SIDE_MAX);
    *sheet = (struct sheet){.channels = channels, .rows = rows, .columns = columns};
    sheet->zoom = zoom > 0 ? zoom : choose_zoom(rows, columns);
    sheet->width = side_of(columns, sheet->zoom);
    sheet->height = side_of(rows, sheet->zoom);
    if (sheet->width > SHEET_SIDE_MAX || sheet->height > SHEET_SIDE_MAX) {
        return STATUS_INVALID;
    }
    size_t size = (size_t)channels * sheet->width * sheet->height;
    sheet->pixels = malloc(size);
    if (sheet->pixels == NULL) {
        return STATUS_NO_MEMORY;
    }
    memset(sheet->pixels, SHEET_WHITE, size);
    return STATUS_OK;
}

void sheet_finish(struct sheet *sheet)
{
    free(sheet->pixels);
    *sheet = (struct sheet){0};
}

static uint8_t byte_of(float pixel, float scale, float shift)
{
    float byte = roundf((pixel - shift) / scale);
    if (!(byte > 0)) { // also what is no number
        return 0;
    }
    return byte < 255 ? (uint8_t)byte : 255;
}

/* A square of the sheet whose first pixel is at `place`. */
static void fill_square(const struct sheet *sheet, size_t place, uint8_t byte)
{
    for (uint32_t i = 0; i < sheet->zoom; i++) {
        uint8_t *row = sheet->pixels + place + (size_t)i * sheet->width * sheet->channels;
        for (uint32_t k = 0; k < sheet->zoom; k++) {
            row[(size_t)k * sheet->channels] = byte;
        }
    }
}

void sheet_put(struct sheet *sheet, uint32_t tile, const float *pixels,
               const struct sheet_tones *tones)
{
    assert(tile < SHEET_TILES);
    size_t left =
        SHEET_GAP + (size_t)(tile % SHEET_ACROSS) * (sheet->columns * sheet->zoom + SHEET_GAP);
    size_t top =
        SHEET_GAP + (size_t)(tile / SHEET_ACROSS) * (sheet->rows * sheet->zoom + SHEET_GAP);
    for (uint32_t c = 0; c < sheet->channels; c++) {
        for (uint32_t row = 0; row < sheet->rows; row++) {
            for (uint32_t column = 0; column < sheet->columns; column++) {
                size_t y = top + (size_t)row * sheet->zoom;
                size_t x = left + (size_t)column * sheet->zoom;
                uint8_t byte = byte_of(*pixels++, tones->scale[c], tones->shift[c]);
                fill_square(sheet, (y * sheet->width + x) * sheet->channels + c, byte);
            }
        }
    }
}
