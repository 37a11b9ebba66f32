/* A file of TensorBoard's: one that only grows, by records.
 *
 *     record = length (8 bytes), checksum of the length (4), bytes, checksum of the bytes (4)
 *
 * Numbers are little-endian. A checksum is the CRC-32C, turned right by 15 bits, plus a constant:
 * the CRC of bytes that have CRCs among them finds fewer errors. Readers look at a file while it is
 * written, so each record is one write. */
#ifndef PS_SERVER_RECORD_EVENT_FILE_H
#define PS_SERVER_RECORD_EVENT_FILE_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENT_RECORD_EXTRA 16 // bytes of a record besides its own

/* The checksum in the form that records have. */
uint32_t event_file_mask(uint32_t crc);

/* Makes a record of the bytes. ret_record has room for size + EVENT_RECORD_EXTRA. */
void event_file_record(const void *bytes, size_t size, unsigned char *ret_record);

/* The number of the newest file of a folder; 0: it has none, or cannot be read. */
uint64_t event_file_newest(const char *folder);

/* Opens a new file of a folder, and writes its path. Readers take files in the order of their
 * names, so of their numbers: usually the time, in seconds; then of the endings of their names, ""
 * or one that tells several of a number apart. A file of the same name is replaced. Returns -1 and
 * errno. */
int event_file_open(const char *folder, uint64_t number, const char *ending, char *ret_path,
                    size_t path_bytes);

/* Removes such a file, if it is there, and writes its path. Returns whether it is gone; or errno.
 */
bool event_file_remove(const char *folder, uint64_t number, const char *ending, char *ret_path,
                       size_t path_bytes);

/* Appends a record. STATUS_NO_MEMORY, STATUS_IO and errno. */
enum status event_file_append(int fd, const void *bytes, size_t size);

#endif
