/* Tests of the heads of JPEG files, written by hand. */
#include "tests/support/data/jpeg_maker.h"
#include "worker/data/images/jpeg_header.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define WHY_BYTES 256

// 300 x 200 pixels, three components; an EXIF segment of orientation 8 before.
static const uint8_t head[] = {
    0xFF, 0xD8, 0xFF, 0xE1, 0,    34,   'E', 'x', 'i', 'f', 0, 0,  'M', 'M', 0,    42, 0,  0,
    0,    8,    0,    1,    1,    0x12, 0,   3,   0,   0,   0, 1,  0,   8,   0,    0,  0,  0,
    0,    0,    0xFF, 0xFF, 0xC2, 0,    17,  8,   0,   200, 1, 44, 3,   1,   0x22, 0,  2,  0x11,
    1,    3,    0x11, 1,    0xFF, 0xDA, 0,   12,  3,   1,   0, 2,  0,   3,   0,    0,  63, 0};

#define FRAME_AT 39 // where the marker of the frame lies, behind a second 0xFF

static enum status parse(const uint8_t *bytes, size_t size, struct jpeg_header *ret_header,
                         char why[WHY_BYTES])
{
    why[0] = '\0';
    return jpeg_header_parse(bytes, size, ret_header, why, WHY_BYTES);
}

static void a_head_is_read_up_to_its_first_scan(void **state)
{
    (void)state;
    struct jpeg_header header;
    char why[WHY_BYTES];
    assert_int_equal(parse(head, sizeof(head), &header, why), STATUS_OK);
    assert_int_equal(header.width, 300);
    assert_int_equal(header.height, 200);
    assert_int_equal(header.components, 3);
    assert_int_equal(header.orientation, 8);
    assert_false(header.is_inverted);
    assert_int_equal(header.scan_at, sizeof(head) - 14);
    for (size_t size = 0; size < sizeof(head); size++) {
        assert_int_equal(parse(head, size, &header, why), STATUS_END_OF_DATA);
    }
}

static void an_orientation_that_there_is_not_counts_as_none(void **state)
{
    (void)state;
    static const uint8_t values[] = {0, 9, 255};
    struct jpeg_header header;
    char why[WHY_BYTES];
    uint8_t bytes[sizeof(head)];
    for (size_t i = 0; i < sizeof(values); i++) {
        memcpy(bytes, head, sizeof(head));
        bytes[31] = values[i];
        assert_int_equal(parse(bytes, sizeof(bytes), &header, why), STATUS_OK);
        assert_int_equal(header.orientation, 1);
    }
    memcpy(bytes, head, sizeof(head));
    bytes[19] = 200; // the directory lies outside
    assert_int_equal(parse(bytes, sizeof(bytes), &header, why), STATUS_OK);
    assert_int_equal(header.orientation, 1);
    bytes[19] = 8;
    bytes[21] = 200; // more entries than there are
    assert_int_equal(parse(bytes, sizeof(bytes), &header, why), STATUS_OK);
    assert_int_equal(header.orientation, 8);
}

static void check_refused(size_t at, uint8_t value, const char *text)
{
    struct jpeg_header header;
    char why[WHY_BYTES];
    uint8_t bytes[sizeof(head)];
    memcpy(bytes, head, sizeof(head));
    bytes[at] = value;
    assert_int_equal(parse(bytes, sizeof(bytes), &header, why), STATUS_MALFORMED);
    if (strstr(why, text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, why);
    }
}

static void what_cannot_be_decoded_is_refused_with_what_it_is(void **state)
{
    (void)state;
    check_refused(1, 0xD9, "does not begin as a JPEG file does");
    check_refused(2, 0, "a marker is missing");
    check_refused(FRAME_AT + 1, 0xC7, "frame 0xC7");
    check_refused(FRAME_AT + 1, 0xD9, "no image data");
    check_refused(FRAME_AT + 1, 0xC4, "no frame header");
    check_refused(FRAME_AT + 4, 12, "12 bits");
    check_refused(FRAME_AT + 9, 2, "2 components");
    check_refused(FRAME_AT + 6, 0, "300 x 0 pixels");
    check_refused(FRAME_AT + 3, 16, "frame header has 14 bytes");
    check_refused(FRAME_AT + 11, 0x02, "sampled as cannot be decoded: 0x2 1x1 1x1");
    check_refused(FRAME_AT + 11, 0x51, "sampled as cannot be decoded: 5x1 1x1 1x1");
    check_refused(FRAME_AT + 14, 0x31, "sampled as cannot be decoded: 2x2 3x1 1x1");
    check_refused(FRAME_AT + 11, 0x44, "sampled as cannot be decoded: 4x4 1x1 1x1");
    check_refused(sizeof(head) - 10, 0, "its scan has no components");
    check_refused(sizeof(head) - 10, 5, "its scan has no components");
}

static void a_sampling_is_refused_where_the_library_cannot_decode_it_and_nowhere_else(void **state)
{
    (void)state;
    struct jpeg_header header;
    char why[WHY_BYTES];
    uint8_t bytes[JPEG_MAKER_BLANK_BYTES];
    size_t refused = 0;
    for (uint32_t i = 0; i < 2 * 16 * 16 * 16; i++) {
        uint8_t sampling[3];
        for (uint32_t k = 0; k < 3; k++) {
            uint32_t of = i >> (4 * k);
            sampling[k] = (uint8_t)(((of & 3) + 1) << 4 | ((of >> 2 & 3) + 1));
        }
        size_t size = jpeg_maker_blank(sampling, i >> 12 != 0, bytes);
        enum status status = parse(bytes, size, &header, why);
        refused += status != STATUS_OK;
        if ((status == STATUS_OK) != jpeg_maker_can_decode(bytes, size)) {
            fail_msg("%02x %02x %02x, %s", sampling[0], sampling[1], sampling[2], why);
        }
    }
    assert_in_range(refused, 1, 2 * 16 * 16 * 16 - 1);
}

static void an_end_marker_counts_anywhere(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0xD9, 1, 0xFF, 0xD9, 0, 0xFF};
    assert_true(jpeg_header_has_end(bytes, sizeof(bytes)));
    assert_true(jpeg_header_has_end(bytes + 2, 2));
    assert_false(jpeg_header_has_end(bytes, 3));
    assert_false(jpeg_header_has_end(bytes + 3, 3));
    assert_false(jpeg_header_has_end(bytes, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_read_up_to_its_first_scan),
        cmocka_unit_test(an_orientation_that_there_is_not_counts_as_none),
        cmocka_unit_test(what_cannot_be_decoded_is_refused_with_what_it_is),
        cmocka_unit_test(a_sampling_is_refused_where_the_library_cannot_decode_it_and_nowhere_else),
        cmocka_unit_test(an_end_marker_counts_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
