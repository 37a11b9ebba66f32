/* Fuzzes the reading of decoded images that are kept: whatever lies in the file, an image is as it
 * is decoded, or has the very bytes of its place, with a sound checksum and a label that there is.
 * The input is the file; once more it is read with the heads that belong to it. */
#include "common/base/crc32c.h"
#include "worker/data/cached.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAMPLES     6
#define SIDE        4
#define BYTES       ((size_t)3 * SIDE * SIDE)
#define HEAD_BYTES  24
#define PLACE_BYTES 128 // head and bytes, rounded up to 64
#define CLASSES     3
#define PATH_BYTES  512

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static enum status read_plain(const struct dataset *dataset, uint64_t index, uint8_t *ret_bytes,
                              uint32_t *ret_label)
{
    (void)dataset;
    for (size_t i = 0; i < BYTES; i++) {
        ret_bytes[i] = (uint8_t)(index * 37 + i);
    }
    *ret_label = (uint32_t)(index % CLASSES);
    return STATUS_OK;
}

static enum status read_part(const struct dataset *dataset, uint64_t index,
                             const struct crop_draw *part, uint8_t *ret_bytes, uint32_t *ret_label)
{
    (void)part;
    return read_plain(dataset, index, ret_bytes, ret_label);
}

static void describe(const struct dataset *dataset, struct pixels_source *ret_source)
{
    (void)dataset;
    *ret_source =
        (struct pixels_source){.channels = 3, .rows = SIDE, .columns = SIDE, .scale = {1, 1, 1}};
}

static void close_plain(struct dataset *dataset)
{
    free(dataset);
}

static const struct dataset_ops plain_ops = {
    .read = dataset_read_by_bytes,
    .describe = describe,
    .read_bytes = read_plain,
    .convert = dataset_convert_as_described,
    .read_part = read_part,
    .close = close_plain,
};

static struct dataset *open_kept(const char *folder)
{
    const struct cached_options options = {
        .place = CACHED_IN_MEMORY, .budget = 1 << 20, .folder = folder};
    struct dataset *inner = calloc(1, sizeof(*inner)), *dataset;
    assert(inner != NULL);
    *inner = (struct dataset){.ops = &plain_ops,
                              .sample = {3, SIDE, SIDE},
                              .sample_count = SAMPLES,
                              .class_count = CLASSES,
                              .stamp = 5};
    enum status status = dataset_cache(inner, &options, &dataset);
    assert(status == STATUS_OK && dataset->cached != NULL);
    return dataset;
}

static int open_file(const char *folder)
{
    char path[PATH_BYTES + 256] = "";
    DIR *directory = opendir(folder);
    const struct dirent *entry;
    assert(directory != NULL);
    while ((entry = readdir(directory)) != NULL) { // NOLINT(concurrency-mt-unsafe)
        if (strstr(entry->d_name, ".pixels") != NULL) {
            snprintf(path, sizeof(path), "%.500s/%s", folder, entry->d_name);
        }
    }
    closedir(directory);
    int file = open(path, O_RDWR | O_CLOEXEC);
    assert(file >= 0);
    return file;
}

/* Gives each whole place of the input the head that belongs to it, but for the label. */
static void mend(uint8_t *bytes, size_t size, const uint8_t *first)
{
    for (uint64_t index = 0; (index + 1) * PLACE_BYTES <= size; index++) {
        uint8_t *place = bytes + index * PLACE_BYTES;
        memcpy(place, first, 8); // the key
        memcpy(place + 8, &index, 8);
        uint32_t sum = crc32c(place + HEAD_BYTES, BYTES) ^ crc32c(place, 20);
        memcpy(place + 20, &sum, 4);
    }
}

static void check(const struct dataset *dataset, const uint8_t *bytes, size_t size)
{
    for (uint64_t index = 0; index < SAMPLES; index++) {
        uint8_t expected[BYTES], found[BYTES];
        uint32_t expected_label, label;
        const uint8_t *place = bytes + index * PLACE_BYTES;
        enum status status = read_plain(NULL, index, expected, &expected_label);
        assert(status == STATUS_OK);
        status = dataset_read_bytes(dataset, index, found, &label);
        assert(status == STATUS_OK && label < CLASSES);
        bool is_plain = label == expected_label && memcmp(found, expected, BYTES) == 0;
        bool is_there = index * PLACE_BYTES + HEAD_BYTES + BYTES <= size;
        assert(is_plain || (is_there && memcmp(found, place + HEAD_BYTES, BYTES) == 0 &&
                            memcmp(&label, place + 16, sizeof(label)) == 0));
    }
}

static void write_file(int file, const uint8_t *bytes, size_t size)
{
    assert(ftruncate(file, 0) == 0);
    assert(pwrite(file, bytes, size, 0) == (ssize_t)size);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char folder[] = "/tmp/ringside-fuzz-XXXXXX";
    uint8_t first[8], *sound = malloc(size + 1);
    assert(sound != NULL && mkdtemp(folder) != NULL);
    struct dataset *dataset = open_kept(folder);
    int file = open_file(folder);
    ssize_t got = pread(file, first, sizeof(first), 0);
    assert(got == sizeof(first));
    write_file(file, bytes, size);
    check(dataset, bytes, size);
    memcpy(sound, bytes, size);
    mend(sound, size, first);
    write_file(file, sound, size);
    check(dataset, sound, size);
    close(file);
    dataset_close(dataset);
    int removed = rmdir(folder);
    assert(removed == 0);
    free(sound);
    return 0;
}
