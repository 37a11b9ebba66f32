/* Maps the files of datasets. */
#include "worker/data/data_file.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "worker/data/gzip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Maps the whole file. False, with errno, if it cannot be read or is no regular file. */
static bool map_descriptor(int descriptor, struct data_file *file)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0) {
        return false;
    }
    if (!S_ISREG(info.st_mode)) {
        errno = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
        return false;
    }
    file->size = (size_t)info.st_size;
    if (file->size == 0) {
        return true; // which mmap does not map
    }
    void *bytes = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (bytes == MAP_FAILED) {
        return false;
    }
    (void)madvise(bytes, file->size, MADV_WILLNEED);
    file->bytes = file->owned = bytes;
    file->memory = DATA_FILE_MAPPED;
    return true;
}

/* Opens file->path. False with errno. */
static bool map_path(struct data_file *file)
{
    // A named pipe would otherwise wait for its writer.
    int descriptor = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        return false;
    }
    bool is_mapped = map_descriptor(descriptor, file);
    int error = errno;
    close(descriptor);
    errno = error;
    return is_mapped;
}

static bool set_path(struct data_file *file, const char *folder, const char *name)
{
    int length = snprintf(file->path, sizeof(file->path), "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof(file->path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    return true;
}

/* False with errno; file->path is then the file that failed, or the first name if none exists. */
static bool map_first(struct data_file *file, const char *folder, const char *const *names)
{
    for (const char *const *name = names; *name != NULL; name++) {
        if (set_path(file, folder, *name) && map_path(file)) {
            return true;
        }
        if (errno != ENOENT) {
            return false;
        }
    }
    set_path(file, folder, names[0]);
    errno = ENOENT;
    return false;
}

enum status data_file_open(const char *folder, const char *const *names, const char *advice,
                           struct data_file **ret_file)
{
    struct data_file *file = calloc(1, sizeof(*file));
    if (file == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (!map_first(file, folder, names)) {
        log_error("cannot read %s: %m; %s", file->path, advice);
        data_file_close(file);
        return STATUS_IO;
    }
    *ret_file = file;
    return STATUS_OK;
}

static void release(const struct data_file *file)
{
    if (file->memory == DATA_FILE_MAPPED) {
        munmap(file->owned, file->size);
    } else if (file->memory == DATA_FILE_UNPACKED) {
        memory_destroy_large(file->owned, file->size);
    }
}

void data_file_close(struct data_file *file)
{
    if (file == NULL) {
        return;
    }
    release(file);
    free(file);
}

enum status data_file_unpack(struct data_file *file, size_t size, char *ret_why, size_t why_size)
{
    uint8_t *bytes = memory_create_large(size);
    if (bytes == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = gzip_unpack(file->bytes, file->size, bytes, size, ret_why, why_size);
    if (status != STATUS_OK) {
        memory_destroy_large(bytes, size);
        return status;
    }
    release(file);
    file->bytes = file->owned = bytes;
    file->size = size;
    file->memory = DATA_FILE_UNPACKED;
    return STATUS_OK;
}
