/* The manifest of a checkpoint: which vectors it has, their sizes and checksums, and the job. Pure.
 *
 * Two lines of JSON. The first says what the file is, and has the checksum of the second:
 *
 *     {"format": "ringside-checkpoint", "version": 1, "blake2b": "..."}
 *     {"step": 100, "vectors": [{"name": "params", "size": 4096, "blake2b": "..."}], "job": {...}}
 *
 * A vector's file has its name, with a dot in the place of the slash. */
#ifndef COMMON_CHECKPOINT_MANIFEST_H
#define COMMON_CHECKPOINT_MANIFEST_H

#include "common/base/status.h"

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MANIFEST_FILE        "manifest.jsonl"
#define MANIFEST_VERSION     1
#define MANIFEST_BYTES_MAX   ((size_t)64 * 1024 * 1024)
#define MANIFEST_VECTORS_MAX 65536
#define MANIFEST_NAME_BYTES  64 // of a vector, terminator included
#define MANIFEST_STEP_MAX    UINT64_C(999999999999)
#define CHECKSUM_BYTES       32
#define CHECKSUM_TEXT_BYTES  (2 * CHECKSUM_BYTES + 1)

struct manifest_vector {
    char name[MANIFEST_NAME_BYTES];
    uint64_t size; // in bytes
    char checksum[CHECKSUM_TEXT_BYTES];
};

struct manifest {
    uint64_t step;
    struct manifest_vector *vectors; // owns
    uint32_t vector_count;
    json_t *job; // owns; an object
};

void manifest_finish(struct manifest *manifest); // zeroed is fine

/* Whether it is a vector's name: words of lower case letters, digits and dashes, or two of them
 * with a slash in between. */
bool manifest_is_name(const char *name);

/* The name of a vector's file. */
void manifest_file_name(const char *name, char ret_file[MANIFEST_NAME_BYTES]);

const struct manifest_vector *manifest_find(const struct manifest *manifest, const char *name);

/* The text of a manifest's file; the caller frees it. */
enum status manifest_encode(const struct manifest *manifest, char **ret_text, size_t *ret_size);

/* STATUS_MALFORMED, STATUS_UNSUPPORTED (of a newer version) or STATUS_NO_MEMORY, with an error that
 * says what is wrong ("is of version 2, ..."), to be read behind the file's name. */
enum status manifest_decode(const char *text, size_t size, struct manifest *ret_manifest,
                            char *ret_error, size_t error_size);

/* BLAKE2b of some bytes, as hex digits. */
void manifest_checksum(const void *bytes, size_t size, char ret_text[CHECKSUM_TEXT_BYTES]);

#endif
