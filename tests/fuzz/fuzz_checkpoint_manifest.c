/* Fuzzes manifests of checkpoints. What is taken encodes to a text that decodes to the same and
 * encodes to the same bytes; what is refused has a reason.
 *
 * A checksum would keep every changed body out. So the first byte of an input says whether the rest
 * is a file, or the second line of one whose first line is put before it. */
#include "common/checkpoint/manifest.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_vectors(const struct manifest *manifest)
{
    for (uint32_t i = 0; i < manifest->vector_count; i++) {
        const struct manifest_vector *vector = &manifest->vectors[i];
        char file[MANIFEST_NAME_BYTES];
        assert(manifest_is_name(vector->name) && vector->size <= INT64_MAX);
        assert(manifest_find(manifest, vector->name) == vector); // so names differ
        manifest_file_name(vector->name, file);
        assert(strchr(file, '/') == NULL && file[0] != '.' && strcmp(file, MANIFEST_FILE) != 0);
    }
}

static void check_again(const struct manifest *manifest)
{
    struct manifest again;
    char error[256], *text, *same;
    size_t size, same_size;
    check_vectors(manifest);
    enum status status = manifest_encode(manifest, &text, &size);
    assert(status == STATUS_OK);
    status = manifest_decode(text, size, &again, error, sizeof(error));
    assert(status == STATUS_OK && again.step == manifest->step);
    assert(json_equal(again.job, manifest->job));
    status = manifest_encode(&again, &same, &same_size);
    assert(status == STATUS_OK && same_size == size && memcmp(same, text, size) == 0);
    manifest_finish(&again);
    free(same);
    free(text);
}

static void check(const char *text, size_t size)
{
    struct manifest manifest;
    char error[256] = "";
    if (manifest_decode(text, size, &manifest, error, sizeof(error)) == STATUS_OK) {
        check_again(&manifest);
        manifest_finish(&manifest);
    } else {
        assert(error[0] != '\0');
    }
}

static void check_body(const char *body, size_t size)
{
    char checksum[CHECKSUM_TEXT_BYTES], *text = malloc(size + 256);
    if (text == NULL) {
        return;
    }
    manifest_checksum(body, size, checksum);
    int header = snprintf(
        text, 256, "{\"format\": \"ringside-checkpoint\", \"version\": 1, \"blake2b\": \"%s\"}\n",
        checksum);
    assert(header > 0 && header < 255);
    memcpy(text + header, body, size);
    text[(size_t)header + size] = '\n';
    check(text, (size_t)header + size + 1);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0) {
        return 0;
    }
    if (bytes[0] == 'f') {
        check((const char *)bytes + 1, size - 1);
    } else {
        check_body((const char *)bytes + 1, size - 1);
    }
    return 0;
}
