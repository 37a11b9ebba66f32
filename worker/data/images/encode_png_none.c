/* In the place of encode_png.c, where there was no libpng: refuses by name. */
#include "worker/data/images/encode_png.h"

#include <stdio.h>

enum status encode_png_is_there(char *ret_why, size_t why_size)
{
    snprintf(ret_why, why_size,
             "this build cannot write PNG files: install libpng (libpng-dev; "
             "deploy/install-dependencies does) and build again");
    return STATUS_UNSUPPORTED;
}

enum status encode_png(const struct encode_png_image *image, uint8_t **ret_bytes, size_t *ret_size,
                       char *ret_why, size_t why_size)
{
    (void)image, (void)ret_bytes, (void)ret_size;
    return encode_png_is_there(ret_why, why_size);
}
