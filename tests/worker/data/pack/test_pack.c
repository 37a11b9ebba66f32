/* Tests of the dataset `pack`: what it reads, and all that can be wrong with a file. */
#include "common/base/crc32c.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/data/refusal.h"
#include "worker/data/dataset.h"
#include "worker/data/pack/pack_format.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE       4
#define PLANE      ((size_t)SIZE * SIZE)
#define IMAGE      ((size_t)PACK_CHANNELS * SIZE * SIZE)
#define TRAIN      3
#define COUNT      ((size_t)5)
#define TEXT       "[\"cat\",\"dog\"]"
#define INDEX      ((size_t)PACK_ENTRY_BYTES * COUNT + sizeof(TEXT) - 1)
#define DATA       ((size_t)IMAGE * COUNT)
#define FILE_BYTES (PACK_HEADER_BYTES + DATA + INDEX)

struct pack_test {
    char *folder;
    char path[512];
    uint8_t bytes[FILE_BYTES];
};

/* Byte k of image i. */
static uint8_t byte_of(size_t i, size_t k)
{
    return (uint8_t)(50 * i + k);
}

static void save(const struct pack_test *test, size_t size)
{
    temp_folder_write(test->folder, "a.rpk", test->bytes, size);
}

static void fill(uint8_t *bytes)
{
    uint8_t *data = bytes + PACK_HEADER_BYTES, *index = data + DATA;
    struct pack_header header = {.kind = PACK_RAW,
                                 .size = SIZE,
                                 .class_count = 2,
                                 .train_count = TRAIN,
                                 .val_count = COUNT - TRAIN,
                                 .data_bytes = DATA,
                                 .text_bytes = sizeof(TEXT) - 1};
    for (size_t i = 0; i < COUNT; i++) {
        uint8_t *image = data + IMAGE * i;
        for (size_t k = 0; k < IMAGE; k++) {
            image[k] = byte_of(i, k);
        }
        const struct pack_image entry = {
            .bytes = IMAGE, .crc = crc32c(image, IMAGE), .label = i % 2};
        pack_entry_encode(&entry, index + PACK_ENTRY_BYTES * i);
    }
    memcpy(index + (size_t)PACK_ENTRY_BYTES * COUNT, TEXT, sizeof(TEXT) - 1);
    header.index_crc = crc32c(index, INDEX);
    pack_header_encode(&header, bytes);
}

static int set_up(void **state)
{
    struct pack_test *test = calloc(1, sizeof(*test));
    assert_non_null(test);
    test->folder = temp_folder_create();
    snprintf(test->path, sizeof(test->path), "%s/a.rpk", test->folder);
    fill(test->bytes);
    save(test, FILE_BYTES);
    *state = test;
    return 0;
}

static int tear_down(void **state)
{
    struct pack_test *test = *state;
    temp_folder_destroy(test->folder);
    free(test);
    return 0;
}

static struct dataset *open_pack(const struct pack_test *test, enum dataset_split split,
                                 uint32_t size)
{
    char data[600];
    struct dataset *dataset = NULL;
    struct dataset_options options = {
        .seed = 1, .split = split, .image_size = size, .tells = size > SIZE};
    snprintf(data, sizeof(data), "pack:%s", test->path);
    assert_int_equal(dataset_open(data, &options, &dataset), STATUS_OK);
    return dataset;
}

static void images_are_read_as_they_were_packed(void **state)
{
    const struct pack_test *test = *state;
    for (int split = 0; split < 2; split++) {
        struct dataset *dataset = open_pack(test, (enum dataset_split)split, 0);
        size_t before = split == DATASET_TRAIN ? 0 : TRAIN;
        assert_int_equal(dataset->sample_count, split == DATASET_TRAIN ? TRAIN : COUNT - TRAIN);
        assert_int_equal(dataset->class_count, 2);
        assert_string_equal(dataset->class_text, TEXT);
        assert_int_equal(dataset->sample.rows, SIZE);
        for (size_t i = 0; i < dataset->sample_count; i++) {
            uint8_t bytes[IMAGE];
            float pixels[IMAGE], converted[IMAGE];
            uint32_t label;
            assert_int_equal(dataset_read_bytes(dataset, i, bytes, &label), STATUS_OK);
            assert_int_equal(label, (before + i) % 2);
            for (size_t k = 0; k < IMAGE; k++) {
                assert_int_equal(bytes[k], byte_of(before + i, k));
            }
            assert_int_equal(dataset_read(dataset, i, pixels, &label), STATUS_OK);
            dataset_convert(dataset, bytes, converted);
            assert_memory_equal(pixels, converted, sizeof(pixels));
        }
        dataset_close(dataset);
    }
}

/* Each pixel of the smaller image lies between those that it is made of. */
static void images_are_scaled_to_the_size_of_a_job(void **state)
{
    const struct pack_test *test = *state;
    struct dataset *dataset = open_pack(test, DATASET_TRAIN, SIZE / 2);
    uint8_t bytes[IMAGE / 4];
    uint32_t label;
    assert_int_equal(dataset_read_bytes(dataset, 1, bytes, &label), STATUS_OK);
    assert_int_equal(label, 1);
    for (size_t c = 0; c < PACK_CHANNELS; c++) {
        const uint8_t *plane = bytes + c * (PLANE / 4);
        assert_in_range(plane[0], byte_of(1, c * PLANE), byte_of(1, c * PLANE + 10));
        assert_true(plane[0] < plane[1] && plane[1] < plane[2] && plane[2] < plane[3]);
    }
    dataset_close(dataset);
}

static void enlarging_is_told(void **state)
{
    const struct pack_test *test = *state;
    captured_log_begin();
    struct dataset *dataset = open_pack(test, DATASET_TRAIN, 2 * SIZE);
    const char *log = captured_log_end();
    assert_non_null(strstr(log, "with 4 x 4 pixels, and enlarged to 8: pack them with --size 8"));
    dataset_close(dataset);
}

static void refuse(const struct pack_test *test, enum status status, const char *text)
{
    refusal_check("pack", test->path, DATASET_TRAIN, status,
                  (const char *const[3]){test->path, text, NULL});
}

static void what_is_no_pack_is_refused(void **state)
{
    struct pack_test *test = *state;
    save(test, 0);
    refuse(test, STATUS_MALFORMED, "it is empty; copy it once more, or pack the images again");
    save(test, PACK_HEADER_BYTES - 1);
    refuse(test, STATUS_MALFORMED, "it is too short to be one");
    test->bytes[8]++;
    save(test, FILE_BYTES);
    refuse(test, STATUS_UNSUPPORTED,
           "it is of version 2, and this Ringside reads version 1; pack its images again");
    test->bytes[0]++;
    save(test, FILE_BYTES);
    refuse(test, STATUS_MALFORMED, "it does not begin as a pack does");
    refusal_check("pack", test->folder, DATASET_TEST, STATUS_INVALID,
                  (const char *const[3]){test->folder, "is no file", "--data images:DIR"});
    refusal_check("pack", "/nowhere", DATASET_TEST, STATUS_IO,
                  (const char *const[3]){"/nowhere", "No such file", "pack:FILE"});
    refusal_check("pack", "/dev/null", DATASET_TEST, STATUS_INVALID,
                  (const char *const[3]){"/dev/null is no file", NULL, NULL});
    refusal_check("pack", "", DATASET_TEST, STATUS_INVALID,
                  (const char *const[3]){"--data: pack needs its file: --data pack:FILE"});
}

static void a_file_that_was_cut_short_is_refused(void **state)
{
    const struct pack_test *test = *state;
    for (size_t size = PACK_HEADER_BYTES; size < FILE_BYTES; size += 7) {
        save(test, size);
        refuse(test, STATUS_MALFORMED, "it was cut short, or something was added");
    }
}

static void a_damaged_index_is_refused(void **state)
{
    struct pack_test *test = *state;
    for (size_t at = PACK_HEADER_BYTES + DATA; at < FILE_BYTES; at += 5) {
        test->bytes[at] ^= 4;
        save(test, FILE_BYTES);
        refuse(test, STATUS_MALFORMED, "is damaged: its checksum differs; copy it once more");
        test->bytes[at] ^= 4;
    }
}

/* Reading image 1 fails; the log has the text, and the others can be read. */
static void check_damage(const struct dataset *dataset, const char *text)
{
    uint8_t bytes[IMAGE];
    float pixels[IMAGE];
    uint32_t label;
    captured_log_begin();
    enum status first = dataset_read_bytes(dataset, 1, bytes, &label);
    enum status second = dataset_read(dataset, 1, pixels, &label);
    const char *log = captured_log_end();
    assert_int_equal(first, STATUS_IO);
    assert_int_equal(second, STATUS_IO);
    if (strstr(log, text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, log);
    }
    assert_int_equal(dataset_read_bytes(dataset, 0, bytes, &label), STATUS_OK);
}

static void a_damaged_image_is_named_when_it_is_read(void **state)
{
    struct pack_test *test = *state;
    for (size_t k = 0; k < IMAGE; k++) {
        size_t at = PACK_HEADER_BYTES + IMAGE + k;
        test->bytes[at] ^= 1;
        save(test, FILE_BYTES);
        struct dataset *dataset = open_pack(test, DATASET_TRAIN, k % 2 == 0 ? 0 : SIZE);
        check_damage(dataset, "image 1 for training in ");
        dataset_close(dataset);
        test->bytes[at] ^= 1;
    }
}

static void a_file_that_gets_shorter_while_it_is_read_ends_no_process(void **state)
{
    const struct pack_test *test = *state;
    struct dataset *dataset = open_pack(test, DATASET_TRAIN, 0);
    assert_int_equal(truncate(test->path, PACK_HEADER_BYTES + IMAGE + 1), 0);
    check_damage(dataset, "has changed since the job began");
    dataset_close(dataset);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(images_are_read_as_they_were_packed),
        TEST(images_are_scaled_to_the_size_of_a_job),
        TEST(enlarging_is_told),
        TEST(what_is_no_pack_is_refused),
        TEST(a_file_that_was_cut_short_is_refused),
        TEST(a_damaged_index_is_refused),
        TEST(a_damaged_image_is_named_when_it_is_read),
        TEST(a_file_that_gets_shorter_while_it_is_read_ends_no_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
