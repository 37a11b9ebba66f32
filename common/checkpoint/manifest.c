/* Manifests as text, by jansson. What is read may be anything: everything is checked. */
#include "common/checkpoint/manifest.h"

#include <sodium.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT           "ringside-checkpoint"
#define HEADER_BYTES_MAX 512

void manifest_finish(struct manifest *manifest)
{
    free(manifest->vectors);
    json_decref(manifest->job);
    *manifest = (struct manifest){0};
}

static bool is_word_character(char character)
{
    return (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9') ||
           character == '-';
}

bool manifest_is_name(const char *name)
{
    size_t size = strnlen(name, MANIFEST_NAME_BYTES);
    uint32_t slashes = 0;
    if (size == 0 || size == MANIFEST_NAME_BYTES || name[size - 1] == '/') {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        bool is_slash = name[i] == '/' && i > 0;
        slashes += is_slash ? 1 : 0;
        if (!is_slash && !is_word_character(name[i])) {
            return false;
        }
    }
    return slashes <= 1;
}

void manifest_file_name(const char *name, char ret_file[MANIFEST_NAME_BYTES])
{
    assert(manifest_is_name(name));
    snprintf(ret_file, MANIFEST_NAME_BYTES, "%s", name);
    char *slash = strchr(ret_file, '/');
    if (slash != NULL) {
        *slash = '.';
    }
}

const struct manifest_vector *manifest_find(const struct manifest *manifest, const char *name)
{
    for (uint32_t i = 0; i < manifest->vector_count; i++) {
        if (strcmp(manifest->vectors[i].name, name) == 0) {
            return &manifest->vectors[i];
        }
    }
    return NULL;
}

void manifest_checksum(const void *bytes, size_t size, char ret_text[CHECKSUM_TEXT_BYTES])
{
    unsigned char checksum[CHECKSUM_BYTES];
    int failed = sodium_init(); // 1: it was already
    assert(failed >= 0);
    failed = crypto_generichash(checksum, sizeof(checksum), bytes, size, NULL, 0);
    assert(failed == 0);
    sodium_bin2hex(ret_text, CHECKSUM_TEXT_BYTES, checksum, sizeof(checksum));
}

static json_t *encode_vectors(const struct manifest *manifest)
{
    json_t *vectors = json_array();
    for (uint32_t i = 0; i < manifest->vector_count && vectors != NULL; i++) {
        const struct manifest_vector *vector = &manifest->vectors[i];
        json_t *item = json_pack("{s:s, s:I, s:s}", "name", vector->name, "size",
                                 (json_int_t)vector->size, "blake2b", vector->checksum);
        if (item == NULL || json_array_append_new(vectors, item) != 0) {
            json_decref(vectors);
            vectors = NULL;
        }
    }
    return vectors;
}

enum status manifest_encode(const struct manifest *manifest, char **ret_text, size_t *ret_size)
{
    char checksum[CHECKSUM_TEXT_BYTES];
    json_t *vectors = encode_vectors(manifest);
    json_t *body = json_pack("{s:I, s:o, s:O}", "step", (json_int_t)manifest->step, "vectors",
                             vectors, "job", manifest->job);
    char *line = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    if (line == NULL) {
        return STATUS_NO_MEMORY;
    }
    manifest_checksum(line, strlen(line), checksum);
    char *text;
    int size =
        asprintf(&text, "{\"format\": \"" FORMAT "\", \"version\": %d, \"blake2b\": \"%s\"}\n%s\n",
                 MANIFEST_VERSION, checksum, line);
    free(line);
    if (size < 0) {
        return STATUS_NO_MEMORY;
    }
    if ((size_t)size > MANIFEST_BYTES_MAX) {
        free(text);
        return STATUS_INVALID;
    }
    *ret_text = text;
    *ret_size = (size_t)size;
    return STATUS_OK;
}

static bool is_checksum(const char *text)
{
    return text != NULL && strlen(text) == CHECKSUM_TEXT_BYTES - 1 &&
           strspn(text, "0123456789abcdef") == CHECKSUM_TEXT_BYTES - 1;
}

/* The first line, of `size` bytes: what the file is, and that the second one is whole. */
static enum status decode_header(const char *line, size_t size, const char *body, size_t body_size,
                                 char *ret_error, size_t error_size)
{
    char checksum[CHECKSUM_TEXT_BYTES];
    json_t *header =
        size <= HEADER_BYTES_MAX ? json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const char *format = json_string_value(json_object_get(header, "format"));
    const char *expected = json_string_value(json_object_get(header, "blake2b"));
    json_int_t version = json_integer_value(json_object_get(header, "version"));
    enum status status = STATUS_MALFORMED;
    if (format == NULL || strcmp(format, FORMAT) != 0 || version < 1) {
        snprintf(ret_error, error_size, "is not the manifest of a checkpoint of Ringside");
    } else if (version > MANIFEST_VERSION) {
        snprintf(
            ret_error, error_size,
            "is of version %lld, and this program reads up to version %d: use a newer Ringside",
            (long long)version, MANIFEST_VERSION);
        status = STATUS_UNSUPPORTED;
    } else if (!is_checksum(expected)) {
        snprintf(ret_error, error_size, "is damaged: it has no checksum of itself");
    } else {
        manifest_checksum(body, body_size, checksum);
        bool is_whole = strcmp(checksum, expected) == 0;
        status = is_whole ? STATUS_OK : STATUS_MALFORMED;
        if (!is_whole) {
            snprintf(ret_error, error_size, "is damaged: its checksum differs");
        }
    }
    json_decref(header);
    return status;
}

static bool decode_vector(const json_t *item, struct manifest_vector *ret_vector)
{
    const char *name = json_string_value(json_object_get(item, "name"));
    const char *checksum = json_string_value(json_object_get(item, "blake2b"));
    const json_t *size = json_object_get(item, "size");
    if (name == NULL || !manifest_is_name(name) || !is_checksum(checksum) ||
        !json_is_integer(size) || json_integer_value(size) < 0) {
        return false;
    }
    snprintf(ret_vector->name, sizeof(ret_vector->name), "%s", name);
    snprintf(ret_vector->checksum, sizeof(ret_vector->checksum), "%s", checksum);
    ret_vector->size = (uint64_t)json_integer_value(size);
    return true;
}

static int compare_names(const void *a, const void *b)
{
    const struct manifest_vector *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static enum status decode_vectors(const json_t *items, struct manifest *manifest)
{
    size_t count = json_array_size(items);
    if (!json_is_array(items) || count == 0 || count > MANIFEST_VECTORS_MAX) {
        return STATUS_MALFORMED;
    }
    manifest->vectors = calloc(count, sizeof(manifest->vectors[0]));
    if (manifest->vectors == NULL) {
        return STATUS_NO_MEMORY;
    }
    manifest->vector_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        if (!decode_vector(json_array_get(items, i), &manifest->vectors[i])) {
            return STATUS_MALFORMED;
        }
    }
    qsort(manifest->vectors, count, sizeof(manifest->vectors[0]), compare_names);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(manifest->vectors[i - 1].name, manifest->vectors[i].name) == 0) {
            return STATUS_MALFORMED;
        }
    }
    return STATUS_OK;
}

static enum status decode_body(const char *line, size_t size, struct manifest *manifest)
{
    json_t *body = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);
    json_t *job = json_object_get(body, "job");
    const json_t *step = json_object_get(body, "step");
    enum status status = STATUS_MALFORMED;
    if (json_is_object(job) && json_is_integer(step) && json_integer_value(step) >= 0 &&
        (uint64_t)json_integer_value(step) <= MANIFEST_STEP_MAX) {
        manifest->step = (uint64_t)json_integer_value(step);
        manifest->job = json_incref(job);
        status = decode_vectors(json_object_get(body, "vectors"), manifest);
    }
    json_decref(body);
    return status;
}

enum status manifest_decode(const char *text, size_t size, struct manifest *ret_manifest,
                            char *ret_error, size_t error_size)
{
    const char *end = memchr(text, '\n', size);
    size_t header_size = end != NULL ? (size_t)(end - text) : size;
    size_t body_size = end != NULL ? size - header_size - 1 : 0;
    // The second line's end is not summed up, and must be there: what is cut short lacks it.
    bool is_ended = body_size > 0 && text[size - 1] == '\n';
    enum status status = decode_header(text, header_size, text + size - body_size,
                                       body_size - (is_ended ? 1 : 0), ret_error, error_size);
    if (status != STATUS_OK) {
        return status;
    }
    struct manifest manifest = {0};
    if (is_ended) {
        status = decode_body(text + header_size + 1, body_size - 1, &manifest);
    } else {
        status = STATUS_MALFORMED;
    }
    if (status != STATUS_OK) {
        snprintf(ret_error, error_size, "%s",
                 status == STATUS_NO_MEMORY
                     ? "takes more memory than there is"
                     : "does not describe a checkpoint as this version does");
        manifest_finish(&manifest);
        return status;
    }
    *ret_manifest = manifest;
    return STATUS_OK;
}
