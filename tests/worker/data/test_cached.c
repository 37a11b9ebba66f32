/* Tests of decoded images that are kept: by several readers, under a budget, beside damage. */
#include "tests/support/common/captured_log.h"
#include "tests/support/data/counted.h"
#include "worker/data/cached.h"
#include "worker/data/statistics.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIDE  16
#define BYTES ((size_t)3 * SIDE * SIDE)
#define PLACE ((off_t)832) // of an image: 24 bytes of head, rounded up to 64

static struct dataset *open_salted(struct counted_bench *bench, struct cached_options options,
                                   uint8_t salt)
{
    return counted_open(bench, options, counted_make(bench, SIDE, salt));
}

static struct dataset *open_images(struct counted_bench *bench, struct cached_options options)
{
    return open_salted(bench, options, 0);
}

static void read_all(const struct dataset *dataset, uint8_t salt)
{
    assert_true(counted_read_right(dataset, salt));
}

static void what_one_has_decoded_no_other_decodes(void **state)
{
    struct counted_bench *bench = *state;
    const struct cached_options options = {.place = CACHED_IN_MEMORY, .budget = 1 << 20};
    struct dataset *first = open_images(bench, options), *second = open_images(bench, options);
    read_all(first, 0);
    read_all(second, 0);
    read_all(first, 0);
    for (uint32_t i = 0; i < COUNTED_SAMPLES; i++) {
        assert_int_equal(bench->reads[i], i < COUNTED_FIRST ? 0 : 1);
    }
    dataset_close(first);
    read_all(second, 0);
    assert_int_equal(counted_total(bench), COUNTED_SAMPLES - COUNTED_FIRST);
    dataset_close(second);
    char path[512];
    counted_find_file(bench, path);
    assert_string_equal(path, "");
}

static void on_disk_it_stays_for_the_next_job_but_not_for_other_images(void **state)
{
    struct counted_bench *bench = *state;
    const struct cached_options options = {.place = CACHED_ON_DISK, .budget = 1 << 20};
    struct dataset *dataset = open_images(bench, options);
    read_all(dataset, 0);
    dataset_close(dataset);
    dataset = open_images(bench, options);
    read_all(dataset, 0);
    assert_int_equal(counted_total(bench), 0);
    dataset_close(dataset);
    // Another library decodes them in another way.
    dataset = open_salted(bench, options, 9);
    read_all(dataset, 9);
    assert_int_equal(counted_total(bench), COUNTED_SAMPLES - COUNTED_FIRST);
    dataset_close(dataset);
}

static uint64_t budget_of(uint32_t places)
{
    return (uint64_t)places * (uint64_t)PLACE;
}

static void what_does_not_fit_is_decoded_each_time_and_told(void **state)
{
    struct counted_bench *bench = *state;
    captured_log_begin();
    const struct cached_options options = {
        .place = CACHED_IN_MEMORY, .budget = budget_of(12), .tells = true, .is_test = true};
    struct dataset *dataset = open_images(bench, options);
    const char *log = captured_log_end();
    assert_non_null(strstr(log, "--cache has room for 12 of 20 test images (0.0 of "));
    struct cached_counts counts;
    read_all(dataset, 0);
    memset(bench->reads, 0, sizeof(bench->reads));
    read_all(dataset, 0);
    assert_int_equal(counted_total(bench), 8);
    assert_true(dataset_cache_counts(dataset, &counts));
    assert_int_equal(counts.kept, 12);
    assert_int_equal(counts.taken, budget_of(12));
    // Other processes keep the same ones: together they take no more.
    struct dataset *other = open_images(bench, options);
    read_all(other, 0);
    assert_int_equal(counted_total(bench), 8);
    assert_true(dataset_cache_counts(other, &counts));
    assert_int_equal(counts.kept, 0);
    assert_int_equal(counts.found, 12);
    dataset_close(other);
    dataset_close(dataset);
}

/* Each rank of --shard local has a part that lies together. */
static void what_fits_is_spread_over_the_list(void **state)
{
    struct counted_bench *bench = *state;
    const struct cached_options options = {.place = CACHED_IN_MEMORY, .budget = budget_of(10)};
    struct dataset *dataset = open_images(bench, options);
    read_all(dataset, 0);
    memset(bench->reads, 0, sizeof(bench->reads));
    read_all(dataset, 0);
    for (uint32_t part = 0; part < 4; part++) {
        uint32_t decoded = 0;
        for (uint32_t i = 0; i < COUNTED_SAMPLES / 4; i++) {
            decoded += bench->reads[part * COUNTED_SAMPLES / 4 + i];
        }
        assert_in_range(decoded, 2, 3);
    }
    dataset_close(dataset);
}

static void a_job_of_fewer_images_needs_less_room(void **state)
{
    struct counted_bench *bench = *state;
    const struct cached_options options = {
        .place = CACHED_IN_MEMORY, .budget = budget_of(6), .samples = 6, .tells = true};
    captured_log_begin();
    struct dataset *dataset = open_images(bench, options);
    assert_null(strstr(captured_log_end(), "--cache has room"));
    read_all(dataset, 0);
    memset(bench->reads, 0, sizeof(bench->reads));
    read_all(dataset, 0);
    assert_int_equal(counted_total(bench), COUNTED_SAMPLES - 6);
    dataset_close(dataset);
}

static void test_images_get_what_training_images_leave(void **state)
{
    struct counted_bench *bench = *state;
    struct cached_options options = {.place = CACHED_IN_MEMORY, .budget = budget_of(25)};
    struct cached_counts counts;
    struct dataset *train = open_images(bench, options);
    read_all(train, 0);
    options.before = train;
    struct dataset *test = open_salted(bench, options, 5);
    read_all(test, 5);
    assert_true(dataset_cache_counts(test, &counts));
    assert_int_equal(counts.kept, 5);
    dataset_close(test);
    dataset_close(train);
    // Nothing is left.
    options = (struct cached_options){.place = CACHED_IN_MEMORY, .budget = budget_of(15)};
    train = open_images(bench, options);
    options.before = train;
    test = open_salted(bench, options, 5);
    assert_false(dataset_cache_counts(test, &counts));
    dataset_close(test);
    dataset_close(train);
}

static void a_budget_that_is_not_there_is_told(void **state)
{
    struct counted_bench *bench = *state;
    const struct cached_options options = {
        .place = CACHED_ON_DISK, .budget = (uint64_t)1 << 60, .tells = true};
    struct cached_counts counts;
    captured_log_begin();
    struct dataset *dataset = open_images(bench, options);
    assert_non_null(strstr(captured_log_end(), "--cache-mb 1099511627776: "));
    assert_true(dataset_cache_counts(dataset, &counts));
    assert_true(counts.budget < (uint64_t)1 << 60);
    dataset_close(dataset);
}

/* Sums of bytes are counted over all training images before the first step. */
static void what_is_counted_for_normalisation_is_kept(void **state)
{
    struct counted_bench *bench = *state;
    const struct cached_options options = {.place = CACHED_IN_MEMORY, .budget = 1 << 20};
    struct statistics statistics;
    assert_int_equal(setenv("RINGSIDE_CACHE", bench->folder, 1),
                     0); // NOLINT(concurrency-mt-unsafe)
    struct dataset *dataset = open_images(bench, options);
    assert_int_equal(statistics_count(dataset, COUNTED_SAMPLES, false, &statistics), STATUS_OK);
    assert_int_equal(statistics.pixels, COUNTED_SAMPLES * SIDE * SIDE);
    read_all(dataset, 0);
    assert_int_equal(counted_total(bench), COUNTED_SAMPLES - COUNTED_FIRST); // each once
    dataset_close(dataset);
    unsetenv("RINGSIDE_CACHE"); // NOLINT(concurrency-mt-unsafe)
}

/* As a process leaves it that is killed while it writes, or a disk. */
static void an_image_that_was_not_written_whole_is_decoded_again(void **state)
{
    struct counted_bench *bench = *state;
    const struct cached_options options = {.place = CACHED_ON_DISK, .budget = 1 << 20};
    struct dataset *dataset = open_images(bench, options);
    read_all(dataset, 0);
    char path[512];
    counted_find_file(bench, path);
    int file = open(path, O_RDWR | O_CLOEXEC);
    assert_true(file >= 0);
    static const uint8_t zeros[1024];
    assert_int_equal(pwrite(file, zeros, 300, 3 * PLACE + 500), 300);
    assert_int_equal(pwrite(file, "x", 1, 5 * PLACE + 16), 1); // a label
    assert_int_equal(pwrite(file, zeros, PLACE, 7 * PLACE), PLACE);
    assert_int_equal(ftruncate(file, 19 * PLACE + 10), 0);
    close(file);
    memset(bench->reads, 0, sizeof(bench->reads));
    read_all(dataset, 0);
    assert_int_equal(counted_total(bench), 4);
    assert_true(bench->reads[3] && bench->reads[5] && bench->reads[7] && bench->reads[19]);
    read_all(dataset, 0);
    assert_int_equal(counted_total(bench), 4);
    dataset_close(dataset);
}

static void a_file_that_was_left_behind_is_removed(void **state)
{
    struct counted_bench *bench = *state;
    char left[600], other[600];
    snprintf(left, sizeof(left), "%s/ringside-%u-0123456789abcdef.pixels", bench->folder,
             (unsigned)getuid());
    snprintf(other, sizeof(other), "%s/something.pixels", bench->folder);
    close(open(left, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    const struct cached_options options = {.place = CACHED_IN_MEMORY, .budget = 1 << 20};
    dataset_close(open_images(bench, options));
    assert_int_equal(access(left, F_OK), -1);
    assert_int_equal(access(other, F_OK), 0);
}

static void images_that_changed_a_moment_ago_are_not_kept(void **state)
{
    struct counted_bench *bench = *state;
    struct dataset *images = counted_make(bench, SIDE, 0), *dataset;
    struct cached_counts counts;
    images->stamp = 0;
    const struct cached_options options = {
        .place = CACHED_IN_MEMORY, .tells = true, .folder = bench->folder};
    captured_log_begin();
    assert_int_equal(dataset_cache(images, &options, &dataset), STATUS_OK);
    assert_non_null(strstr(captured_log_end(), "--cache keeps nothing: some images changed"));
    assert_false(dataset_cache_counts(dataset, &counts));
    dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_one_has_decoded_no_other_decodes, counted_set_up,
                                        counted_tear_down),
        cmocka_unit_test_setup_teardown(on_disk_it_stays_for_the_next_job_but_not_for_other_images,
                                        counted_set_up, counted_tear_down),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_decoded_each_time_and_told,
                                        counted_set_up, counted_tear_down),
        cmocka_unit_test_setup_teardown(what_fits_is_spread_over_the_list, counted_set_up,
                                        counted_tear_down),
        cmocka_unit_test_setup_teardown(a_job_of_fewer_images_needs_less_room, counted_set_up,
                                        counted_tear_down),
        cmocka_unit_test_setup_teardown(test_images_get_what_training_images_leave, counted_set_up,
                                        counted_tear_down),
        cmocka_unit_test_setup_teardown(a_budget_that_is_not_there_is_told, counted_set_up,
                                        counted_tear_down),
        cmocka_unit_test_setup_teardown(what_is_counted_for_normalisation_is_kept, counted_set_up,
                                        counted_tear_down),
        cmocka_unit_test_setup_teardown(an_image_that_was_not_written_whole_is_decoded_again,
                                        counted_set_up, counted_tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_was_left_behind_is_removed, counted_set_up,
                                        counted_tear_down),
        cmocka_unit_test_setup_teardown(images_that_changed_a_moment_ago_are_not_kept,
                                        counted_set_up, counted_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
