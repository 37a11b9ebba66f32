/* Tests of decoded images that are kept: by several readers, under a budget, beside damage. */
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"
#include "worker/data/cached.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAMPLES 20
#define SIDE    16
#define BYTES   ((size_t)3 * SIDE * SIDE)
#define PLACE   ((off_t)832) // of an image: 24 bytes of head, rounded up to 64

/* Images that count how often they are decoded. */
struct counted {
    struct dataset base;
    uint32_t *reads; // borrowed
    uint8_t salt;
};

static enum status counted_read_bytes(const struct dataset *dataset, uint64_t index,
                                      uint8_t *ret_bytes, uint32_t *ret_label)
{
    const struct counted *counted = (const struct counted *)dataset;
    counted->reads[index]++;
    for (size_t i = 0; i < BYTES; i++) {
        ret_bytes[i] = (uint8_t)(index * 31 + i * 7 + counted->salt);
    }
    *ret_label = (uint32_t)(index % 3);
    return STATUS_OK;
}

static enum status counted_read_part(const struct dataset *dataset, uint64_t index,
                                     const struct crop_draw *part, uint8_t *ret_bytes,
                                     uint32_t *ret_label)
{
    (void)part;
    return counted_read_bytes(dataset, index, ret_bytes, ret_label);
}

static void counted_describe(const struct dataset *dataset, struct pixels_source *ret_source)
{
    (void)dataset;
    *ret_source =
        (struct pixels_source){.channels = 3, .rows = SIDE, .columns = SIDE, .scale = {1, 1, 1}};
}

static void counted_close(struct dataset *dataset)
{
    free(dataset);
}

static const struct dataset_ops counted_ops = {
    .read = dataset_read_by_bytes,
    .describe = counted_describe,
    .read_bytes = counted_read_bytes,
    .convert = dataset_convert_as_described,
    .read_part = counted_read_part,
    .close = counted_close,
};

struct bench {
    char *folder;
    uint32_t reads[SAMPLES];
};

static struct dataset *open_salted(struct bench *bench, struct cached_options options, uint8_t salt)
{
    struct counted *counted = calloc(1, sizeof(*counted));
    struct dataset *dataset;
    assert_non_null(counted);
    *counted = (struct counted){.base = {.ops = &counted_ops,
                                         .sample = {3, SIDE, SIDE},
                                         .sample_count = SAMPLES,
                                         .class_count = 3,
                                         .stamp = 77},
                                .reads = bench->reads,
                                .salt = salt};
    options.folder = bench->folder;
    options.sharers = options.sharers > 0 ? options.sharers : 1;
    assert_int_equal(dataset_cache(&counted->base, &options, &dataset), STATUS_OK);
    memset(bench->reads, 0, sizeof(bench->reads)); // of the key
    return dataset;
}

static struct dataset *open_images(struct bench *bench, struct cached_options options)
{
    return open_salted(bench, options, 0);
}

static void read_all(const struct bench *bench, const struct dataset *dataset, uint8_t salt)
{
    for (uint64_t i = 0; i < SAMPLES; i++) {
        struct counted expected = {.reads = (uint32_t[SAMPLES]){0}, .salt = salt};
        uint8_t wanted[BYTES], bytes[BYTES];
        uint32_t wanted_label, label;
        assert_int_equal(counted_read_bytes(&expected.base, i, wanted, &wanted_label), STATUS_OK);
        assert_int_equal(dataset_read_bytes(dataset, i, bytes, &label), STATUS_OK);
        assert_memory_equal(bytes, wanted, BYTES);
        assert_int_equal(label, wanted_label);
    }
    (void)bench;
}

static uint32_t total_reads(const struct bench *bench)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        total += bench->reads[i];
    }
    return total;
}

/* The file that is kept; "" if there is none. */
static void find_file(const struct bench *bench, char ret_path[512])
{
    DIR *directory = opendir(bench->folder);
    const struct dirent *entry;
    ret_path[0] = '\0';
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) { // NOLINT(concurrency-mt-unsafe)
        if (strstr(entry->d_name, ".pixels") != NULL) {
            snprintf(ret_path, 512, "%s/%s", bench->folder, entry->d_name);
        }
    }
    closedir(directory);
}

static int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    bench->folder = temp_folder_create();
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;
    temp_folder_destroy(bench->folder);
    free(bench);
    return 0;
}

static void what_one_has_decoded_no_other_decodes(void **state)
{
    struct bench *bench = *state;
    const struct cached_options options = {.place = CACHED_IN_MEMORY, .budget = 1 << 20};
    struct dataset *first = open_images(bench, options), *second = open_images(bench, options);
    read_all(bench, first, 0);
    read_all(bench, second, 0);
    read_all(bench, first, 0);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        assert_int_equal(bench->reads[i], 1);
    }
    dataset_close(first);
    read_all(bench, second, 0);
    assert_int_equal(total_reads(bench), SAMPLES);
    dataset_close(second);
    char path[512];
    find_file(bench, path);
    assert_string_equal(path, "");
}

static void on_disk_it_stays_for_the_next_job_but_not_for_other_images(void **state)
{
    struct bench *bench = *state;
    const struct cached_options options = {.place = CACHED_ON_DISK, .budget = 1 << 20};
    struct dataset *dataset = open_images(bench, options);
    read_all(bench, dataset, 0);
    dataset_close(dataset);
    dataset = open_images(bench, options);
    read_all(bench, dataset, 0);
    assert_int_equal(total_reads(bench), 0);
    dataset_close(dataset);
    // Another library decodes them in another way.
    dataset = open_salted(bench, options, 9);
    read_all(bench, dataset, 9);
    assert_int_equal(total_reads(bench), SAMPLES);
    dataset_close(dataset);
}

static void what_does_not_fit_is_decoded_each_time_and_told(void **state)
{
    struct bench *bench = *state;
    captured_log_begin();
    const struct cached_options options = {
        .place = CACHED_IN_MEMORY, .budget = (uint64_t)PLACE * 12, .sharers = 2, .tells = true};
    struct dataset *dataset = open_images(bench, options);
    const char *log = captured_log_end();
    assert_non_null(strstr(log, "--cache has room for 12 of 20 images"));
    struct cached_counts counts;
    read_all(bench, dataset, 0);
    read_all(bench, dataset, 0);
    assert_true(dataset_cache_counts(dataset, &counts));
    // Half of the room is that of another process.
    assert_int_equal(counts.kept, 6);
    assert_int_equal(counts.found, 6);
    assert_int_equal(counts.missed, 14 + 14);
    assert_int_equal(total_reads(bench), 20 + 14);
    dataset_close(dataset);
}

/* As a process leaves it that is killed while it writes, or a disk. */
static void an_image_that_was_not_written_whole_is_decoded_again(void **state)
{
    struct bench *bench = *state;
    const struct cached_options options = {.place = CACHED_ON_DISK, .budget = 1 << 20};
    struct dataset *dataset = open_images(bench, options);
    read_all(bench, dataset, 0);
    char path[512];
    find_file(bench, path);
    int file = open(path, O_RDWR | O_CLOEXEC);
    assert_true(file >= 0);
    static const uint8_t zeros[1024];
    assert_int_equal(pwrite(file, zeros, 300, 3 * PLACE + 500), 300);
    assert_int_equal(pwrite(file, "x", 1, 5 * PLACE + 16), 1); // a label
    assert_int_equal(pwrite(file, zeros, PLACE, 7 * PLACE), PLACE);
    assert_int_equal(ftruncate(file, 19 * PLACE + 10), 0);
    close(file);
    memset(bench->reads, 0, sizeof(bench->reads));
    read_all(bench, dataset, 0);
    assert_int_equal(total_reads(bench), 4);
    assert_true(bench->reads[3] && bench->reads[5] && bench->reads[7] && bench->reads[19]);
    read_all(bench, dataset, 0);
    assert_int_equal(total_reads(bench), 4);
    dataset_close(dataset);
}

static void a_file_that_was_left_behind_is_removed(void **state)
{
    struct bench *bench = *state;
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
    struct bench *bench = *state;
    struct counted *counted = calloc(1, sizeof(*counted));
    struct dataset *dataset;
    struct cached_counts counts;
    assert_non_null(counted);
    counted->base = (struct dataset){.ops = &counted_ops, .sample_count = 1, .class_count = 3};
    counted->reads = bench->reads;
    const struct cached_options options = {
        .place = CACHED_IN_MEMORY, .sharers = 1, .tells = true, .folder = bench->folder};
    captured_log_begin();
    assert_int_equal(dataset_cache(&counted->base, &options, &dataset), STATUS_OK);
    assert_non_null(strstr(captured_log_end(), "--cache keeps nothing: some images changed"));
    assert_false(dataset_cache_counts(dataset, &counts));
    dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_one_has_decoded_no_other_decodes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(on_disk_it_stays_for_the_next_job_but_not_for_other_images,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_decoded_each_time_and_told, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_image_that_was_not_written_whole_is_decoded_again,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_was_left_behind_is_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(images_that_changed_a_moment_ago_are_not_kept, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
