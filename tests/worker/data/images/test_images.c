/* Tests of the dataset `images`: layouts, labels, order, and all that can be wrong with a folder.
 */
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/data/image_folder.h"
#include "tests/support/data/jpeg_maker.h"
#include "tests/support/data/refusal.h"
#include "worker/data/dataset.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE   16
#define PIXELS (3 * SIZE * SIZE)

static struct dataset *open_images(const char *folder, enum dataset_split split, bool skips_bad)
{
    char data[512];
    struct dataset *dataset = NULL;
    struct dataset_options options = {
        .seed = 3, .split = split, .image_size = SIZE, .skips_bad = skips_bad};
    snprintf(data, sizeof(data), "images:%s", folder);
    assert_int_equal(dataset_open(data, &options, &dataset), STATUS_OK);
    return dataset;
}

/* The grey of a sample, which tells which file it is; writes its label. */
static int grey_of(const struct dataset *dataset, uint64_t index, uint32_t *ret_label)
{
    uint8_t bytes[PIXELS];
    assert_int_equal(dataset_read_bytes(dataset, index, bytes, ret_label), STATUS_OK);
    return bytes[PIXELS / 2];
}

static void check_sample(const struct dataset *dataset, uint64_t index, int grey, uint32_t label)
{
    uint32_t found;
    assert_in_range(grey_of(dataset, index, &found) + 2 - grey, 0, 4);
    assert_int_equal(found, label);
}

/* Two classes of two images to train, and one each to validate. */
static char *make_folder(void)
{
    char *folder = temp_folder_create();
    image_folder_put_grey(folder, "train/dog/1.jpg", 30);
    image_folder_put_grey(folder, "train/cat/2.jpg", 20);
    image_folder_put_grey(folder, "train/cat/1.JPEG", 10);
    image_folder_put_grey(folder, "train/dog/a b\nc", 40);
    image_folder_put_grey(folder, "train/.hidden/1.jpg", 1);
    image_folder_put(folder, "train/cat/.DS_Store", "x", 1);
    image_folder_put(folder, "train/README", "x", 1);
    image_folder_put_grey(folder, "val/dog/9.jpg", 90);
    return folder;
}

static void samples_are_sorted_by_class_and_name(void **state)
{
    (void)state;
    char *folder = make_folder();
    struct dataset *train = open_images(folder, DATASET_TRAIN, false);
    struct dataset *test = open_images(folder, DATASET_TEST, false);
    assert_int_equal(train->sample_count, 4);
    assert_int_equal(train->class_count, 2);
    assert_string_equal(train->class_text, "[\"cat\",\"dog\"]");
    for (uint32_t i = 0; i < 4; i++) {
        check_sample(train, i, 10 * ((int)i + 1), i / 2);
    }
    // Of a class that validation lacks, the label stays free.
    assert_int_equal(test->sample_count, 1);
    assert_int_equal(test->class_count, 2);
    check_sample(test, 0, 90, 1);
    assert_true(train->names_digest != test->names_digest);
    dataset_close(test);
    dataset_close(train);
    temp_folder_destroy(folder);
}

static void floats_are_bytes_normalised_as_for_imagenet(void **state)
{
    (void)state;
    char *folder = make_folder();
    struct dataset *train = open_images(folder, DATASET_TRAIN, false);
    uint8_t bytes[PIXELS];
    float read[PIXELS], converted[PIXELS];
    uint32_t label;
    assert_int_equal(dataset_read(train, 3, read, &label), STATUS_OK);
    assert_int_equal(dataset_read_bytes(train, 3, bytes, &label), STATUS_OK);
    dataset_convert(train, bytes, converted);
    assert_memory_equal(read, converted, sizeof(read));
    double expected = (bytes[0] / 255.0 - 0.485) / 0.229;
    assert_true(read[0] > (float)expected - 1e-5f && read[0] < (float)expected + 1e-5f);
    dataset_close(train);
    temp_folder_destroy(folder);
}

static void a_flat_folder_is_split_by_the_seed_and_nothing_else(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    for (int i = 0; i < 24; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%c/%02d.jpg", i % 2 == 0 ? 'a' : 'b', i);
        image_folder_put_grey(folder, name, (uint8_t)(10 * i));
    }
    bool seen[24] = {false};
    for (int split = 0; split < 2; split++) {
        struct dataset *dataset = open_images(folder, (enum dataset_split)split, false);
        struct dataset *again = open_images(folder, (enum dataset_split)split, false);
        assert_int_equal(dataset->sample_count, split == DATASET_TRAIN ? 22 : 2);
        assert_true(dataset->names_digest == again->names_digest);
        for (uint64_t i = 0; i < dataset->sample_count; i++) {
            uint32_t label;
            int file = (grey_of(dataset, i, &label) + 5) / 10;
            assert_false(seen[file]);
            seen[file] = true;
            assert_int_equal(label, file % 2);
        }
        dataset_close(again);
        dataset_close(dataset);
    }
    temp_folder_destroy(folder);
}

static void a_flat_folder_says_how_it_was_split(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    for (int i = 0; i < 6; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%d/%d.jpg", i % 2, i);
        image_folder_put_grey(folder, name, (uint8_t)i);
    }
    image_folder_put(folder, "1/9.jpg", "x", 1);
    for (int split = 0; split < 2; split++) {
        char data[512];
        struct dataset *dataset;
        struct dataset_options options = {
            .split = (enum dataset_split)split, .skips_bad = true, .tells = true};
        snprintf(data, sizeof(data), "images:%s", folder);
        captured_log_begin();
        assert_int_equal(dataset_open(data, &options, &dataset), STATUS_OK);
        const char *log = captured_log_end();
        bool is_training = split == DATASET_TRAIN;
        assert_int_equal(strstr(log, "1/9.jpg is skipped: it is neither") != NULL, is_training);
        assert_int_equal(strstr(log, "1 of 7 images in") != NULL, is_training);
        assert_int_equal(strstr(log, "drawn from --seed: 2 of them, and 4 for training") != NULL,
                         is_training);
        dataset_close(dataset);
    }
    temp_folder_destroy(folder);
}

static void check_refusal(const char *folder, enum dataset_split split, enum status status,
                          const char *first, const char *second)
{
    refusal_check("images", folder, split, status, (const char *[3]){first, second, NULL});
}

static void path_in(const char *folder, const char *name, char ret_path[512])
{
    snprintf(ret_path, 512, "%s/%s", folder, name);
}

static void folders_that_make_no_sense_are_named(void **state)
{
    (void)state;
    char path[512];
    check_refusal("/nowhere", DATASET_TRAIN, STATUS_IO, "cannot read /nowhere", "No such file");
    char *folder = temp_folder_create();
    check_refusal(folder, DATASET_TRAIN, STATUS_INVALID, folder, "no folders of classes");
    image_folder_put_grey(folder, "cat/1.jpg", 1);
    check_refusal(folder, DATASET_TRAIN, STATUS_INVALID, "/cat is the only class", NULL);
    path_in(folder, "dog", path);
    assert_int_equal(mkdir(path, 0700), 0);
    check_refusal(folder, DATASET_TRAIN, STATUS_INVALID, "/dog has no images", NULL);
    image_folder_put_grey(folder, "dog/sub/1.jpg", 1);
    check_refusal(folder, DATASET_TRAIN, STATUS_INVALID, "/dog has a folder in it, \"sub\"", NULL);
    temp_folder_destroy(folder);

    folder = temp_folder_create();
    image_folder_put_grey(folder, "train/cat/1.jpg", 1);
    image_folder_put_grey(folder, "train/dog/1.jpg", 1);
    check_refusal(folder, DATASET_TRAIN, STATUS_INVALID, "has the folder train, but not val", NULL);
    image_folder_put_grey(folder, "val/cat/1.jpg", 1);
    image_folder_put_grey(folder, "val/cow/1.jpg", 1);
    check_refusal(folder, DATASET_TEST, STATUS_INVALID, "val/cow is not in", "/train");
    temp_folder_destroy(folder);
}

static void links_are_followed_but_not_in_circles(void **state)
{
    (void)state;
    char path[512];
    char *folder = make_folder();
    path_in(folder, "train/a \"\\\n\t", path);
    assert_int_equal(symlink("cat", path), 0);
    struct dataset *train = open_images(folder, DATASET_TRAIN, false);
    assert_int_equal(train->class_count, 3);
    assert_string_equal(train->class_text, "[\"a \\\"\\\\?\\t\",\"cat\",\"dog\"]");
    check_sample(train, 0, 10, 0);
    dataset_close(train);
    assert_int_equal(unlink(path), 0);
    path_in(folder, "train/bird", path);
    assert_int_equal(symlink("..", path), 0);
    check_refusal(folder, DATASET_TRAIN, STATUS_INVALID,
                  "train/bird is a symbolic link to a folder", NULL);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("bird", path), 0);
    check_refusal(folder, DATASET_TRAIN, STATUS_INVALID, "train/bird cannot be used as a class",
                  "round in a circle: mend or remove it");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("nothing", path), 0);
    check_refusal(folder, DATASET_TRAIN, STATUS_INVALID, "train/bird cannot be used as a class",
                  "link to nothing: mend or remove it");
    assert_int_equal(unlink(path), 0);
    path_in(folder, "train/cat/3.jpg", path);
    assert_int_equal(symlink("3.jpg", path), 0);
    check_refusal(folder, DATASET_TRAIN, STATUS_MALFORMED, "cat/3.jpg cannot be used", "circle");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("nothing", path), 0);
    check_refusal(folder, DATASET_TRAIN, STATUS_MALFORMED, "cat/3.jpg", "link to nothing");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    check_refusal(folder, DATASET_TRAIN, STATUS_MALFORMED, "cat/3.jpg", "no regular file");
    temp_folder_destroy(folder);
}

/* Puts a bad file in, which must be named with the reason, and left out if so asked. */
static void check_bad(const char *name, const void *bytes, size_t size, const char *why)
{
    char *folder = make_folder();
    image_folder_put(folder, name, bytes, size);
    check_refusal(folder, DATASET_TRAIN, STATUS_MALFORMED, why, "(1 of 5 images");
    struct dataset *train = open_images(folder, DATASET_TRAIN, true);
    assert_int_equal(train->sample_count, 4);
    check_sample(train, 2, 30, 1);
    dataset_close(train);
    temp_folder_destroy(folder);
}

static void files_that_are_no_images_are_named_or_left_out(void **state)
{
    (void)state;
    size_t size;
    uint8_t *jpeg = jpeg_maker_flat((const uint8_t[3]){1, 2, 3}, 200, 100, &size);
    check_bad("train/cat/0.jpg", "", 0, "cat/0.jpg cannot be used: it is empty");
    check_bad("train/cat/0.jpg", "text", 4, "it is neither JPEG nor PNG");
    check_bad("train/cat/0\n.jpg", "text", 4, "cat/0?.jpg cannot be used");
    check_bad("train/dog/z.jpg", jpeg, size - 2, "it has no end marker: it was cut short");
    check_bad("train/dog/z.jpg", jpeg, 100, "it ends in its head: it was cut short");
    check_bad("train/dog/z.jpg", "\x89PNG\r\n\x1A\n", 8, "z.jpg cannot be used");
    free(jpeg);
}

static void a_class_of_bad_images_alone_is_named(void **state)
{
    (void)state;
    char data[512];
    char *folder = make_folder();
    image_folder_put(folder, "train/cow/1.jpg", "text", 4);
    struct dataset *dataset = NULL;
    snprintf(data, sizeof(data), "images:%s", folder);
    captured_log_begin();
    enum status status = dataset_open(
        data, &(struct dataset_options){.split = DATASET_TRAIN, .skips_bad = true}, &dataset);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_INVALID);
    assert_non_null(strstr(log, "train/cow has no image that can be used"));
    temp_folder_destroy(folder);
}

/* Data that are broken in the middle, which the look at both ends does not show. */
static void put_broken_middle(const char *folder, const char *name)
{
    uint8_t pixels[64 * 64 * 3];
    uint32_t noise = 1;
    for (size_t i = 0; i < sizeof(pixels); i++) {
        noise = noise * 1664525 + 1013904223;
        pixels[i] = (uint8_t)(noise >> 24);
    }
    size_t size;
    uint8_t *jpeg = jpeg_maker_make(JPEG_MAKER_COLOUR, pixels, 64, 64, &size);
    jpeg[size / 2] = jpeg[size / 2 + 2] = 0xFF;
    jpeg[size / 2 + 1] = jpeg[size / 2 + 3] = 0xD9;
    image_folder_put(folder, name, jpeg, size);
    free(jpeg);
}

static void
an_image_that_breaks_off_in_its_middle_ends_the_job_or_makes_room_for_the_next(void **state)
{
    (void)state;
    char *folder = make_folder();
    uint8_t bytes[PIXELS];
    uint32_t label;
    put_broken_middle(folder, "train/cat/2.jpg");
    struct dataset *train = open_images(folder, DATASET_TRAIN, false);
    captured_log_begin();
    enum status status = dataset_read_bytes(train, 1, bytes, &label);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_MALFORMED);
    assert_non_null(strstr(log, "train/cat/2.jpg cannot be used: its data are broken: "));
    dataset_close(train);
    train = open_images(folder, DATASET_TRAIN, true);
    assert_int_equal(train->sample_count, 4);
    captured_log_begin();
    check_sample(train, 1, 30, 1);
    log = captured_log_end();
    assert_non_null(strstr(log, "the next one takes its place"));
    captured_log_begin();
    check_sample(train, 1, 30, 1); // as in the next epoch
    assert_string_equal(captured_log_end(), "");
    dataset_close(train);
    temp_folder_destroy(folder);
}

static void a_file_that_changes_or_goes_ends_the_job_even_if_bad_ones_are_skipped(void **state)
{
    (void)state;
    char *folder = make_folder();
    char path[512];
    uint8_t bytes[PIXELS];
    uint32_t label;
    struct dataset *train = open_images(folder, DATASET_TRAIN, true);
    image_folder_age(folder, "train/cat/1.JPEG");
    path_in(folder, "train/cat/2.jpg", path);
    assert_int_equal(unlink(path), 0);
    image_folder_put(folder, "train/dog/1.jpg", "short", 5);
    image_folder_put_grey(folder, "train/dog/a b\nc", 41); // of the same size, at another time
    image_folder_age(folder, "train/dog/a b\nc");
    for (uint64_t i = 0; i < 4; i++) {
        captured_log_begin();
        enum status status = dataset_read_bytes(train, i, bytes, &label);
        const char *log = captured_log_end();
        assert_int_equal(status, STATUS_IO);
        assert_non_null(
            strstr(log, i == 1 ? "cat/2.jpg: No such file" : "has changed since the job began"));
    }
    dataset_close(train);
    temp_folder_destroy(folder);
}

struct reading {
    const struct dataset *dataset;
    uint8_t bytes[4][PIXELS];
};

static void *read_all(void *argument)
{
    struct reading *reading = argument;
    for (uint64_t i = 0; i < 400; i++) {
        uint32_t label;
        if (dataset_read_bytes(reading->dataset, i % 4, reading->bytes[i % 4], &label) !=
            STATUS_OK) {
            return reading;
        }
    }
    return NULL;
}

static void threads_read_the_same_at_once(void **state)
{
    (void)state;
    char *folder = make_folder();
    struct dataset *train = open_images(folder, DATASET_TRAIN, false);
    static struct reading readings[4];
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        readings[i].dataset = train;
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, &readings[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
        assert_memory_equal(readings[i].bytes, readings[0].bytes, sizeof(readings[0].bytes));
    }
    dataset_close(train);
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_sorted_by_class_and_name),
        cmocka_unit_test(floats_are_bytes_normalised_as_for_imagenet),
        cmocka_unit_test(a_flat_folder_is_split_by_the_seed_and_nothing_else),
        cmocka_unit_test(a_flat_folder_says_how_it_was_split),
        cmocka_unit_test(folders_that_make_no_sense_are_named),
        cmocka_unit_test(links_are_followed_but_not_in_circles),
        cmocka_unit_test(files_that_are_no_images_are_named_or_left_out),
        cmocka_unit_test(a_class_of_bad_images_alone_is_named),
        cmocka_unit_test(
            an_image_that_breaks_off_in_its_middle_ends_the_job_or_makes_room_for_the_next),
        cmocka_unit_test(a_file_that_changes_or_goes_ends_the_job_even_if_bad_ones_are_skipped),
        cmocka_unit_test(threads_read_the_same_at_once),
    };
    char *cache = temp_folder_create();
    setenv("RINGSIDE_CACHE", cache, 1); // NOLINT(concurrency-mt-unsafe): there is one thread
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    temp_folder_destroy(cache);
    return failed;
}
