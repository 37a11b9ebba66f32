/* Appends lines with one write each. */
#include "ps-server/record/metrics_file.h"

#include "common/base/new_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum status metrics_file_open(struct metrics_file *file, const char *path, bool goes_on)
{
    metrics_file_close(file);
    file->fd = goes_on ? new_file_append(path) : new_file_open(path, false);
    return file->fd >= 0 ? STATUS_OK : STATUS_IO;
}

bool metrics_file_is_in_place(const struct metrics_file *file, const char *path)
{
    return new_file_is_at(file->fd, path);
}

void metrics_file_close(struct metrics_file *file)
{
    if (file->fd >= 0) {
        close(file->fd);
        file->fd = -1;
    }
}

/* What was written of it before the disk was full goes again. */
static bool write_whole(int fd, const char *text, size_t size)
{
    struct stat before;
    if (fstat(fd, &before) != 0) {
        return false;
    }
    size_t at = 0;
    while (at < size) {
        ssize_t wrote = write(fd, text + at, size - at);
        if (wrote < 0 && errno != EINTR) {
            int error = errno;
            (void)!ftruncate(fd, before.st_size);
            errno = error;
            return false;
        }
        at += wrote > 0 ? (size_t)wrote : 0;
    }
    return true;
}

enum status metrics_file_add(struct metrics_file *file, const json_t *line)
{
    char *text = json_dumps(line, JSON_REAL_PRECISION(9));
    size_t size = text != NULL ? strlen(text) : 0;
    if (text == NULL) {
        errno = ENOMEM;
        return STATUS_IO;
    }
    text[size] = '\n'; // in the place of the terminator
    bool is_written = write_whole(file->fd, text, size + 1);
    int error = errno;
    free(text);
    errno = error;
    return is_written ? STATUS_OK : STATUS_IO;
}
