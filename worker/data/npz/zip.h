/* Members of zip files that are in memory: stored or deflated, with zip64 where it is needed.
 *
 * Where members lie is read from the directory at the end of the file, as every reader should:
 * what a member says of itself in front of its bytes may have been unknown when it was written.
 * Nothing that a file says is used before it is known to lie within the file. Pure. */
#ifndef WORKER_DATA_NPZ_ZIP_H
#define WORKER_DATA_NPZ_ZIP_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zip {
    const uint8_t *file; // (size), borrowed
    uint64_t size;
    uint64_t directory, directory_end; // in the file
};

struct zip_member {
    const char *name; // (name_size), in the file; may hold anything
    size_t name_size;
    const uint8_t *packed; // (packed_bytes), in the file
    uint64_t packed_bytes, bytes;
    uint32_t crc;
    bool is_deflated; // otherwise it is stored, and packed_bytes is bytes
};

/* STATUS_MALFORMED, with the reason in ret_why: it is no zip file, or one that was cut. */
enum status zip_open(const uint8_t *file, uint64_t size, struct zip *ret_zip, char *ret_why,
                     size_t why_size);

/* The member at a place of the directory, which begins at zip->directory, and moves *at to the next
 * one. STATUS_END_OF_DATA behind the last. STATUS_MALFORMED, or STATUS_UNSUPPORTED where it is
 * encrypted or compressed in another way, with the reason. */
enum status zip_next(const struct zip *zip, uint64_t *at, struct zip_member *ret_member,
                     char *ret_why, size_t why_size);

/* Unpacks a deflated member, or checks a stored one, of which ret_bytes (bytes) is NULL.
 * STATUS_MALFORMED, with the reason: it is damaged. ret_bytes is scratch until then. */
enum status zip_read(const struct zip_member *member, uint8_t *ret_bytes, char *ret_why,
                     size_t why_size);

#endif
