/* Fuzzes the reading of packs: what is taken for one says where each image lies, one after the
 * other and within the file, and is written again as the same bytes. The input is a file; once more
 * it is read with the checksums that belong to it. */
#include "common/base/crc32c.h"
#include "worker/data/pack/pack_format.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void put(uint8_t *at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> 8 * i);
    }
}

/* Checks a split, whose images begin at `at`; returns where they end. */
static uint64_t check_images(const struct pack_header *header, const uint8_t *index,
                             bool is_training, uint64_t at)
{
    uint64_t count = is_training ? header->train_count : header->val_count;
    const uint8_t *entry = index + (is_training ? 0 : PACK_ENTRY_BYTES * header->train_count);
    struct pack_image *images = calloc(count, sizeof(*images));
    char why[PACK_WHY_BYTES];
    assert(images != NULL);
    enum status status = pack_index_decode(header, index, is_training, images, why, sizeof(why));
    assert(status == STATUS_OK);
    for (uint64_t i = 0; i < count; i++) {
        uint8_t again[PACK_ENTRY_BYTES];
        pack_entry_encode(&images[i], again);
        assert(memcmp(again, entry + PACK_ENTRY_BYTES * i, sizeof(again)) == 0);
        assert(images[i].at == at && images[i].label < header->class_count);
        at += images[i].bytes;
    }
    free(images);
    return at;
}

static void check_index(const struct pack_header *header, const uint8_t *index)
{
    char why[PACK_WHY_BYTES] = "";
    struct pack_image *images = calloc(header->train_count, sizeof(*images));
    assert(images != NULL);
    enum status status = pack_index_decode(header, index, true, images, why, sizeof(why));
    free(images);
    assert((status == STATUS_OK) == (why[0] == '\0'));
    if (status == STATUS_OK) {
        uint64_t end = check_images(header, index, true, PACK_HEADER_BYTES);
        end = check_images(header, index, false, end);
        assert(end == PACK_HEADER_BYTES + header->data_bytes);
    }
}

static void read_pack(const uint8_t *bytes, size_t size)
{
    struct pack_header header;
    uint8_t again[PACK_HEADER_BYTES];
    char why[PACK_WHY_BYTES] = "";
    if (size < PACK_HEADER_BYTES) {
        return;
    }
    enum status status = pack_header_decode(bytes, size, &header, why, sizeof(why));
    assert((status == STATUS_OK) == (why[0] == '\0'));
    if (status != STATUS_OK) {
        return;
    }
    pack_header_encode(&header, again);
    assert(memcmp(again, bytes, sizeof(again)) == 0);
    assert(PACK_HEADER_BYTES + header.data_bytes + pack_index_bytes(&header) == size);
    check_index(&header, bytes + PACK_HEADER_BYTES + header.data_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct pack_header header;
    char why[PACK_WHY_BYTES];
    uint8_t *sound = malloc(size + 1);
    if (sound == NULL) {
        return 0;
    }
    memcpy(sound, bytes, size);
    read_pack(sound, size);
    if (size >= PACK_HEADER_BYTES) {
        put(sound + 60, crc32c(sound, 60));
        if (pack_header_decode(sound, size, &header, why, sizeof(why)) == STATUS_OK) {
            put(sound + 52,
                crc32c(sound + PACK_HEADER_BYTES + header.data_bytes, pack_index_bytes(&header)));
            put(sound + 60, crc32c(sound, 60));
        }
        read_pack(sound, size);
    }
    free(sound);
    return 0;
}
