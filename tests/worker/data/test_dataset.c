/* Tests of opening datasets by name. */
#include "tests/support/common/captured_log.h"
#include "worker/data/dataset.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static void check_refused(const char *data, const char *text)
{
    struct dataset *dataset = NULL;
    captured_log_begin();
    enum status status =
        dataset_open(data, &(struct dataset_options){.seed = 1, .split = DATASET_TRAIN}, &dataset);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_INVALID);
    assert_null(dataset);
    if (strstr(log, text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, log);
    }
}

static void an_unknown_name_is_refused_with_all_that_are_known(void **state)
{
    (void)state;
    static const char *const unknown[] = {"", ":", "shape", "shapes2", "SHAPES", "cifar:/data"};
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        check_refused(unknown[i], "there are shapes, cifar10, cifar100, mnist, fashion-mnist, "
                                  "images, pack, npz, synthetic\n");
    }
}

static void a_dataset_of_files_needs_their_folder(void **state)
{
    (void)state;
    check_refused("cifar10", "--data cifar10:DIR");
    check_refused("cifar10:", "--data cifar10:DIR");
    check_refused("fashion-mnist", "--data fashion-mnist:DIR");
}

static void a_dataset_without_files_takes_no_folder(void **state)
{
    (void)state;
    check_refused("shapes:/data", "leave out \":/data\"");
    check_refused("synthetic:x:y", "no dataset is called \"x\"");
    check_refused("synthetic:synthetic", "leave out \":synthetic\"");
    check_refused("synthetic:cifar10", "--data cifar10:DIR");
}

static void check_sane(const char *data, enum dataset_split split)
{
    struct dataset *dataset = NULL;
    assert_int_equal(
        dataset_open(data, &(struct dataset_options){.seed = 1, .split = split}, &dataset),
        STATUS_OK);
    uint32_t size = dataset->sample.channels * dataset->sample.rows * dataset->sample.columns;
    assert_int_equal(size, 3 * 32 * 32);
    assert_int_equal(dataset->class_count, 10);
    double sum = 0, sum_of_squares = 0;
    const uint64_t count = 500;
    for (uint64_t i = 0; i < count; i++) {
        float pixels[3 * 32 * 32];
        uint32_t label;
        assert_int_equal(dataset_read(dataset, dataset->sample_count - 1 - i, pixels, &label),
                         STATUS_OK);
        for (uint32_t k = 0; k < size; k++) {
            sum += (double)pixels[k];
            sum_of_squares += (double)pixels[k] * (double)pixels[k];
        }
    }
    double mean = sum / (double)(count * size);
    double variance = sum_of_squares / (double)(count * size) - mean * mean;
    assert_true(mean > -0.1 && mean < 0.1);
    assert_true(variance > 0.8 && variance < 1.2);
    dataset_close(dataset);
}

static void datasets_without_files_are_normalised(void **state)
{
    (void)state;
    check_sane("shapes", DATASET_TRAIN);
    check_sane("shapes:", DATASET_TEST);
    check_sane("synthetic", DATASET_TRAIN);
    check_sane("synthetic", DATASET_TEST);
    dataset_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_name_is_refused_with_all_that_are_known),
        cmocka_unit_test(a_dataset_of_files_needs_their_folder),
        cmocka_unit_test(a_dataset_without_files_takes_no_folder),
        cmocka_unit_test(datasets_without_files_are_normalised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
