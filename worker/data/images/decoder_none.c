/* In the place of the decoder, where there was no libturbojpeg. */
#include "worker/data/images/decoder.h"

#include <assert.h>

enum status decoder_create(uint32_t size, struct decoder **ret_decoder)
{
    (void)size, (void)ret_decoder;
    return STATUS_UNSUPPORTED;
}

void decoder_destroy(struct decoder *decoder)
{
    assert(decoder == NULL);
}

void decoder_set_part(struct decoder *decoder, const struct crop_draw *part)
{
    (void)decoder, (void)part;
}

enum status decoder_run(struct decoder *decoder, const uint8_t *bytes, size_t size,
                        uint8_t *ret_pixels, char *ret_why, size_t why_size)
{
    (void)decoder, (void)bytes, (void)size, (void)ret_pixels, (void)ret_why, (void)why_size;
    return STATUS_UNSUPPORTED;
}
