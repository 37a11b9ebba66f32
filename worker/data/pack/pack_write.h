/* Writes packs: the images of images:DIR, of one size, in one file. */
#ifndef WORKER_DATA_PACK_PACK_WRITE_H
#define WORKER_DATA_PACK_PACK_WRITE_H

#include "common/base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct pack_order {
    const char *data; // "images:DIR"
    const char *path; // of the pack; one that is there is replaced
    uint32_t size;    // rows and columns of its images
    uint32_t quality; // of JPEG files, 1 to 100; 0: pixels as they are
    uint64_t seed;    // of the split of a flat folder
    bool skips_bad;
    bool shows_progress;        // on standard error
    const atomic_int *is_ended; // not 0: it is to end, and to leave nothing
};

/* What was written. */
struct pack_account {
    uint64_t train_count, val_count, bytes;
    uint64_t copied; // JPEG files that are in the pack as they were
    uint32_t class_count;
};

/* The file gets its name when it is whole. On failure nothing is left. Logs. */
enum status pack_write(const struct pack_order *order, struct pack_account *ret_account);

#endif
