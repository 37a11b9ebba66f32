/* Fuzzes MNIST's files, plain and gzip: a plain file is accepted exactly if the format allows it; a
 * packed one is accepted only if what it unpacked to is accepted, too.
 *
 * The first byte of an input says whether the rest is a file of images or of labels. */
#include "worker/data/gzip.h"
#include "worker/data/idx.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static uint64_t number_at(const uint8_t *bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < 4; i++) {
        number = number * 256 + bytes[i];
    }
    return number;
}

static bool is_images(const uint8_t *bytes, size_t size)
{
    return size >= 16 && number_at(bytes) == 2051 && number_at(bytes + 8) == 28 &&
           number_at(bytes + 12) == 28 && size == 16 + number_at(bytes + 4) * 28 * 28;
}

static bool is_labels(const uint8_t *bytes, size_t size)
{
    return size >= 8 && number_at(bytes) == 2049 && size == 8 + number_at(bytes + 4);
}

static bool is_valid(enum idx_kind kind, const uint8_t *bytes, size_t size)
{
    bool is_form = kind == IDX_IMAGES ? is_images(bytes, size) : is_labels(bytes, size);
    return is_form && number_at(bytes + 4) > 0 && number_at(bytes + 4) <= IDX_COUNT_MAX;
}

/* Reads every value, so that a sanitizer sees those that are not there. */
static void touch(const struct idx_values *values)
{
    uint32_t sum = 0;
    for (uint64_t i = 0; i < values->count * values->bytes_each; i++) {
        sum += values->bytes[i];
    }
    volatile uint32_t seen = sum;
    (void)seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct data_file *file = calloc(1, sizeof(*file));
    if (size == 0 || file == NULL) {
        free(file);
        return 0;
    }
    enum idx_kind kind = bytes[0] % 2 == 0 ? IDX_IMAGES : IDX_LABELS;
    file->bytes = bytes + 1;
    file->size = size - 1;
    bool is_packed = gzip_is_packed(file->bytes, file->size);

    char why[DATA_FILE_WHY_BYTES] = "";
    struct idx_values values;
    enum status status = idx_read(kind, file, &values, why, sizeof(why));
    assert(is_packed || (status == STATUS_OK) == is_valid(kind, file->bytes, file->size));
    assert(status != STATUS_MALFORMED || why[0] != '\0');
    if (status == STATUS_OK) {
        assert(is_valid(kind, file->bytes, file->size));
        assert(values.count == number_at(file->bytes + 4));
        touch(&values);
    }
    data_file_close(file);
    return 0;
}
