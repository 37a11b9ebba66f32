/* Compresses by libpng's simple interface. */
#include "worker/data/images/encode_png.h"

#include <assert.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>

enum status encode_png_is_there(char *ret_why, size_t why_size)
{
    (void)ret_why, (void)why_size;
    return STATUS_OK;
}

enum status encode_png(const struct encode_png_image *image, uint8_t **ret_bytes, size_t *ret_size,
                       char *ret_why, size_t why_size)
{
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = image->width,
                     .height = image->height,
                     .format = image->channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB};
    assert(image->channels == 1 || image->channels == 3);
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png); // also of what does not compress
    uint8_t *bytes = malloc(size);
    if (bytes == NULL) {
        snprintf(ret_why, why_size, "there is not enough memory");
        return STATUS_NO_MEMORY;
    }
    if (png_image_write_to_memory(&png, bytes, &size, 0, image->pixels, 0, NULL) == 0) {
        snprintf(ret_why, why_size, "%s", png.message);
        free(bytes);
        return STATUS_NO_MEMORY; // nothing else can fail
    }
    *ret_bytes = bytes;
    *ret_size = size;
    return STATUS_OK;
}
