/* Tests of the format of packs: what is written is read, and nothing else is. */
#include "common/base/crc32c.h"
#include "worker/data/pack/pack_format.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define TRAIN ((size_t)2)
#define VAL   ((size_t)1)
#define COUNT (TRAIN + VAL)
#define TEXT  "[\"cat\",\"d\\\"og\"]"
#define INDEX ((size_t)PACK_ENTRY_BYTES * COUNT + sizeof(TEXT) - 1)
#define DATA  (3 * COUNT) // of images of one pixel

static const struct pack_image images[COUNT] = {{64, 3, 11, 0}, {67, 3, 22, 1}, {70, 3, 33, 1}};

static struct pack_header make(uint8_t ret_index[INDEX])
{
    for (size_t i = 0; i < COUNT; i++) {
        pack_entry_encode(&images[i], ret_index + PACK_ENTRY_BYTES * i);
    }
    memcpy(ret_index + (size_t)PACK_ENTRY_BYTES * COUNT, TEXT, sizeof(TEXT) - 1);
    return (struct pack_header){.kind = PACK_RAW,
                                .size = 1,
                                .class_count = 2,
                                .train_count = TRAIN,
                                .val_count = VAL,
                                .data_bytes = DATA,
                                .text_bytes = sizeof(TEXT) - 1,
                                .index_crc = crc32c(ret_index, INDEX)};
}

static enum status decode(const uint8_t bytes[PACK_HEADER_BYTES], uint64_t file_bytes,
                          struct pack_header *ret_header, char ret_why[PACK_WHY_BYTES])
{
    ret_why[0] = '\0';
    enum status status = pack_header_decode(bytes, file_bytes, ret_header, ret_why, PACK_WHY_BYTES);
    assert_int_equal(ret_why[0] != '\0', status != STATUS_OK);
    return status;
}

static void refuse(const struct pack_header *header, uint64_t file_bytes, const char *text)
{
    uint8_t bytes[PACK_HEADER_BYTES];
    struct pack_header again;
    char why[PACK_WHY_BYTES];
    pack_header_encode(header, bytes);
    assert_int_equal(decode(bytes, file_bytes, &again, why), STATUS_MALFORMED);
    if (strstr(why, text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, why);
    }
}

static void headers_are_written_as_documented_and_read(void **state)
{
    (void)state;
    uint8_t bytes[PACK_HEADER_BYTES], index[INDEX];
    char why[PACK_WHY_BYTES];
    struct pack_header header = make(index), again = {0};
    static const uint8_t begin[] = {'R', 'I', 'N', 'G', 'P', 'A', 'C', 'K', 1, 0, 0, 0, 0, 0, 0, 0,
                                    1,   0,   0,   0,   2,   0,   0,   0,   2, 0, 0, 0, 0, 0, 0, 0,
                                    1,   0,   0,   0,   0,   0,   0,   0,   9, 0, 0, 0, 0, 0, 0, 0};
    pack_header_encode(&header, bytes);
    assert_memory_equal(bytes, begin, sizeof(begin));
    assert_int_equal(pack_index_bytes(&header), INDEX);
    assert_int_equal(decode(bytes, PACK_HEADER_BYTES + DATA + INDEX, &again, why), STATUS_OK);
    assert_int_equal(again.kind, PACK_RAW);
    assert_int_equal(again.size, 1);
    assert_int_equal(again.class_count, 2);
    assert_int_equal(again.train_count, TRAIN);
    assert_int_equal(again.val_count, VAL);
    assert_int_equal(again.data_bytes, DATA);
    assert_int_equal(again.text_bytes, header.text_bytes);
    assert_int_equal(again.index_crc, header.index_crc);
}

static void every_flipped_bit_of_a_header_is_noticed(void **state)
{
    (void)state;
    uint8_t bytes[PACK_HEADER_BYTES], index[INDEX];
    char why[PACK_WHY_BYTES];
    struct pack_header header = make(index);
    pack_header_encode(&header, bytes);
    for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        enum status status = decode(bytes, PACK_HEADER_BYTES + DATA + INDEX, &header, why);
        bool is_version = bit / 8 >= 8 && bit / 8 < 12;
        assert_int_equal(status, is_version ? STATUS_UNSUPPORTED : STATUS_MALFORMED);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    bytes[8] = 2;
    assert_int_equal(decode(bytes, PACK_HEADER_BYTES + DATA + INDEX, &header, why),
                     STATUS_UNSUPPORTED);
    assert_string_equal(why, "it is of version 2, and this Ringside reads version 1");
}

static void files_of_another_size_are_refused(void **state)
{
    (void)state;
    uint8_t index[INDEX];
    struct pack_header header = make(index);
    static const uint64_t sizes[] = {0, 1, 63, 64, 72, 63 + DATA + INDEX, 65 + DATA + INDEX};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        refuse(&header, sizes[i], "it was cut short, or something was added");
    }
}

static void counts_that_no_pack_has_are_refused(void **state)
{
    (void)state;
    uint8_t index[INDEX];
    const struct pack_header sound = make(index);
    struct pack_header bad[11];
    for (size_t i = 0; i < 11; i++) {
        bad[i] = sound;
    }
    bad[0].train_count = 0;
    bad[1].val_count = 0;
    bad[2].train_count = UINT64_MAX;
    bad[3].val_count = UINT64_MAX / PACK_ENTRY_BYTES + 2; // times the size of an entry, it is small
    bad[4].class_count = 1;
    bad[5].class_count = PACK_CLASSES_MAX + 1;
    bad[6].size = 0;
    bad[7].size = PACK_SIZE_MAX + 1;
    bad[8].text_bytes = PACK_TEXT_BYTES + 1;
    bad[9].kind = PACK_KINDS;
    bad[10].train_count = (uint64_t)PACK_IMAGES_MAX + 1;
    for (size_t i = 0; i < 11; i++) {
        refuse(&bad[i], PACK_HEADER_BYTES + DATA + INDEX, "say what no pack has");
    }
    struct pack_header huge = sound;
    huge.train_count = PACK_IMAGES_MAX;
    refuse(&huge, PACK_HEADER_BYTES + DATA + INDEX, "cut short");
    huge = sound;
    huge.data_bytes = UINT64_MAX;
    refuse(&huge, PACK_HEADER_BYTES + DATA + INDEX, "cut short");
    refuse(&huge, PACK_HEADER_BYTES - 1 + INDEX, "cut short"); // where the sum overflows
}

static void check_images(const struct pack_image *found, const struct pack_image *expected,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(found[i].at, expected[i].at);
        assert_int_equal(found[i].bytes, expected[i].bytes);
        assert_int_equal(found[i].crc, expected[i].crc);
        assert_int_equal(found[i].label, expected[i].label);
    }
}

static void the_index_says_where_images_lie(void **state)
{
    (void)state;
    uint8_t index[INDEX];
    char why[PACK_WHY_BYTES] = "";
    struct pack_image found[TRAIN];
    struct pack_header header = make(index);
    assert_int_equal(pack_index_decode(&header, index, true, found, why, sizeof(why)), STATUS_OK);
    check_images(found, images, TRAIN);
    assert_int_equal(pack_index_decode(&header, index, false, found, why, sizeof(why)), STATUS_OK);
    check_images(found, images + TRAIN, VAL);
    assert_string_equal(why, "");
}

static void refuse_index(struct pack_header header, const uint8_t *index, const char *text)
{
    char why[PACK_WHY_BYTES] = "";
    struct pack_image found[TRAIN];
    assert_int_equal(pack_index_decode(&header, index, true, found, why, sizeof(why)),
                     STATUS_MALFORMED);
    if (strstr(why, text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, why);
    }
}

static void every_flipped_bit_of_an_index_is_noticed(void **state)
{
    (void)state;
    uint8_t index[INDEX];
    struct pack_header header = make(index);
    for (size_t bit = 0; bit < 8 * sizeof(index); bit++) {
        index[bit / 8] ^= (uint8_t)(1 << bit % 8);
        refuse_index(header, index, "its index, the last ");
        index[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

/* Whose checksum is right. */
static void an_index_that_cannot_be_is_refused(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint8_t value;
        const char *text;
    } cases[] = {
        {0, 4, "image 0 of 4 bytes and class 0"},
        {PACK_ENTRY_BYTES + 8, 2, "image 1 of 3 bytes and class 2"},
        {(size_t)2 * PACK_ENTRY_BYTES + 11, 255, "image 2 of 3 bytes and class 4278190081"},
        {(size_t)3 * PACK_ENTRY_BYTES, '(', "no list of 2 names"},
    };
    uint8_t index[INDEX];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pack_header header = make(index);
        index[cases[i].at] = cases[i].value;
        header.index_crc = crc32c(index, INDEX);
        refuse_index(header, index, cases[i].text);
    }
    struct pack_header header = make(index);
    header.data_bytes--;
    refuse_index(header, index, "have 9 bytes, and the file has room for 8");
    header = make(index);
    header.kind = PACK_JPEG;
    memset(index, 0, 4);
    header.index_crc = crc32c(index, INDEX);
    refuse_index(header, index, "image 0 of 0 bytes");
}

static void names_of_classes_are_a_list_of_strings(void **state)
{
    (void)state;
    static const char *const sound[] = {"[\"a\",\"b\"]", "[\"\",\"\\\\\"]",
                                        "[\"\xc3\xa9\\t\",\"\\\"\"]"};
    static const char *const bad[] = {"",
                                      "[",
                                      "[\"a\"]",
                                      "[\"a\",\"b\"",
                                      "[\"a\",\"b\"] ",
                                      "[\"a\" \"b\"]",
                                      "[\"a\",\"b",
                                      "[\"a\",\"b\\",
                                      "[\"a\",\"b\\n\"]",
                                      "[\"a\",\"\xff\"]",
                                      "[\"a\",\"b\",\"c\"]",
                                      "[\"a\",\"\n\"]",
                                      "[\"a\",1]"};
    for (size_t i = 0; i < sizeof(sound) / sizeof(sound[0]); i++) {
        assert_true(pack_text_is_sound(sound[i], strlen(sound[i]), 2));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(pack_text_is_sound(bad[i], strlen(bad[i]), 2));
    }
    assert_false(pack_text_is_sound("[\"a\",\"\0\"]", 9, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_written_as_documented_and_read),
        cmocka_unit_test(every_flipped_bit_of_a_header_is_noticed),
        cmocka_unit_test(files_of_another_size_are_refused),
        cmocka_unit_test(counts_that_no_pack_has_are_refused),
        cmocka_unit_test(the_index_says_where_images_lie),
        cmocka_unit_test(every_flipped_bit_of_an_index_is_noticed),
        cmocka_unit_test(an_index_that_cannot_be_is_refused),
        cmocka_unit_test(names_of_classes_are_a_list_of_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
