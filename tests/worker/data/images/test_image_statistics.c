/* Tests of the mean and deviation of folders of images, and of what is kept of them. */
#include "common/base/crc32c.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/data/image_folder.h"
#include "worker/data/dataset.h"
#include "worker/data/statistics.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE         8
#define FIRST_SUM_AT 32 // in a file: behind a magic word, key, samples and pixels

static struct dataset *open_images(const char *folder, uint32_t size)
{
    char data[512];
    struct dataset *dataset = NULL;
    struct dataset_options options = {.seed = 3, .split = DATASET_TRAIN, .image_size = size};
    snprintf(data, sizeof(data), "images:%s", folder);
    assert_int_equal(dataset_open(data, &options, &dataset), STATUS_OK);
    return dataset;
}

/* Greys 10, 20, 30 and 40 to train, of files that are older than two seconds. */
static char *make_folder(void)
{
    static const char *const names[] = {"train/cat/1.jpg", "train/cat/2.jpg", "train/dog/1.jpg",
                                        "train/dog/2.jpg", "val/cat/1.jpg",   "val/dog/1.jpg"};
    char *folder = temp_folder_create();
    for (uint8_t i = 0; i < 6; i++) {
        image_folder_put_grey(folder, names[i], (uint8_t)(10 * (i + 1)));
        image_folder_age(folder, names[i]);
    }
    return folder;
}

static struct statistics count(const char *folder, uint32_t size, uint64_t samples)
{
    struct statistics statistics;
    struct dataset *dataset = open_images(folder, size);
    assert_int_equal(statistics_count(dataset, samples, false, &statistics), STATUS_OK);
    dataset_close(dataset);
    return statistics;
}

/* Finds the only file of sums that is kept in the folder; returns how many there are. */
static int find_kept(const char *cache, char ret_path[512])
{
    char path[300];
    snprintf(path, sizeof(path), "%s/images", cache);
    DIR *folder = opendir(path);
    int found = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        const char *end = strrchr(entry->d_name, '.');
        if (end != NULL && strcmp(end, ".sums") == 0) {
            snprintf(ret_path, 512, "%.250s/%.200s", path, entry->d_name);
            found++;
        }
    }
    closedir(folder);
    return found;
}

/* Changes a byte of a file. */
static void break_file(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
    assert_int_equal(fclose(file), 0);
}

static void sums_are_kept_for_the_files_as_they_are(void **state)
{
    (void)state;
    char *cache = temp_folder_create(), *folder = make_folder(), path[512];
    setenv("RINGSIDE_CACHE", cache, 1);
    struct statistics first = count(folder, SIZE, 4);
    assert_int_equal(first.pixels, 4 * SIZE * SIZE);
    assert_in_range(first.sums[1], 98 * SIZE * SIZE, 102 * SIZE * SIZE); // greys, as JPEG has them
    assert_int_equal(find_kept(cache, path), 1);
    struct statistics again = count(folder, SIZE, 4);
    assert_memory_equal(&again, &first, sizeof(first));
    assert_int_equal(find_kept(cache, path), 1);
    break_file(path, 40); // what is broken is counted anew
    again = count(folder, SIZE, 4);
    assert_memory_equal(&again, &first, sizeof(first));

    count(folder, SIZE, 3); // fewer images
    assert_int_equal(find_kept(cache, path), 2);
    count(folder, 2 * SIZE, 4); // at another size
    assert_int_equal(find_kept(cache, path), 3);
    image_folder_put_grey(folder, "train/cat/1.jpg", 90); // one with other pixels, and another time
    struct statistics changed = count(folder, SIZE, 4);
    assert_true(changed.sums[0] > first.sums[0] + 78ULL * SIZE * SIZE);
    assert_int_equal(find_kept(cache, path), 3); // it is too new to be kept
    image_folder_age(folder, "train/cat/1.jpg");
    again = count(folder, SIZE, 4);
    assert_memory_equal(&again, &changed, sizeof(changed));
    assert_int_equal(find_kept(cache, path), 4);
    temp_folder_destroy(folder);
    temp_folder_destroy(cache);
}

/* Adds one to the first sum of a file, which stays whole. */
static void change_kept(const char *path)
{
    uint8_t bytes[256];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    assert_int_equal(fclose(file), 0);
    assert_in_range(size, 64, sizeof(bytes) - 1);
    uint64_t sum;
    memcpy(&sum, bytes + FIRST_SUM_AT, sizeof(sum));
    sum++;
    memcpy(bytes + FIRST_SUM_AT, &sum, sizeof(sum));
    uint32_t check = crc32c(bytes, (uint32_t)size - 8);
    memcpy(bytes + size - 8, &check, sizeof(check));
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void kept_sums_stand_for_the_images(void **state)
{
    (void)state;
    char *cache = temp_folder_create(), *folder = make_folder(), path[512];
    setenv("RINGSIDE_CACHE", cache, 1);
    struct statistics first = count(folder, SIZE, 4);
    assert_int_equal(find_kept(cache, path), 1);
    change_kept(path);
    struct statistics again = count(folder, SIZE, 4);
    assert_int_equal(again.sums[0], first.sums[0] + 1);
    setenv("RINGSIDE_CACHE", "", 1); // nothing is kept
    again = count(folder, SIZE, 4);
    assert_memory_equal(&again, &first, sizeof(first));
    temp_folder_destroy(folder);
    temp_folder_destroy(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_kept_for_the_files_as_they_are),
        cmocka_unit_test(kept_sums_stand_for_the_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
