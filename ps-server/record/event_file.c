/* Writes records as TensorBoard reads them. */
#include "ps-server/record/event_file.h"

#include "common/base/crc32c.h"
#include "common/base/new_file.h"
#include "common/base/number.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MASK_DELTA UINT32_C(0xA282EAD8)
#define PATH_BYTES 4352
#define NAME_START "events.out.tfevents." // TensorBoard looks for "tfevents" in a name
// Names of ten digits are in the order of their numbers; there is a next one.
#define NUMBER_MAX UINT64_C(9999999998)

uint32_t event_file_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + MASK_DELTA;
}

/* Little-endian on any machine. */
static void put(unsigned char *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        at[i] = (unsigned char)(value >> 8 * i);
    }
}

void event_file_record(const void *bytes, size_t size, unsigned char *ret_record)
{
    put(ret_record, size, 8);
    put(ret_record + 8, event_file_mask(crc32c(ret_record, 8)), 4);
    memcpy(ret_record + 12, bytes, size);
    put(ret_record + 12 + size, event_file_mask(crc32c(bytes, size)), 4);
}

/* The number in a file's name; 0: it is none of TensorBoard's. */
static uint64_t number_of(const char *name)
{
    const size_t start = strlen(NAME_START);
    uint64_t number = 0;
    if (strncmp(name, NAME_START, start) == 0) {
        const char *digits = name + start;
        number_whole(digits, strspn(digits, "0123456789"), NUMBER_MAX, &number);
    }
    return number;
}

uint64_t event_file_newest(const char *folder)
{
    uint64_t newest = 0;
    DIR *entries = opendir(folder);
    if (entries == NULL) {
        return 0;
    }
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody else reads this stream
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        uint64_t number = number_of(entry->d_name);
        newest = number > newest ? number : newest;
    }
    closedir(entries);
    return newest;
}

/* Whether the path fits. */
static bool write_path(const char *folder, uint64_t number, const char *ending, char *ret_path,
                       size_t path_bytes)
{
    int length = snprintf(ret_path, path_bytes, "%s/" NAME_START "%010" PRIu64 ".ringside%s",
                          folder, number, ending);
    return length >= 0 && (size_t)length < path_bytes;
}

int event_file_open(const char *folder, uint64_t number, const char *ending, char *ret_path,
                    size_t path_bytes)
{
    if (!write_path(folder, number, ending, ret_path, path_bytes)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return new_file_open(ret_path, true);
}

bool event_file_remove(const char *folder, uint64_t number, const char *ending, char *ret_path,
                       size_t path_bytes)
{
    if (!write_path(folder, number, ending, ret_path, path_bytes)) {
        errno = ENAMETOOLONG;
        return false;
    }
    return unlink(ret_path) == 0 || errno == ENOENT;
}

/* All of it, or errno. */
static bool write_all(int fd, const unsigned char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t wrote = write(fd, bytes, size);
        if (wrote < 0 && errno != EINTR) {
            return false;
        }
        size_t taken = wrote > 0 ? (size_t)wrote : 0;
        bytes += taken;
        size -= taken;
    }
    return true;
}

enum status event_file_append(int fd, const void *bytes, size_t size)
{
    unsigned char *record = malloc(size + EVENT_RECORD_EXTRA);
    if (record == NULL) {
        return STATUS_NO_MEMORY;
    }
    event_file_record(bytes, size, record);
    bool is_written = write_all(fd, record, size + EVENT_RECORD_EXTRA);
    int error = errno;
    free(record);
    errno = error;
    return is_written ? STATUS_OK : STATUS_IO;
}
