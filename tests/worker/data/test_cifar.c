/* Tests of CIFAR's files: good ones, bad ones, and the real ones. */
#include "tests/support/common/temp_folder.h"
#include "tests/support/data/real_data.h"
#include "tests/support/data/refusal.h"
#include "worker/data/cifar.h"
#include "worker/data/dataset.h"

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
#include <sys/stat.h>
#include <unistd.h>

#define RECORDS      4 // of the files written here
#define PIXEL_BYTES  CIFAR_PIXEL_BYTES
#define RECORD_BYTES (1 + PIXEL_BYTES)

static const char *const files[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                    "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};

static uint8_t pixel_of(uint32_t file, uint32_t record, uint32_t i)
{
    return (uint8_t)(i * 7 + record * 31 + file * 101);
}

static void write_file(const char *folder, const char *prefix, uint32_t file)
{
    uint8_t bytes[RECORDS * RECORD_BYTES];
    for (uint32_t record = 0; record < RECORDS; record++) {
        uint8_t *at = bytes + (size_t)record * RECORD_BYTES;
        at[0] = (uint8_t)((file + record) % 10);
        for (uint32_t i = 0; i < PIXEL_BYTES; i++) {
            at[1 + i] = pixel_of(file, record, i);
        }
    }
    char name[256];
    snprintf(name, sizeof(name), "%s%s", prefix, files[file]);
    temp_folder_write(folder, name, bytes, sizeof(bytes));
}

static char *write_all(const char *prefix)
{
    char *folder = temp_folder_create();
    for (uint32_t file = 0; file < 6; file++) {
        write_file(folder, prefix, file);
    }
    return folder;
}

static void check_sample(const struct dataset *dataset, uint64_t index, uint32_t file,
                         uint32_t record)
{
    float pixels[PIXEL_BYTES];
    uint32_t label;
    assert_int_equal(dataset_read(dataset, index, pixels, &label), STATUS_OK);
    assert_int_equal(label, (file + record) % 10);
    for (uint32_t i = 0; i < PIXEL_BYTES; i++) {
        uint32_t channel = i / 1024;
        double value = pixel_of(file, record, i) / 255.0;
        double expected = (value - (double)cifar10.format.mean[channel]) /
                          (double)cifar10.format.deviation[channel];
        assert_true(fabs((double)pixels[i] - expected) < 1e-5);
    }
}

static void check_all(const char *folder)
{
    char data[512];
    snprintf(data, sizeof(data), "cifar10:%s", folder);
    struct dataset *train, *test;
    assert_int_equal(
        dataset_open(data, &(struct dataset_options){.seed = 1, .split = DATASET_TRAIN}, &train),
        STATUS_OK);
    assert_int_equal(
        dataset_open(data, &(struct dataset_options){.seed = 1, .split = DATASET_TEST}, &test),
        STATUS_OK);
    assert_int_equal(train->sample_count, 5 * RECORDS);
    assert_int_equal(test->sample_count, RECORDS);
    assert_int_equal(train->class_count, 10);
    for (uint32_t i = 0; i < 5 * RECORDS; i++) {
        check_sample(train, i, i / RECORDS, i % RECORDS);
    }
    for (uint32_t i = 0; i < RECORDS; i++) {
        check_sample(test, i, 5, i);
    }
    dataset_close(test);
    dataset_close(train);
}

static void every_record_of_every_file_is_read(void **state)
{
    (void)state;
    char *folder = write_all("");
    check_all(folder);
    temp_folder_destroy(folder);
}

static void the_folder_above_the_unpacked_archive_serves_as_well(void **state)
{
    (void)state;
    char *folder = write_all("cifar-10-batches-bin/");
    check_all(folder);
    temp_folder_destroy(folder);
}

static void the_training_set_does_not_need_the_test_file(void **state)
{
    (void)state;
    char *folder = write_all("");
    char path[512];
    snprintf(path, sizeof(path), "%s/test_batch.bin", folder);
    assert_int_equal(remove(path), 0);
    snprintf(path, sizeof(path), "cifar10:%s", folder);
    struct dataset *train;
    assert_int_equal(
        dataset_open(path, &(struct dataset_options){.seed = 1, .split = DATASET_TRAIN}, &train),
        STATUS_OK);
    dataset_close(train);
    refusal_check("cifar10", folder, DATASET_TEST, STATUS_IO,
                  (const char *[3]){"test_batch.bin", "No such file", "cifar-10-binary.tar.gz"});
    temp_folder_destroy(folder);
}

static void a_missing_file_is_named_with_where_to_get_it(void **state)
{
    (void)state;
    char *folder = write_all("");
    char path[512];
    snprintf(path, sizeof(path), "%s/data_batch_4.bin", folder);
    assert_int_equal(remove(path), 0);
    refusal_check("cifar10", folder, DATASET_TRAIN, STATUS_IO,
                  (const char *[3]){path, "No such file", "cifar-10-binary.tar.gz"});
    temp_folder_destroy(folder);
    refusal_check(
        "cifar10", "/nowhere", DATASET_TRAIN, STATUS_IO,
        (const char *[3]){"/nowhere/data_batch_1.bin", "No such file", "--data cifar10:DIR"});
}

/* Replaces data_batch_3.bin by the first `size` bytes of zeros with one of them set. */
static void check_bad_file(size_t size, size_t at, uint8_t value, const char *reason)
{
    char *folder = write_all("");
    uint8_t *bytes = calloc(1, size + 1);
    assert_non_null(bytes);
    bytes[at] = value;
    temp_folder_write(folder, "data_batch_3.bin", bytes, size);
    refusal_check("cifar10", folder, DATASET_TRAIN, STATUS_MALFORMED,
                  (const char *[3]){"data_batch_3.bin", reason, "cifar-10-binary.tar.gz"});
    free(bytes);
    temp_folder_destroy(folder);
}

static void a_file_of_another_size_is_refused(void **state)
{
    (void)state;
    check_bad_file(0, 0, 0, "it has 0 bytes");
    check_bad_file(1, 0, 0, "it has 1 bytes");
    check_bad_file(RECORD_BYTES - 1, 0, 0, "it has 3072 bytes");
    check_bad_file(RECORD_BYTES + 1, 0, 0, "it has 3074 bytes");
    check_bad_file((size_t)10001 * RECORD_BYTES, 0, 0, "10000 records of 3073 bytes");
}

static void a_label_out_of_range_is_refused_with_its_record(void **state)
{
    (void)state;
    check_bad_file((size_t)2 * RECORD_BYTES, 0, 10, "record 0 (from 0) has label 10");
    check_bad_file((size_t)9 * RECORD_BYTES, (size_t)8 * RECORD_BYTES, 255,
                   "record 8 (from 0) has label 255");
}

static void what_is_no_regular_file_is_refused(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    char path[512];
    snprintf(path, sizeof(path), "%s/data_batch_1.bin", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    refusal_check("cifar10", folder, DATASET_TRAIN, STATUS_IO,
                  (const char *[3]){path, "Is a directory", NULL});
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    refusal_check("cifar10", folder, DATASET_TRAIN, STATUS_IO, (const char *[3]){path, NULL, NULL});
    refusal_check("cifar10", path, DATASET_TRAIN, STATUS_IO,
                  (const char *[3]){path, "Not a directory", NULL});
    temp_folder_destroy(folder);
}

/* Two label bytes: of the group, and of the class, which is the label. */
static void a_record_of_cifar100_has_its_class_second(void **state)
{
    (void)state;
    uint8_t bytes[2 * (2 + PIXEL_BYTES)] = {7, 99};
    bytes[2] = 200;
    bytes[2 + PIXEL_BYTES] = 8;
    bytes[2 + PIXEL_BYTES + 1] = 0;
    char *folder = temp_folder_create();
    temp_folder_write(folder, "cifar-100-binary/train.bin", bytes, sizeof(bytes));
    char data[512];
    snprintf(data, sizeof(data), "cifar100:%s", folder);
    struct dataset *dataset;
    assert_int_equal(
        dataset_open(data, &(struct dataset_options){.seed = 1, .split = DATASET_TRAIN}, &dataset),
        STATUS_OK);
    assert_int_equal(dataset->class_count, 100);
    assert_int_equal(dataset->sample_count, 2);
    float pixels[PIXEL_BYTES];
    uint32_t label;
    assert_int_equal(dataset_read(dataset, 0, pixels, &label), STATUS_OK);
    assert_int_equal(label, 99);
    double expected =
        (200 / 255.0 - (double)cifar100.format.mean[0]) / (double)cifar100.format.deviation[0];
    assert_true(fabs((double)pixels[0] - expected) < 1e-5);
    assert_int_equal(dataset_read(dataset, 1, pixels, &label), STATUS_OK);
    assert_int_equal(label, 0);
    dataset_close(dataset);
    bytes[1] = 100;
    temp_folder_write(folder, "cifar-100-binary/train.bin", bytes, sizeof(bytes));
    refusal_check("cifar100", folder, DATASET_TRAIN, STATUS_MALFORMED,
                  (const char *[3]){"train.bin is not a CIFAR-100 file",
                                    "record 0 (from 0) has label 100; labels are below 100",
                                    "--data cifar100:DIR"});
    refusal_check("cifar100", folder, DATASET_TEST, STATUS_IO,
                  (const char *[3]){"test.bin", "No such file", "--data cifar100:DIR"});
    temp_folder_destroy(folder);
}

/* A training file of one record, and a file of names that are c0, c1, ... */
static char *write_named(uint32_t name_count, const char *end_of_line)
{
    static const uint8_t record[2 + PIXEL_BYTES];
    char text[2048];
    size_t used = 0;
    for (uint32_t i = 0; i < name_count; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "c%u%s", i, end_of_line);
    }
    char *folder = temp_folder_create();
    temp_folder_write(folder, "train.bin", record, sizeof(record));
    temp_folder_write(folder, "fine_label_names.txt", text, used);
    return folder;
}

static void cifar100_has_the_names_of_its_classes_where_their_file_is(void **state)
{
    (void)state;
    static const char *const ends[] = {"\n", "\r\n"};
    for (size_t i = 0; i < 2; i++) {
        char *folder = write_named(100, ends[i]), data[512];
        struct dataset *dataset;
        snprintf(data, sizeof(data), "cifar100:%s", folder);
        assert_int_equal(
            dataset_open(data, &(struct dataset_options){.split = DATASET_TRAIN}, &dataset),
            STATUS_OK);
        assert_int_equal(strncmp(dataset->class_text, "[\"c0\",\"c1\",", 11), 0);
        assert_non_null(strstr(dataset->class_text, ",\"c99\"]"));
        dataset_close(dataset);
        temp_folder_destroy(folder);
    }
}

static void names_of_other_classes_are_refused(void **state)
{
    (void)state;
    static const uint32_t counts[] = {0, 99, 101};
    for (size_t i = 0; i < 3; i++) {
        char *folder = write_named(counts[i], "\n");
        refusal_check("cifar100", folder, DATASET_TRAIN, STATUS_MALFORMED,
                      (const char *[3]){"fine_label_names.txt", "the names of 100 classes", NULL});
        temp_folder_destroy(folder);
    }
}

static void the_real_training_images_are_balanced_and_normalised(void **state)
{
    (void)state;
    struct dataset *dataset = real_data_open("cifar10", DATASET_TRAIN);
    real_data_check(dataset, 50000);
    dataset_close(dataset);
}

static void the_real_test_images_are_as_many_as_they_should(void **state)
{
    (void)state;
    struct dataset *dataset = real_data_open("cifar10", DATASET_TEST);
    assert_int_equal(dataset->sample_count, 10000);
    dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_record_of_every_file_is_read),
        cmocka_unit_test(the_folder_above_the_unpacked_archive_serves_as_well),
        cmocka_unit_test(the_training_set_does_not_need_the_test_file),
        cmocka_unit_test(a_missing_file_is_named_with_where_to_get_it),
        cmocka_unit_test(a_file_of_another_size_is_refused),
        cmocka_unit_test(a_label_out_of_range_is_refused_with_its_record),
        cmocka_unit_test(what_is_no_regular_file_is_refused),
        cmocka_unit_test(a_record_of_cifar100_has_its_class_second),
        cmocka_unit_test(cifar100_has_the_names_of_its_classes_where_their_file_is),
        cmocka_unit_test(names_of_other_classes_are_refused),
        cmocka_unit_test(the_real_training_images_are_balanced_and_normalised),
        cmocka_unit_test(the_real_test_images_are_as_many_as_they_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
