/* Interleaves the planes, then compresses them by exact arithmetic. */
#include "worker/data/images/encode_jpeg.h"

#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

#define CHANNELS 3

static enum status compress(const uint8_t *pixels, uint32_t size, uint32_t quality,
                            uint8_t **ret_bytes, size_t *ret_size)
{
    unsigned char *jpeg = NULL; // which belongs to the library
    unsigned long jpeg_size = 0;
    tjhandle handle = tjInitCompress();
    uint8_t *bytes = NULL;
    if (handle != NULL &&
        tjCompress2(handle, pixels, (int)size, 0, (int)size, TJPF_RGB, &jpeg, &jpeg_size,
                    TJSAMP_420, (int)quality, TJFLAG_ACCURATEDCT) == 0) {
        bytes = malloc(jpeg_size);
    }
    if (bytes != NULL) {
        memcpy(bytes, jpeg, jpeg_size);
        *ret_bytes = bytes;
        *ret_size = jpeg_size;
    }
    tjFree(jpeg);
    if (handle != NULL) {
        tjDestroy(handle);
    }
    return bytes != NULL ? STATUS_OK : STATUS_NO_MEMORY; // nothing else can fail
}

enum status encode_jpeg(const uint8_t *pixels, uint32_t size, uint32_t quality, uint8_t **ret_bytes,
                        size_t *ret_size)
{
    size_t plane = (size_t)size * size;
    uint8_t *mixed = malloc(CHANNELS * plane);
    if (mixed == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < plane; i++) {
        for (size_t c = 0; c < CHANNELS; c++) {
            mixed[CHANNELS * i + c] = pixels[c * plane + i];
        }
    }
    enum status status = compress(mixed, size, quality, ret_bytes, ret_size);
    free(mixed);
    return status;
}
