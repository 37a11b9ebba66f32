/* Fuzzes the decoding of image files: the head of a JPEG says the same however much follows it, and
 * what can be decoded is decoded to the same pixels each time, in whatever the decoder did before.
 * The look at both ends of a file, before a job, has a reason for what it refuses. */
#include "worker/data/images/decoder.h"
#include "worker/data/images/image_check.h"
#include "worker/data/images/jpeg_header.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE       16
#define PIXELS     (DECODER_CHANNELS * SIZE * SIZE)
#define PIXELS_MAX 65536u // of an image as stored: larger ones are slow, and no different

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_header(const struct jpeg_header *header, const uint8_t *bytes, size_t size)
{
    struct jpeg_header again;
    char why[DECODER_WHY_BYTES];
    assert(header->scan_at >= 2 && header->scan_at + 4 <= size);
    assert(bytes[header->scan_at] == 0xFF && bytes[header->scan_at + 1] == 0xDA);
    assert(header->orientation >= 1 && header->orientation <= 8);
    assert(header->width > 0 && header->height > 0);
    size_t end =
        header->scan_at + 2 + (size_t)bytes[header->scan_at + 2] * 256 + bytes[header->scan_at + 3];
    assert(end <= size);
    assert(jpeg_header_parse(bytes, end, &again, why, sizeof(why)) == STATUS_OK);
    assert(memcmp(&again, header, sizeof(again)) == 0);
    enum status status = jpeg_header_parse(bytes, end - 1, &again, why, sizeof(why));
    assert(status == STATUS_END_OF_DATA);
}

/* Width and height of a PNG, where its first chunk lies. */
static bool is_small_png(const uint8_t *bytes, size_t size)
{
    if (size < 24) {
        return true;
    }
    uint64_t sides[2] = {0};
    for (size_t i = 0; i < 8; i++) {
        sides[i / 4] = sides[i / 4] << 8 | bytes[16 + i];
    }
    return sides[0] * sides[1] <= PIXELS_MAX;
}

/* Whether the image is worth decoding here; checks the head of a JPEG. */
static bool is_small(const uint8_t *bytes, size_t size)
{
    struct jpeg_header header = {0};
    char why[DECODER_WHY_BYTES] = "";
    if (decoder_is_png(bytes, size)) {
        return is_small_png(bytes, size);
    }
    enum status status = jpeg_header_parse(bytes, size, &header, why, sizeof(why));
    assert((status == STATUS_MALFORMED) == (why[0] != '\0'));
    if (status != STATUS_OK) {
        return true;
    }
    check_header(&header, bytes, size);
    return (uint64_t)header.width * header.height <= PIXELS_MAX;
}

static void check_ends(const uint8_t *bytes, size_t size)
{
    static int file = -1;
    char why[DECODER_WHY_BYTES] = "";
    file = file < 0 ? memfd_create("image", MFD_CLOEXEC) : file;
    if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, bytes, size, 0) != (ssize_t)size) {
        return;
    }
    enum status status = image_check_file(file, size, why, sizeof(why));
    assert(status == (why[0] == '\0' ? STATUS_OK : STATUS_MALFORMED));
}

/* A part of an image that can be decoded can be, too, and of others none. */
static void check_part(struct decoder *used, struct decoder *fresh, const uint8_t *bytes,
                       size_t size, enum status expected)
{
    const struct crop_draw part = {.least = 0.01, .most = 1, .key = size};
    uint8_t first[PIXELS], second[PIXELS];
    char why[DECODER_WHY_BYTES] = "";
    decoder_set_part(used, &part);
    decoder_set_part(fresh, &part);
    assert(decoder_run(fresh, bytes, size, first, why, sizeof(why)) == expected);
    assert(decoder_run(used, bytes, size, second, why, sizeof(why)) == expected);
    assert(expected != STATUS_OK || memcmp(first, second, sizeof(first)) == 0);
    decoder_set_part(used, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct decoder *used; // by all inputs before
    struct decoder *fresh;
    uint8_t first[PIXELS], second[PIXELS];
    char why[DECODER_WHY_BYTES] = "";
    check_ends(bytes, size);
    if (!is_small(bytes, size) || (used == NULL && decoder_create(SIZE, &used) != STATUS_OK) ||
        decoder_create(SIZE, &fresh) != STATUS_OK) {
        return 0;
    }
    enum status status = decoder_run(fresh, bytes, size, first, why, sizeof(why));
    assert(status == STATUS_OK || (status == STATUS_MALFORMED && why[0] != '\0'));
    assert(decoder_run(used, bytes, size, second, why, sizeof(why)) == status);
    assert(status != STATUS_OK || memcmp(first, second, sizeof(first)) == 0);
    check_part(used, fresh, bytes, size, status);
    decoder_destroy(fresh);
    return 0;
}
