/* Makes bytes of the number of an image. */
#include "tests/support/data/counted.h"

#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct counted {
    struct dataset base;
    uint32_t *reads; // borrowed
    uint32_t side;
    uint8_t salt;
};

static uint8_t byte_of(const struct counted *counted, uint64_t index, size_t at)
{
    return (uint8_t)(index * 31 + at * 7 + at / 251 + counted->salt);
}

static enum status counted_read_bytes(const struct dataset *dataset, uint64_t index,
                                      uint8_t *ret_bytes, uint32_t *ret_label)
{
    const struct counted *counted = (const struct counted *)dataset;
    counted->reads[index]++;
    for (size_t i = 0; i < (size_t)3 * counted->side * counted->side; i++) {
        ret_bytes[i] = byte_of(counted, index, i);
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
    const struct counted *counted = (const struct counted *)dataset;
    *ret_source = (struct pixels_source){
        .channels = 3, .rows = counted->side, .columns = counted->side, .scale = {1, 1, 1}};
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

int counted_set_up(void **state)
{
    struct counted_bench *bench = calloc(1, sizeof(*bench));
    bench->folder = temp_folder_create();
    *state = bench;
    return 0;
}

int counted_tear_down(void **state)
{
    struct counted_bench *bench = *state;
    temp_folder_destroy(bench->folder);
    free(bench);
    return 0;
}

struct dataset *counted_make(struct counted_bench *bench, uint32_t side, uint8_t salt)
{
    struct counted *counted = calloc(1, sizeof(*counted));
    assert_non_null(counted);
    *counted = (struct counted){.base = {.ops = &counted_ops,
                                         .sample = {3, side, side},
                                         .sample_count = COUNTED_SAMPLES,
                                         .class_count = 3,
                                         .stamp = 77},
                                .reads = bench->reads,
                                .side = side,
                                .salt = salt};
    return &counted->base;
}

struct dataset *counted_open(struct counted_bench *bench, struct cached_options options,
                             struct dataset *images)
{
    struct dataset *dataset;
    options.folder = bench->folder;
    assert_int_equal(dataset_cache(images, &options, &dataset), STATUS_OK);
    memset(bench->reads, 0, sizeof(bench->reads)); // of the key
    return dataset;
}

bool counted_read_right(const struct dataset *dataset, uint8_t salt)
{
    uint32_t side = dataset->sample.rows;
    const struct counted expected = {.side = side, .salt = salt};
    size_t size = (size_t)3 * side * side;
    uint8_t *bytes = malloc(size);
    bool is_right = bytes != NULL;
    for (uint64_t i = 0; is_right && i < COUNTED_SAMPLES; i++) {
        uint32_t label;
        is_right =
            dataset_read_bytes(dataset, i, bytes, &label) == STATUS_OK && label == (uint32_t)i % 3;
        for (size_t at = 0; is_right && at < size; at++) {
            is_right = bytes[at] == byte_of(&expected, i, at);
        }
    }
    free(bytes);
    return is_right;
}

uint32_t counted_total(const struct counted_bench *bench)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < COUNTED_SAMPLES; i++) {
        total += bench->reads[i];
    }
    return total;
}

void counted_find_file(const struct counted_bench *bench, char ret_path[512])
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
