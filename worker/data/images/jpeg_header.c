/* Walks the segments of a JPEG file: 0xFF, a marker, and for most of them a length and a body. */
#include "worker/data/images/jpeg_header.h"

#include <stdio.h>
#include <string.h>

#define MARKER_BEGIN 0xD8
#define MARKER_END   0xD9
#define MARKER_SCAN  0xDA
#define MARKER_EXIF  0xE1 // APP1
#define MARKER_ADOBE 0xEE // APP14

#define ORIENTATION_TAG  0x0112
#define EXIF_ENTRY_BYTES 12
#define EXIF_SHORT       3

#define FRAME_BYTES     6 // before its components
#define COMPONENT_BYTES 3
#define COMPONENTS_MAX  4
#define SAMPLING_MAX    4
#define SCAN_BLOCKS_MAX 10 // that lie between each other, of components of one scan

/* How densely a component is sampled, among its frame's. */
struct component {
    uint8_t id, across, down;
};

/* What is known of a file while its segments are walked. */
struct walk {
    struct jpeg_header header;
    struct component components[COMPONENTS_MAX]; // (header.components)
};

static uint32_t read_u16(const uint8_t *bytes, bool is_little)
{
    return is_little ? (uint32_t)bytes[1] << 8 | bytes[0] : (uint32_t)bytes[0] << 8 | bytes[1];
}

static uint32_t read_u32(const uint8_t *bytes, bool is_little)
{
    uint32_t first = read_u16(bytes, is_little), second = read_u16(bytes + 2, is_little);
    return is_little ? second << 16 | first : first << 16 | second;
}

/* The orientation in the first directory of a TIFF file, as EXIF embeds one; 0: there is none. */
static uint32_t find_orientation(const uint8_t *tiff, size_t size)
{
    if (size < 8 || (memcmp(tiff, "II*\0", 4) != 0 && memcmp(tiff, "MM\0*", 4) != 0)) {
        return 0;
    }
    bool is_little = tiff[0] == 'I';
    uint32_t directory = read_u32(tiff + 4, is_little);
    if (directory > size - 2) {
        return 0;
    }
    const uint8_t *entry = tiff + directory + 2;
    size_t room = (size - 2 - directory) / EXIF_ENTRY_BYTES;
    uint32_t count = read_u16(tiff + directory, is_little);
    for (size_t i = 0; i < count && i < room; i++, entry += EXIF_ENTRY_BYTES) {
        if (read_u16(entry, is_little) == ORIENTATION_TAG &&
            read_u16(entry + 2, is_little) == EXIF_SHORT) {
            return read_u16(entry + 8, is_little);
        }
    }
    return 0;
}

static void take_exif(const uint8_t *body, size_t size, struct jpeg_header *header)
{
    if (size < 6 || memcmp(body, "Exif\0\0", 6) != 0) {
        return;
    }
    uint32_t orientation = find_orientation(body + 6, size - 6);
    if (orientation >= 1 && orientation <= 8) {
        header->orientation = orientation;
    }
}

/* C0 to CF, but for tables (C4), a reserved one (C8) and the conditions of arithmetic coding (CC).
 */
static bool is_frame(uint8_t marker)
{
    return (marker & 0xF0) == 0xC0 && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

static enum status refuse(const char *why, char *ret_why, size_t why_size)
{
    snprintf(ret_why, why_size, "%s", why);
    return STATUS_MALFORMED;
}

static enum status refuse_sampling(const struct walk *walk, char *ret_why, size_t why_size)
{
    int used = snprintf(ret_why, why_size, "its components are sampled as cannot be decoded:");
    for (uint32_t i = 0; i < walk->header.components && used > 0 && (size_t)used < why_size; i++) {
        used += snprintf(ret_why + used, why_size - (size_t)used, " %ux%u",
                         walk->components[i].across, walk->components[i].down);
    }
    return STATUS_MALFORMED;
}

/* Each component has to fit a whole number of times into the densest one. */
static enum status take_components(const uint8_t *from, struct walk *walk, char *ret_why,
                                   size_t why_size)
{
    uint32_t count = walk->header.components, across = 1, down = 1;
    bool fits = true;
    for (uint32_t i = 0; i < count; i++, from += COMPONENT_BYTES) {
        struct component component = {from[0], from[1] >> 4, from[1] & 0xF};
        walk->components[i] = component;
        across = component.across > across ? component.across : across;
        down = component.down > down ? component.down : down;
        fits = fits && component.across >= 1 && component.down >= 1;
    }
    fits = fits && across <= SAMPLING_MAX && down <= SAMPLING_MAX;
    for (uint32_t i = 0; i < count && fits; i++) {
        fits = across % walk->components[i].across == 0 && down % walk->components[i].down == 0;
    }
    return fits ? STATUS_OK : refuse_sampling(walk, ret_why, why_size);
}

/* The blocks of the component that comes as `place` in a scan; several may have one name. */
static uint32_t blocks_of(const struct walk *walk, uint8_t id, uint32_t place)
{
    const struct component *components = walk->components;
    uint32_t count = walk->header.components;
    uint32_t at = place < count && components[place].id == id ? place : 0;
    while (at < count && components[at].id != id) {
        at++;
    }
    return at < count ? (uint32_t)components[at].across * components[at].down : 0;
}

/* Components that one scan has together must not have too many blocks. */
static enum status check_scan(const uint8_t *body, size_t size, const struct walk *walk,
                              char *ret_why, size_t why_size)
{
    uint32_t count = size > 0 ? body[0] : 0, blocks = 0;
    if (count == 0 || count > COMPONENTS_MAX || size < 1 + 2 * (size_t)count) {
        return refuse("its head is broken: its scan has no components", ret_why, why_size);
    }
    for (uint32_t i = 0; i < count && count > 1; i++) {
        blocks += blocks_of(walk, body[1 + 2 * i], i);
    }
    return blocks <= SCAN_BLOCKS_MAX ? STATUS_OK : refuse_sampling(walk, ret_why, why_size);
}

static enum status take_frame(uint8_t marker, const uint8_t *body, size_t size, struct walk *walk,
                              char *ret_why, size_t why_size)
{
    struct jpeg_header *header = &walk->header;
    // Baseline, extended and progressive, by Huffman's code or arithmetic.
    if (marker != 0xC0 && marker != 0xC1 && marker != 0xC2 && marker != 0xC9 && marker != 0xCA) {
        snprintf(ret_why, why_size,
                 "it is JPEG of a kind that cannot be decoded (frame 0x%02X, "
                 "lossless or hierarchical)",
                 marker);
        return STATUS_MALFORMED;
    }
    if (size < FRAME_BYTES) {
        snprintf(ret_why, why_size, "its frame header has %zu bytes", size);
        return STATUS_MALFORMED;
    }
    header->height = read_u16(body + 1, false);
    header->width = read_u16(body + 3, false);
    header->components = body[5];
    if (body[0] != 8) {
        snprintf(ret_why, why_size, "it has %u bits for a sample, not 8", body[0]);
        return STATUS_MALFORMED;
    }
    if (header->components != 1 && header->components != 3 && header->components != 4) {
        snprintf(ret_why, why_size, "it has %u components, not 1, 3 or 4", header->components);
        return STATUS_MALFORMED;
    }
    if (header->width == 0 || header->height == 0) {
        snprintf(ret_why, why_size, "it has %u x %u pixels", header->width, header->height);
        return STATUS_MALFORMED;
    }
    if (size < FRAME_BYTES + COMPONENT_BYTES * header->components) {
        snprintf(ret_why, why_size, "its frame header has %zu bytes", size);
        return STATUS_MALFORMED;
    }
    return take_components(body + FRAME_BYTES, walk, ret_why, why_size);
}

static enum status take_segment(uint8_t marker, const uint8_t *body, size_t size, struct walk *walk,
                                char *ret_why, size_t why_size)
{
    if (is_frame(marker)) {
        return take_frame(marker, body, size, walk, ret_why, why_size);
    }
    if (marker == MARKER_SCAN) {
        return check_scan(body, size, walk, ret_why, why_size);
    }
    if (marker == MARKER_EXIF) {
        take_exif(body, size, &walk->header);
    } else if (marker == MARKER_ADOBE && size >= 5 && memcmp(body, "Adobe", 5) == 0) {
        walk->header.is_inverted = true;
    }
    return STATUS_OK;
}

enum status jpeg_header_parse(const uint8_t *bytes, size_t size, struct jpeg_header *ret_header,
                              char *ret_why, size_t why_size)
{
    struct walk walk = {.header = {.orientation = 1}};
    if (size < 2) {
        return STATUS_END_OF_DATA;
    }
    if (bytes[0] != 0xFF || bytes[1] != MARKER_BEGIN) {
        return refuse("it does not begin as a JPEG file does", ret_why, why_size);
    }
    size_t at = 2;
    while (size - at >= 4) {
        if (bytes[at] != 0xFF) {
            return refuse("its head is broken: a marker is missing", ret_why, why_size);
        }
        uint8_t marker = bytes[at + 1];
        if (marker == 0xFF) { // which may be repeated
            at++;
            continue;
        }
        if (marker == MARKER_SCAN && walk.header.components == 0) {
            return refuse("its head is broken: it has no frame header", ret_why, why_size);
        }
        size_t length = read_u16(bytes + at + 2, false);
        if (marker < 0xC0 || marker == MARKER_END || length < 2) {
            return refuse("its head is broken: it has no image data", ret_why, why_size);
        }
        if (size - at - 2 < length) {
            return STATUS_END_OF_DATA;
        }
        enum status status =
            take_segment(marker, bytes + at + 4, length - 2, &walk, ret_why, why_size);
        if (status != STATUS_OK) {
            return status;
        }
        if (marker == MARKER_SCAN) {
            walk.header.scan_at = at;
            *ret_header = walk.header;
            return STATUS_OK;
        }
        at += 2 + length;
    }
    return STATUS_END_OF_DATA;
}

bool jpeg_header_has_end(const uint8_t *bytes, size_t size)
{
    // The last one is what is looked for, and mostly the last of all bytes.
    for (size_t i = size; i >= 2; i--) {
        if (bytes[i - 2] == 0xFF && bytes[i - 1] == MARKER_END) {
            return true;
        }
    }
    return false;
}
