/* Tests of the dataset npz: arrays are images and labels, whatever their names and forms, and what
 * cannot be used is said with what to save in its place. */
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/data/npz_maker.h"
#include "tests/support/data/refusal.h"
#include "worker/data/dataset.h"
#include "worker/data/resized.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT 40 // images for training
#define TESTS 3
#define ROWS  4
#define WIDTH 5
#define PLANE ((size_t)ROWS * WIDTH)
#define BYTES (3 * PLANE)

struct npz_test {
    char *folder;
    char path[512], data[520];
    struct npz_maker maker;
    uint8_t images[COUNT * BYTES]; // (N, H, W, C)
    uint8_t labels[COUNT];
};

static int set_up(void **state)
{
    struct npz_test *test = calloc(1, sizeof(*test));
    assert_non_null(test);
    test->folder = temp_folder_create();
    snprintf(test->path, sizeof(test->path), "%s/a.npz", test->folder);
    snprintf(test->data, sizeof(test->data), "npz:%s", test->path);
    for (size_t i = 0; i < sizeof(test->images); i++) {
        test->images[i] = (uint8_t)(i * i / 11 + i);
    }
    for (size_t i = 0; i < COUNT; i++) {
        test->labels[i] = (uint8_t)(i % 4 == 3 ? 0 : i % 4); // twice as many of 0
    }
    *state = test;
    return 0;
}

static int tear_down(void **state)
{
    struct npz_test *test = *state;
    temp_folder_destroy(test->folder);
    free(test);
    return 0;
}

static void write_file(struct npz_test *test)
{
    npz_maker_finish(&test->maker);
    temp_folder_write(test->folder, "a.npz", test->maker.bytes, test->maker.size);
}

static struct dataset *open_split(const struct npz_test *test, enum dataset_split split,
                                  uint64_t seed)
{
    struct dataset *dataset = NULL;
    const struct dataset_options options = {.seed = seed, .split = split, .tells = true};
    captured_log_begin();
    enum status status = dataset_open(test->data, &options, &dataset);
    const char *log = captured_log_end();
    if (status != STATUS_OK) {
        fail_msg("%s: %s", status_text(status), log);
    }
    return dataset;
}

/* Checks a sample, whose place among the images is `place`. */
static void check_sample(const struct npz_test *test, const struct dataset *dataset, uint64_t index,
                         size_t place, uint32_t channels)
{
    uint8_t bytes[BYTES];
    float pixels[BYTES];
    uint32_t labels[2];
    struct pixels_source source;
    assert_true(dataset_describe(dataset, &source));
    assert_int_equal(dataset_read_bytes(dataset, index, bytes, &labels[0]), STATUS_OK);
    assert_int_equal(dataset_read(dataset, index, pixels, &labels[1]), STATUS_OK);
    assert_int_equal(labels[0], test->labels[place]);
    assert_int_equal(labels[1], test->labels[place]);
    for (uint32_t c = 0; c < channels; c++) {
        for (size_t i = 0; i < PLANE; i++) {
            uint8_t byte = test->images[(place * PLANE + i) * channels + c];
            assert_int_equal(bytes[c * PLANE + i], byte);
            assert_true(pixels[c * PLANE + i] == (float)byte * source.scale[c] + source.shift[c]);
        }
    }
}

/* Mean and deviation of a channel of all training images, to four digits. */
static void check_figures(const struct npz_test *test, const struct dataset *dataset,
                          uint32_t channels)
{
    struct pixels_source source;
    assert_true(dataset_describe(dataset, &source));
    for (uint32_t c = 0; c < channels; c++) {
        double sum = 0, squares = 0, count = (double)(COUNT * PLANE);
        for (size_t i = 0; i < COUNT * PLANE; i++) {
            double share = test->images[i * channels + c] / 255.0;
            sum += share;
            squares += share * share;
        }
        double mean = sum / count, deviation = sqrt(squares / count - mean * mean);
        double scale = 255 * (double)source.scale[c];
        assert_true(fabs(1 / scale - deviation) < 6e-5);
        assert_true(fabs(-(double)source.shift[c] / scale - mean) < 6e-5);
    }
}

static const char *shape_of(size_t count, uint32_t channels, char ret_shape[64])
{
    snprintf(ret_shape, 64, channels == 0 ? "(%zu, %d, %d)" : "(%zu, %d, %d, %u)", count, ROWS,
             WIDTH, channels);
    return ret_shape;
}

/* Both splits, of which the tests are the first of the training images. */
static void add_all(struct npz_test *test, const char *const names[4], uint32_t channels)
{
    char shape[64];
    size_t bytes = PLANE * (channels == 3 ? 3 : 1);
    npz_maker_add_array(&test->maker, names[2], "|u1", shape_of(TESTS, channels, shape),
                        test->images, TESTS * bytes);
    npz_maker_add_array(&test->maker, names[3], "|u1", "(3,)", test->labels, TESTS);
    npz_maker_add_array(&test->maker, names[0], "|u1", shape_of(COUNT, channels, shape),
                        test->images, COUNT * bytes);
    npz_maker_add_array(&test->maker, names[1], "|u1", "(40, 1)", test->labels, COUNT);
}

static void check_split(const struct npz_test *test, enum dataset_split split, size_t count,
                        uint32_t channels)
{
    struct dataset *dataset = open_split(test, split, 1);
    assert_int_equal(dataset->sample_count, count);
    assert_int_equal(dataset->class_count, 3);
    assert_int_equal(dataset->sample.channels, channels);
    assert_int_equal(dataset->sample.rows, ROWS);
    assert_int_equal(dataset->sample.columns, WIDTH);
    for (uint64_t i = 0; i < count; i++) {
        check_sample(test, dataset, i, i, channels);
    }
    check_figures(test, dataset, channels);
    dataset_close(dataset);
}

static void grey_and_colour_are_read_stored_and_deflated_with_both_sets_of_names(void **state)
{
    struct npz_test *test = *state;
    static const char *const names[2][4] = {{"images", "labels", "test_images", "test_labels"},
                                            {"x_train", "y_train", "x_test", "y_test"}};
    static const uint32_t channels[] = {0, 1, 3}; // 0: the shape has none
    for (size_t i = 0; i < 12; i++) {
        test->maker = (struct npz_maker){.is_deflated = i % 2 == 1, .is_zip64 = i % 4 == 2};
        add_all(test, names[i / 6], channels[i % 3]);
        write_file(test);
        uint32_t expected = channels[i % 3] == 3 ? 3 : 1;
        check_split(test, DATASET_TRAIN, COUNT, expected);
        check_split(test, DATASET_TEST, TESTS, expected);
    }
}

static void labels_may_be_whole_numbers_of_any_size(void **state)
{
    struct npz_test *test = *state;
    static const char *const types[] = {"|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8"};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        size_t bytes = (size_t)(types[i][2] - '0');
        uint8_t items[8 * COUNT] = {0};
        char shape[64];
        for (size_t k = 0; k < COUNT; k++) {
            items[k * bytes] = test->labels[k];
        }
        test->maker = (struct npz_maker){0};
        npz_maker_add_array(&test->maker, "images", "|u1", shape_of(COUNT, 0, shape), test->images,
                            COUNT * PLANE);
        npz_maker_add_array(&test->maker, "labels", types[i], "(40,)", items, COUNT * bytes);
        npz_maker_add_array(&test->maker, "test_images", "|u1", shape_of(TESTS, 0, shape),
                            test->images, TESTS * PLANE);
        npz_maker_add_array(&test->maker, "test_labels", types[i], "(3,)", items, TESTS * bytes);
        write_file(test);
        check_split(test, DATASET_TRAIN, COUNT, 1);
    }
}

/* Which images a split has, by their places; they are in their order. */
static void find_places(const struct npz_test *test, enum dataset_split split, uint64_t seed,
                        bool ret_has[COUNT])
{
    struct dataset *dataset = open_split(test, split, seed);
    size_t place = 0;
    memset(ret_has, 0, COUNT * sizeof(bool));
    for (uint64_t i = 0; i < dataset->sample_count; i++, place++) {
        uint8_t bytes[BYTES];
        uint32_t label;
        assert_int_equal(dataset_read_bytes(dataset, i, bytes, &label), STATUS_OK);
        while (place < COUNT && memcmp(bytes, test->images + place * PLANE, PLANE) != 0) {
            place++;
        }
        assert_in_range(place, 0, COUNT - 1);
        ret_has[place] = true;
        check_sample(test, dataset, i, place, 1);
    }
    dataset_close(dataset);
}

static void without_images_for_tests_a_tenth_of_each_class_is_held_back(void **state)
{
    struct npz_test *test = *state;
    char shape[64];
    bool train[COUNT], held[2][COUNT];
    npz_maker_add_array(&test->maker, "images", "|u1", shape_of(COUNT, 0, shape), test->images,
                        COUNT * PLANE);
    npz_maker_add_array(&test->maker, "labels", "|u1", "(40,)", test->labels, COUNT);
    write_file(test);
    for (uint64_t seed = 0; seed < 2; seed++) {
        uint32_t counts[3] = {0};
        find_places(test, DATASET_TRAIN, seed, train);
        find_places(test, DATASET_TEST, seed, held[seed]);
        for (size_t i = 0; i < COUNT; i++) {
            assert_true(train[i] != held[seed][i]);
            counts[test->labels[i]] += held[seed][i];
        }
        assert_int_equal(counts[0], 2); // of 20
        assert_int_equal(counts[1], 1); // of 10
        assert_int_equal(counts[2], 1);
    }
    assert_memory_not_equal(held[0], held[1], sizeof(held[0]));
}

/* A file with these arrays, and what is said of it. */
struct bad {
    const char *image_type, *image_shape;
    size_t image_bytes;
    const char *label_type, *label_shape;
    size_t label_bytes;
    const char *why;
};

static void arrays_that_cannot_be_used_are_refused_with_what_to_save(void **state)
{
    struct npz_test *test = *state;
    static const struct bad cases[] = {
        {"<f4", "(2, 4, 5)", 160, "|u1", "(2,)", 2, "save images.astype(\"uint8\")"},
        {"|i1", "(2, 4, 5)", 40, "|u1", "(2,)", 2, "is of type |i1; images are bytes"},
        {"|u1", "(2, 3, 4, 5)", 120, "|u1", "(2,)", 2, "by .transpose(0, 2, 3, 1)"},
        {"|u1", "(2, 4, 5, 2)", 80, "|u1", "(2,)", 2, "has the shape (2, 4, 5, 2)"},
        {"|u1", "(2, 20)", 40, "|u1", "(2,)", 2, "has the shape (2, 20); images are (N, H, W)"},
        {"|u1", "(0, 4, 5)", 0, "|u1", "(0,)", 0, "has the shape (0, 4, 5)"},
        {"|u1", "(1, 1, 1025)", 1025, "|u1", "(1,)", 1, "1 to 1024 rows and columns"},
        {"|u1", "(2, 4, 5)", 40, "<f8", "(2,)", 16, "save labels.astype(\"int64\")"},
        {"|u1", "(2, 4, 5)", 40, ">i4", "(2,)", 8, "is of type >i4; labels are whole numbers"},
        {"|u1", "(2, 4, 5)", 40, "|u1", "(2, 10)", 20, ".argmax(axis=1)"},
        {"|u1", "(2, 4, 5)", 40, "|u1", "(3,)", 3, "has 3 labels for 2 images"},
        {"|u1", "(2, 4, 5)", 41, "|u1", "(2,)", 2, "claims (2, 4, 5) of |u1, but 41 bytes"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct bad *bad = &cases[i];
        test->maker = (struct npz_maker){0};
        npz_maker_add_array(&test->maker, "images", bad->image_type, bad->image_shape, test->images,
                            bad->image_bytes);
        npz_maker_add_array(&test->maker, "labels", bad->label_type, bad->label_shape, test->labels,
                            bad->label_bytes);
        write_file(test);
        struct dataset *dataset;
        captured_log_begin();
        enum status status = dataset_open(test->data, &(struct dataset_options){0}, &dataset);
        const char *log = captured_log_end();
        if (status == STATUS_OK || strstr(log, bad->why) == NULL || strstr(log, "a.npz") == NULL) {
            fail_msg("%s, \"%s\" instead of \"%s\"", status_text(status), log, bad->why);
        }
    }
}

static void check_refused(struct npz_test *test, enum dataset_split split, enum status status,
                          const char *text)
{
    write_file(test);
    refusal_check("npz", test->path, split, status, (const char *const[3]){"a.npz", text, NULL});
    test->maker = (struct npz_maker){0};
}

static void add_images(struct npz_test *test, const char *name, const char *labels, size_t count,
                       const uint8_t *label_items)
{
    char shape[64], label_shape[64];
    snprintf(label_shape, sizeof(label_shape), "(%zu,)", count);
    npz_maker_add_array(&test->maker, name, "|u1", shape_of(count, 0, shape), test->images,
                        count * PLANE);
    npz_maker_add_array(&test->maker, labels, "|u1", label_shape, label_items, count);
}

static void files_that_do_not_fit_are_refused(void **state)
{
    struct npz_test *test = *state;
    char shape[64];
    uint8_t array[256];
    npz_maker_add_array(&test->maker, "data", "|u1", "(1,)", "", 1);
    check_refused(test, DATASET_TRAIN, STATUS_INVALID,
                  "the array images cannot be read: it is not");
    npz_maker_add_array(&test->maker, "x_train", "|u1", shape_of(1, 0, shape), test->images, PLANE);
    check_refused(test, DATASET_TRAIN, STATUS_INVALID, "the array y_train cannot be read");
    npz_maker_add(&test->maker, "images.npy", array,
                  npz_maker_array(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (1, 2, 2)}",
                                  "abcd", 4, array, sizeof(array)));
    check_refused(test, DATASET_TRAIN, STATUS_UNSUPPORTED, "save numpy.ascontiguousarray(images)");
    add_images(test, "images", "labels", 4, (const uint8_t[4]){0});
    check_refused(test, DATASET_TRAIN, STATUS_INVALID, "all labels are 0");
    add_images(test, "images", "labels", 2, (const uint8_t[2]){0, 1});
    check_refused(test, DATASET_TEST, STATUS_INVALID, "has too few images");
    add_images(test, "images", "labels", 2, (const uint8_t[2]){0, 1});
    add_images(test, "test_images", "test_labels", 1, (const uint8_t[1]){2});
    check_refused(test, DATASET_TEST, STATUS_MALFORMED, "is 2, which no training image has");
    add_images(test, "images", "labels", 2, (const uint8_t[2]){0, 1});
    npz_maker_add_array(&test->maker, "test_images", "|u1", "(1, 5, 4)", test->images, PLANE);
    npz_maker_add_array(&test->maker, "test_labels", "|u1", "(1,)", test->labels, 1);
    check_refused(test, DATASET_TEST, STATUS_INVALID, "images for tests are of 5 x 4 x 1");
    add_images(test, "images", "labels", 2, (const uint8_t[2]){0, 1});
    npz_maker_add_array(&test->maker, "test_images", "|u1", "(1, 4, 5)", test->images, PLANE);
    check_refused(test, DATASET_TEST, STATUS_INVALID, "the array test_labels cannot be read");
    npz_maker_add_array(&test->maker, "images", "|u1", "(1, 4, 5)", test->images, PLANE);
    npz_maker_add_array(&test->maker, "labels", "<i2", "(1,)", "\xFF\xFF", 2);
    check_refused(test, DATASET_TRAIN, STATUS_MALFORMED,
                  "label 0 (from 0) of the array labels is neg");
    npz_maker_add_array(&test->maker, "images", "|u1", "(1, 4, 5)", test->images, PLANE);
    npz_maker_add_array(&test->maker, "labels", "<u4", "(1,)", "\0\0\1\0", 4);
    check_refused(test, DATASET_TRAIN, STATUS_MALFORMED,
                  "is too large; labels are from 0 to 65535");
}

static void two_arrays_of_one_name_are_refused(void **state)
{
    struct npz_test *test = *state;
    add_images(test, "images", "labels", 2, (const uint8_t[2]){0, 1});
    npz_maker_add_array(&test->maker, "labels", "|u1", "(2,)", (const uint8_t[2]){1, 0}, 2);
    check_refused(test, DATASET_TRAIN, STATUS_MALFORMED,
                  "the array labels cannot be read: it is there twice");
}

static void check_told(struct npz_test *test, const uint8_t labels[4], const char *text)
{
    struct dataset *dataset = NULL;
    const struct dataset_options options = {.split = DATASET_TRAIN, .tells = true};
    test->maker = (struct npz_maker){0};
    add_images(test, "images", "labels", 4, labels);
    write_file(test);
    captured_log_begin();
    assert_int_equal(dataset_open(test->data, &options, &dataset), STATUS_OK);
    const char *log = captured_log_end();
    if ((strstr(log, "has no training image") != NULL) != (text != NULL) ||
        (text != NULL && strstr(log, text) == NULL)) {
        fail_msg("%s", log);
    }
    dataset_close(dataset);
}

static void classes_without_images_are_told(void **state)
{
    check_told(*state, (const uint8_t[4]){1, 0, 1, 0}, NULL);
    check_told(*state, (const uint8_t[4]){1, 2, 1, 2},
               "has no training image of 1 of its 3 classes, such as 0: ");
    check_told(*state, (const uint8_t[4]){0, 200, 0, 200},
               "has no training image of 199 of its 201 classes, such as 1: ");
}

static void what_is_no_zip_file_is_refused(void **state)
{
    struct npz_test *test = *state;
    temp_folder_write(test->folder, "a.npz", "text", 4);
    refusal_check("npz", test->path, DATASET_TRAIN, STATUS_MALFORMED,
                  (const char *const[3]){"a.npz", "it is no zip file", "numpy.savez"});
    refusal_check("npz", "/nowhere/a.npz", DATASET_TRAIN, STATUS_IO,
                  (const char *const[3]){"cannot read /nowhere/a.npz", "No such file", NULL});
    refusal_check("npz", test->folder, DATASET_TRAIN, STATUS_IO,
                  (const char *const[3]){"cannot read", "Is a directory", NULL});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* What the training images need is not read again: the file may be gone. */
static void check_sharing(struct npz_test *test, bool has_tests)
{
    static const char *const names[] = {"images", "labels", "test_images", "test_labels"};
    char shape[64];
    if (has_tests) {
        add_all(test, names, 3);
    } else {
        npz_maker_add_array(&test->maker, "images", "|u1", shape_of(COUNT, 3, shape), test->images,
                            COUNT * BYTES);
        npz_maker_add_array(&test->maker, "labels", "|u1", "(40,)", test->labels, COUNT);
    }
    write_file(test);
    struct dataset *alone = open_split(test, DATASET_TEST, 1), *train, *tests;
    train = open_split(test, DATASET_TRAIN, 1);
    assert_int_equal(dataset_resize(train, 2 * ROWS, &train), STATUS_OK);
    assert_int_equal(unlink(test->path), 0);
    const struct dataset_options options = {.seed = 1, .split = DATASET_TEST, .train = train};
    assert_int_equal(dataset_open(test->data, &options, &tests), STATUS_OK);
    dataset_close(train);
    assert_int_equal(tests->sample_count, alone->sample_count);
    assert_int_equal(tests->class_count, 3);
    for (uint64_t i = 0; i < tests->sample_count; i++) {
        float expected[BYTES], found[BYTES];
        uint32_t labels[2];
        assert_int_equal(dataset_read(alone, i, expected, &labels[0]), STATUS_OK);
        assert_int_equal(dataset_read(tests, i, found, &labels[1]), STATUS_OK);
        assert_memory_equal(found, expected, sizeof(found));
        assert_int_equal(labels[0], labels[1]);
    }
    dataset_close(alone);
    dataset_close(tests);
}

static void both_splits_share_what_they_need(void **state)
{
    check_sharing(*state, true);
}

static void so_do_splits_that_are_drawn(void **state)
{
    check_sharing(*state, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_splits_share_what_they_need, set_up, tear_down),
        cmocka_unit_test_setup_teardown(so_do_splits_that_are_drawn, set_up, tear_down),
        TEST(grey_and_colour_are_read_stored_and_deflated_with_both_sets_of_names),
        TEST(labels_may_be_whole_numbers_of_any_size),
        TEST(without_images_for_tests_a_tenth_of_each_class_is_held_back),
        TEST(arrays_that_cannot_be_used_are_refused_with_what_to_save),
        TEST(files_that_do_not_fit_are_refused),
        TEST(two_arrays_of_one_name_are_refused),
        TEST(classes_without_images_are_told),
        TEST(what_is_no_zip_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
