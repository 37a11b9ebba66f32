/* Opens files that must be new, and judges folders by their owner and mode. */
#include "common/base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4352

int new_file_open(const char *path, bool replaces)
{
    static const int flags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC;
    int fd = open(path, flags, 0666);
    if (fd < 0 && errno == EEXIST && replaces && unlink(path) == 0) {
        fd = open(path, flags, 0666);
    }
    return fd;
}

FILE *new_file_stream(const char *path, bool replaces)
{
    int fd = new_file_open(path, replaces);
    if (fd < 0) {
        return NULL;
    }
    FILE *stream = fdopen(fd, "a");
    if (stream == NULL) {
        close(fd);
    }
    return stream;
}

static bool write_zeros(FILE *stream, size_t bytes)
{
    static const char zeros[4096];
    while (bytes > 0) {
        size_t part = bytes < sizeof(zeros) ? bytes : sizeof(zeros);
        if (fwrite(zeros, part, 1, stream) != 1) {
            return false;
        }
        bytes -= part;
    }
    return fflush(stream) == 0;
}

enum status new_file_fill(const char *path, size_t bytes)
{
    FILE *stream = new_file_stream(path, true);
    if (stream == NULL) {
        return STATUS_IO;
    }
    int error = write_zeros(stream, bytes) ? 0 : errno;
    if (fclose(stream) != 0 && error == 0) {
        error = errno;
    }
    if (error == 0) {
        return STATUS_OK;
    }
    unlink(path);
    errno = error;
    return STATUS_IO;
}

/* To the disk. */
static bool write_new(const char *path, const char *bytes, size_t size)
{
    int fd = new_file_open(path, true);
    bool is_written = fd >= 0;
    for (size_t at = 0; is_written && at < size;) {
        ssize_t wrote = write(fd, bytes + at, size - at);
        is_written = wrote > 0 || (wrote < 0 && errno == EINTR);
        at += wrote > 0 ? (size_t)wrote : 0;
    }
    is_written = is_written && fsync(fd) == 0;
    int error = errno;
    if (fd >= 0 && close(fd) != 0 && is_written) {
        is_written = false;
        error = errno;
    }
    errno = error;
    return is_written;
}

enum status new_file_replace(const char *path, const void *bytes, size_t size)
{
    char draft[PATH_BYTES];
    if (snprintf(draft, sizeof(draft), "%s.part", path) >= (int)sizeof(draft)) {
        errno = ENAMETOOLONG;
        return STATUS_IO;
    }
    if (write_new(draft, bytes, size) && rename(draft, path) == 0) {
        return STATUS_OK;
    }
    int error = errno;
    unlink(draft);
    errno = error;
    return STATUS_IO;
}

int new_file_append(const char *path)
{
    struct stat facts;
    static const int flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = open(path, flags, 0666);
    if (fd >= 0 && (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_nlink != 1)) {
        close(fd);
        errno = ELOOP;
        return -1;
    }
    errno = fd < 0 && errno == ENXIO ? ELOOP : errno; // a pipe that nobody reads
    return fd;
}

FILE *new_file_read(const char *path)
{
    struct stat facts;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    FILE *stream = NULL;
    if (fstat(fd, &facts) == 0 && !S_ISREG(facts.st_mode)) {
        errno = S_ISDIR(facts.st_mode) ? EISDIR : EINVAL;
    } else {
        stream = fdopen(fd, "r");
    }
    if (stream == NULL) {
        int error = errno;
        close(fd);
        errno = error;
    }
    return stream;
}

bool new_file_is_at(int fd, const char *path)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

// What an NFS server makes of root, whose folders are its own nevertheless.
#define NOBODY 65534

bool new_file_is_ours(uid_t owner)
{
    return owner == geteuid() || owner == 0 || (geteuid() == 0 && owner == NOBODY);
}

enum status new_file_check_folder(const char *folder, char *ret_error, size_t error_size)
{
    struct stat facts;
    if (stat(folder, &facts) != 0) {
        snprintf(ret_error, error_size, "cannot look at %s: %m", folder);
        return STATUS_IO;
    }
    if (!new_file_is_ours(facts.st_uid)) {
        snprintf(ret_error, error_size,
                 "%s belongs to another user (uid %u), who could change what is written there: "
                 "choose a folder of your own",
                 folder, (unsigned)facts.st_uid);
        return STATUS_DENIED;
    }
    if ((facts.st_mode & S_IWOTH) != 0 && (facts.st_mode & S_ISVTX) == 0) {
        snprintf(ret_error, error_size,
                 "every user of this host could change what is written to %s (mode %o): choose "
                 "another folder, or `chmod o-w` this one",
                 folder, (unsigned)(facts.st_mode & 07777));
        return STATUS_DENIED;
    }
    return STATUS_OK;
}
