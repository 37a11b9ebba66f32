/* The bytes of one file of a dataset: mapped, or in memory if they had to be unpacked.
 *
 * A file that shrinks while it is mapped ends the process with SIGBUS: replace a dataset's files by
 * renaming, never in place. */
#ifndef WORKER_DATA_DATA_FILE_H
#define WORKER_DATA_DATA_FILE_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define DATA_FILE_PATH_BYTES 1280 // so that a line of the log holds it and what is wrong
#define DATA_FILE_WHY_BYTES  256  // for a text that says what is wrong with a file

enum data_file_memory {
    DATA_FILE_BORROWED, // somebody else's memory
    DATA_FILE_MAPPED,
    DATA_FILE_UNPACKED,
};

struct data_file {
    char path[DATA_FILE_PATH_BYTES]; // for messages
    const uint8_t *bytes;            // NULL if size is 0
    size_t size;
    enum data_file_memory memory;
    void *owned; // the same bytes, if they are not borrowed
};

/* Opens the first of `names` (ends with NULL) that exists in the folder. Logs why it cannot, with
 * `advice` on what to do. */
enum status data_file_open(const char *folder, const char *const *names, const char *advice,
                           struct data_file **ret_file);
void data_file_close(struct data_file *file); // NULL is fine

/* Puts the `size` bytes that a gzip file must unpack to in place of the packed ones. Otherwise the
 * file stays as it is, and ret_why says what is wrong with it. */
enum status data_file_unpack(struct data_file *file, size_t size, char *ret_why, size_t why_size);

#endif
