/* Tests of MNIST's files: good ones, bad ones, and the real ones. */
#include "tests/support/common/temp_folder.h"
#include "tests/support/data/packed.h"
#include "tests/support/data/real_data.h"
#include "tests/support/data/refusal.h"
#include "worker/data/dataset.h"
#include "worker/data/idx.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define COUNT         3 // images of the files written here
#define IMAGE_BYTES   784
#define IMAGES_HEADER 16
#define LABELS_HEADER 8
#define IMAGES_SIZE   (IMAGES_HEADER + COUNT * IMAGE_BYTES)
#define LABELS_SIZE   (LABELS_HEADER + COUNT)
#define PACKED_BYTES  8192

#define IMAGES_NAME "train-images-idx3-ubyte"
#define LABELS_NAME "train-labels-idx1-ubyte"

static uint8_t pixel_of(uint32_t image, uint32_t i)
{
    return (uint8_t)(i * 5 + image * 77);
}

static void put_u32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

static void make_images(uint8_t bytes[IMAGES_SIZE])
{
    put_u32(bytes, 0x00000803);
    put_u32(bytes + 4, COUNT);
    put_u32(bytes + 8, 28);
    put_u32(bytes + 12, 28);
    for (uint32_t image = 0; image < COUNT; image++) {
        for (uint32_t i = 0; i < IMAGE_BYTES; i++) {
            bytes[IMAGES_HEADER + image * IMAGE_BYTES + i] = pixel_of(image, i);
        }
    }
}

static void make_labels(uint8_t bytes[LABELS_SIZE])
{
    put_u32(bytes, 0x00000801);
    put_u32(bytes + 4, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        bytes[LABELS_HEADER + i] = (uint8_t)(9 - i);
    }
}

/* A folder with the two files of the training set, as the test wants them. */
struct pair {
    char *folder;
    uint8_t images[IMAGES_SIZE], labels[LABELS_SIZE];
};

static void pair_init(struct pair *pair)
{
    pair->folder = temp_folder_create();
    make_images(pair->images);
    make_labels(pair->labels);
}

static void pair_write(const struct pair *pair)
{
    temp_folder_write(pair->folder, IMAGES_NAME, pair->images, IMAGES_SIZE);
    temp_folder_write(pair->folder, LABELS_NAME, pair->labels, LABELS_SIZE);
}

static void pair_finish(struct pair *pair)
{
    temp_folder_destroy(pair->folder);
}

static void check_read(const struct pair *pair, const char *name, const struct byte_format *format)
{
    char data[512];
    snprintf(data, sizeof(data), "%s:%s", name, pair->folder);
    struct dataset *dataset;
    assert_int_equal(
        dataset_open(data, &(struct dataset_options){.seed = 1, .split = DATASET_TRAIN}, &dataset),
        STATUS_OK);
    assert_int_equal(dataset->sample_count, COUNT);
    assert_int_equal(dataset->sample.channels, 1);
    for (uint32_t image = 0; image < COUNT; image++) {
        float pixels[IMAGE_BYTES];
        uint32_t label;
        assert_int_equal(dataset_read(dataset, image, pixels, &label), STATUS_OK);
        assert_int_equal(label, 9 - image);
        for (uint32_t i = 0; i < IMAGE_BYTES; i++) {
            double expected = (pixel_of(image, i) / 255.0 - (double)format->mean[0]) /
                              (double)format->deviation[0];
            assert_true(fabs((double)pixels[i] - expected) < 1e-5);
        }
    }
    dataset_close(dataset);
}

static void plain_files_are_read_by_both_datasets(void **state)
{
    (void)state;
    struct pair pair;
    pair_init(&pair);
    pair_write(&pair);
    check_read(&pair, "mnist", &idx_mnist_format);
    check_read(&pair, "fashion-mnist", &idx_fashion_mnist_format);
    pair_finish(&pair);
}

static void files_may_be_packed_and_named_as_mirrors_name_them(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"},
        {"train-images.idx3-ubyte.gz", "train-labels.idx1-ubyte"},
        {"train-images.idx3-ubyte", "train-labels.idx1-ubyte.gz"},
        // What a browser did to them on the way shows in the content, not in the name.
        {"train-images-idx3-ubyte", "train-labels-idx1-ubyte.gz"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct pair pair;
        pair_init(&pair);
        uint8_t packed[PACKED_BYTES];
        size_t size = packed_write(pair.images, IMAGES_SIZE, packed, sizeof(packed));
        temp_folder_write(pair.folder, names[i][0], packed, size);
        temp_folder_write(pair.folder, names[i][1], pair.labels, LABELS_SIZE);
        check_read(&pair, "mnist", &idx_mnist_format);
        pair_finish(&pair);
    }
}

static void check_refused(const struct pair *pair, const char *file, const char *reason)
{
    refusal_check("fashion-mnist", pair->folder, DATASET_TRAIN, STATUS_MALFORMED,
                  (const char *[3]){file, reason, "github.com/zalandoresearch/fashion-mnist"});
}

static void a_missing_file_is_named_with_where_to_get_it(void **state)
{
    (void)state;
    struct pair pair;
    pair_init(&pair);
    refusal_check("mnist", pair.folder, DATASET_TRAIN, STATUS_IO,
                  (const char *[3]){"/" IMAGES_NAME, "No such file", "--data mnist:DIR"});
    temp_folder_write(pair.folder, IMAGES_NAME, pair.images, IMAGES_SIZE);
    refusal_check("mnist", pair.folder, DATASET_TRAIN, STATUS_IO,
                  (const char *[3]){"/" LABELS_NAME, "No such file", "--data mnist:DIR"});
    refusal_check("mnist", pair.folder, DATASET_TEST, STATUS_IO,
                  (const char *[3]){"/t10k-images-idx3-ubyte", "No such file", "mnist/"});
    pair_finish(&pair);
}

static void a_wrong_header_is_refused(void **state)
{
    (void)state;
    static const struct {
        bool is_labels;
        size_t at;
        uint32_t value;
        const char *reason;
    } cases[] = {
        {false, 0, 0x00000801, "magic number is 0x00000801; expected was 0x00000803"},
        {false, 0, 0x3C21444F, "magic number is 0x3C21444F"}, // "<!DO": a page in place of a file
        {false, 4, 0, "claims 0 values"},
        {false, 4, COUNT + 1, "it has 2368 bytes; expected were 3152"},
        {false, 4, COUNT - 1, "it has 2368 bytes; expected were 1584"},
        {false, 4, UINT32_MAX, "claims 4294967295 values"},
        {false, 4, IDX_COUNT_MAX + 1, "expected were 1 to 1000000"},
        {false, 4, IDX_COUNT_MAX, "expected were 784000016"},
        {false, 8, 27, "27 x 28 pixels; expected were 28 x 28"},
        {false, 12, UINT32_MAX, "28 x 4294967295 pixels"},
        {true, 0, 0x00000803, "magic number is 0x00000803; expected was 0x00000801"},
        {true, 4, COUNT + 1, "it has 11 bytes; expected were 12"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pair pair;
        pair_init(&pair);
        put_u32((cases[i].is_labels ? pair.labels : pair.images) + cases[i].at, cases[i].value);
        pair_write(&pair);
        check_refused(&pair, cases[i].is_labels ? LABELS_NAME : IMAGES_NAME, cases[i].reason);
        pair_finish(&pair);
    }
}

static void every_shorter_file_is_refused(void **state)
{
    (void)state;
    struct pair pair;
    pair_init(&pair);
    pair_write(&pair);
    for (size_t size = 0; size < IMAGES_SIZE; size += size < 32 ? 1 : 111) {
        temp_folder_write(pair.folder, IMAGES_NAME, pair.images, size);
        check_refused(&pair, IMAGES_NAME, "bytes");
    }
    temp_folder_write(pair.folder, IMAGES_NAME, pair.images, IMAGES_SIZE);
    for (size_t size = 0; size < LABELS_SIZE; size++) {
        temp_folder_write(pair.folder, LABELS_NAME, pair.labels, size);
        check_refused(&pair, LABELS_NAME, "bytes");
    }
    pair_finish(&pair);
}

static void a_label_out_of_range_is_refused_with_its_record(void **state)
{
    (void)state;
    struct pair pair;
    pair_init(&pair);
    pair.labels[LABELS_HEADER + 2] = 10;
    pair_write(&pair);
    check_refused(&pair, LABELS_NAME, "record 2 (from 0) has label 10; labels are below 10");
    pair_finish(&pair);
}

static void files_that_are_not_of_one_set_are_refused(void **state)
{
    (void)state;
    struct pair pair;
    pair_init(&pair);
    pair_write(&pair);
    put_u32(pair.labels + 4, COUNT - 1);
    temp_folder_write(pair.folder, LABELS_NAME, pair.labels, LABELS_SIZE - 1);
    check_refused(&pair, LABELS_NAME, "it has 2 labels for 3 images");
    pair_finish(&pair);
}

static void every_shorter_packed_file_is_refused(void **state)
{
    (void)state;
    struct pair pair;
    pair_init(&pair);
    pair_write(&pair);
    uint8_t packed[PACKED_BYTES];
    size_t whole = packed_write(pair.images, IMAGES_SIZE, packed, sizeof(packed));
    for (size_t size = 2; size < whole; size += size < 40 || size + 40 > whole ? 1 : 17) {
        temp_folder_write(pair.folder, IMAGES_NAME, packed, size);
        check_refused(&pair, IMAGES_NAME, "gzip: ");
    }
    pair_finish(&pair);
}

static void a_packed_file_with_a_wrong_checksum_is_refused(void **state)
{
    (void)state;
    struct pair pair;
    pair_init(&pair);
    pair_write(&pair);
    uint8_t packed[PACKED_BYTES];
    size_t size = packed_write(pair.images, IMAGES_SIZE, packed, sizeof(packed));
    packed[size - 6] ^= 1; // in the checksum, before the length
    temp_folder_write(pair.folder, IMAGES_NAME, packed, size);
    check_refused(&pair, IMAGES_NAME, "incorrect data check");
    pair_finish(&pair);
}

static void a_packed_file_cannot_claim_more_than_it_can_hold(void **state)
{
    (void)state;
    struct pair pair;
    pair_init(&pair);
    pair_write(&pair);
    put_u32(pair.images + 4, IDX_COUNT_MAX);
    uint8_t packed[PACKED_BYTES];
    size_t size = packed_write(pair.images, IMAGES_HEADER, packed, sizeof(packed));
    temp_folder_write(pair.folder, IMAGES_NAME, packed, size);
    check_refused(&pair, IMAGES_NAME, "cannot hold the 784000016");
    pair_finish(&pair);
}

static void the_real_training_images_are_balanced_and_normalised(void **state)
{
    (void)state;
    struct dataset *dataset = real_data_open("fashion-mnist", DATASET_TRAIN);
    real_data_check(dataset, 60000);
    dataset_close(dataset);
}

static void the_real_test_images_are_as_many_as_they_should(void **state)
{
    (void)state;
    struct dataset *dataset = real_data_open("fashion-mnist", DATASET_TEST);
    assert_int_equal(dataset->sample_count, 10000);
    dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_files_are_read_by_both_datasets),
        cmocka_unit_test(files_may_be_packed_and_named_as_mirrors_name_them),
        cmocka_unit_test(a_missing_file_is_named_with_where_to_get_it),
        cmocka_unit_test(a_wrong_header_is_refused),
        cmocka_unit_test(every_shorter_file_is_refused),
        cmocka_unit_test(a_label_out_of_range_is_refused_with_its_record),
        cmocka_unit_test(files_that_are_not_of_one_set_are_refused),
        cmocka_unit_test(every_shorter_packed_file_is_refused),
        cmocka_unit_test(a_packed_file_with_a_wrong_checksum_is_refused),
        cmocka_unit_test(a_packed_file_cannot_claim_more_than_it_can_hold),
        cmocka_unit_test(the_real_training_images_are_balanced_and_normalised),
        cmocka_unit_test(the_real_test_images_are_as_many_as_they_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
