/* Packs and unpacks headers and indices. All that a file says is checked here. */
#include "worker/data/pack/pack_format.h"

#include "common/base/crc32c.h"
#include "common/base/printable.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define VERSION 1

static const char magic[8] = {'R', 'I', 'N', 'G', 'P', 'A', 'C', 'K'};

// Where the parts of a header lie; what no part has is zero.
enum {
    AT_VERSION = 8,
    AT_KIND = 12,
    AT_SIZE = 16,
    AT_CLASSES = 20,
    AT_TRAIN = 24, // 64 bits
    AT_VAL = 32,   // 64 bits
    AT_DATA = 40,  // 64 bits
    AT_TEXT = 48,
    AT_INDEX_CRC = 52,
    AT_ZERO = 56,
    AT_HEADER_CRC = 60, // of all before
};

static void put32(uint8_t *at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> 8 * i);
    }
}

static void put64(uint8_t *at, uint64_t value)
{
    put32(at, (uint32_t)value);
    put32(at + 4, (uint32_t)(value >> 32));
}

static uint32_t get32(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t get64(const uint8_t *at)
{
    return get32(at) | (uint64_t)get32(at + 4) << 32;
}

uint64_t pack_index_bytes(const struct pack_header *header)
{
    return PACK_ENTRY_BYTES * (header->train_count + header->val_count) + header->text_bytes;
}

void pack_header_encode(const struct pack_header *header, uint8_t ret_bytes[PACK_HEADER_BYTES])
{
    memset(ret_bytes, 0, PACK_HEADER_BYTES);
    memcpy(ret_bytes, magic, sizeof(magic));
    put32(ret_bytes + AT_VERSION, VERSION);
    put32(ret_bytes + AT_KIND, header->kind);
    put32(ret_bytes + AT_SIZE, header->size);
    put32(ret_bytes + AT_CLASSES, header->class_count);
    put64(ret_bytes + AT_TRAIN, header->train_count);
    put64(ret_bytes + AT_VAL, header->val_count);
    put64(ret_bytes + AT_DATA, header->data_bytes);
    put32(ret_bytes + AT_TEXT, header->text_bytes);
    put32(ret_bytes + AT_INDEX_CRC, header->index_crc);
    put32(ret_bytes + AT_HEADER_CRC, crc32c(ret_bytes, AT_HEADER_CRC));
}

static bool is_count(uint64_t count)
{
    return count > 0 && count <= PACK_IMAGES_MAX;
}

/* Of a header whose checksum is right: whether each value may be. */
static bool is_possible(const struct pack_header *header, uint32_t kind)
{
    return kind < PACK_KINDS && header->size > 0 && header->size <= PACK_SIZE_MAX &&
           header->class_count >= 2 && header->class_count <= PACK_CLASSES_MAX &&
           is_count(header->train_count) && is_count(header->val_count) &&
           header->text_bytes <= PACK_TEXT_BYTES;
}

enum status pack_header_decode(const uint8_t bytes[PACK_HEADER_BYTES], uint64_t file_bytes,
                               struct pack_header *ret_header, char *ret_why, size_t why_size)
{
    uint32_t version = get32(bytes + AT_VERSION), kind = get32(bytes + AT_KIND);
    if (memcmp(bytes, magic, sizeof(magic)) != 0) {
        snprintf(ret_why, why_size, "it does not begin as a pack does");
        return STATUS_MALFORMED;
    }
    if (version != VERSION) {
        snprintf(ret_why, why_size, "it is of version %u, and this Ringside reads version %d",
                 version, VERSION);
        return STATUS_UNSUPPORTED;
    }
    if (get32(bytes + AT_HEADER_CRC) != crc32c(bytes, AT_HEADER_CRC)) {
        snprintf(ret_why, why_size, "its first %d bytes are damaged: their checksum differs",
                 PACK_HEADER_BYTES);
        return STATUS_MALFORMED;
    }
    struct pack_header header = {
        .kind = (enum pack_kind)kind,
        .size = get32(bytes + AT_SIZE),
        .class_count = get32(bytes + AT_CLASSES),
        .train_count = get64(bytes + AT_TRAIN),
        .val_count = get64(bytes + AT_VAL),
        .data_bytes = get64(bytes + AT_DATA),
        .text_bytes = get32(bytes + AT_TEXT),
        .index_crc = get32(bytes + AT_INDEX_CRC),
    };
    if (!is_possible(&header, kind) || get32(bytes + AT_ZERO) != 0) {
        snprintf(ret_why, why_size, "its first %d bytes say what no pack has", PACK_HEADER_BYTES);
        return STATUS_MALFORMED;
    }
    uint64_t rest = file_bytes - PACK_HEADER_BYTES, index_bytes = pack_index_bytes(&header);
    if (file_bytes < PACK_HEADER_BYTES || index_bytes > rest ||
        header.data_bytes != rest - index_bytes) {
        snprintf(ret_why, why_size,
                 "it has %llu bytes, and not those that its header says: it was cut short, or "
                 "something was added",
                 (unsigned long long)file_bytes);
        return STATUS_MALFORMED;
    }
    *ret_header = header;
    return STATUS_OK;
}

void pack_entry_encode(const struct pack_image *image, uint8_t ret_bytes[PACK_ENTRY_BYTES])
{
    put32(ret_bytes, image->bytes);
    put32(ret_bytes + 4, image->crc);
    put32(ret_bytes + 8, image->label);
}

static bool is_size(const struct pack_header *header, uint32_t bytes)
{
    return header->kind == PACK_RAW ? bytes == PACK_CHANNELS * header->size * header->size
                                    : bytes > 0 && bytes <= PACK_IMAGE_BYTES;
}

enum status pack_index_decode(const struct pack_header *header, const uint8_t *index,
                              bool is_training, struct pack_image *ret_images, char *ret_why,
                              size_t why_size)
{
    uint64_t count = header->train_count + header->val_count, at = PACK_HEADER_BYTES;
    const char *text = (const char *)index + PACK_ENTRY_BYTES * count;
    if (crc32c(index, pack_index_bytes(header)) != header->index_crc) {
        snprintf(ret_why, why_size,
                 "its index, the last %llu bytes, is damaged: its checksum differs",
                 (unsigned long long)pack_index_bytes(header));
        return STATUS_MALFORMED;
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *entry = index + PACK_ENTRY_BYTES * i;
        struct pack_image image = {at, get32(entry), get32(entry + 4), get32(entry + 8)};
        if (!is_size(header, image.bytes) || image.label >= header->class_count) {
            snprintf(ret_why, why_size,
                     "its index has image %llu of %u bytes and class %u, which cannot be",
                     (unsigned long long)i, image.bytes, image.label);
            return STATUS_MALFORMED;
        }
        at += image.bytes;
        if ((i < header->train_count) == is_training) {
            *ret_images++ = image;
        }
    }
    if (at - PACK_HEADER_BYTES != header->data_bytes) {
        snprintf(ret_why, why_size,
                 "the images of its index have %llu bytes, and the file has room for %llu",
                 (unsigned long long)(at - PACK_HEADER_BYTES),
                 (unsigned long long)header->data_bytes);
        return STATUS_MALFORMED;
    }
    if (header->text_bytes > 0 &&
        !pack_text_is_sound(text, header->text_bytes, header->class_count)) {
        snprintf(ret_why, why_size, "the names of its classes are no list of %u names",
                 header->class_count);
        return STATUS_MALFORMED;
    }
    return STATUS_OK;
}

/* The end of a string in JSON that begins at `at`, as the names of classes are written; NULL: it is
 * none. */
static const char *skip_string(const char *at, const char *end)
{
    if (at == end || *at++ != '"') {
        return NULL;
    }
    while (at < end && *at != '"') {
        if ((unsigned char)*at < ' ') {
            return NULL;
        }
        if (*at == '\\') {
            at++;
            if (at == end || strchr("\"\\t", *at) == NULL || *at == '\0') {
                return NULL;
            }
        }
        at++;
    }
    return at < end ? at + 1 : NULL;
}

bool pack_text_is_sound(const char *text, size_t size, uint32_t count)
{
    const char *at = text, *end = text + size;
    assert(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        if (at == end || *at != (i == 0 ? '[' : ',')) {
            return false;
        }
        at = skip_string(at + 1, end);
        if (at == NULL) {
            return false;
        }
    }
    return at + 1 == end && *at == ']' && printable_is_utf8(text, size);
}
