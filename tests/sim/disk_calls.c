/* System calls about files as the simulated disk answers them: the linker's --wrap leads the
 * product's calls here. Other paths and descriptors are the system's. */
#include "tests/sim/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// NOLINTBEGIN(readability-identifier-naming,cert-dcl50-cpp): the linker's names
int __real_open64(const char *path, int flags, ...);
int __real_openat64(int folder, const char *name, int flags, ...);
int __real_close(int fd);
int __real_mkdir(const char *path, mode_t mode);
int __real_mkdirat(int folder, const char *name, mode_t mode);
int __real_stat64(const char *path, struct stat *ret_facts);
int __real_fstat64(int fd, struct stat *ret_facts);
int __real_fstatat64(int folder, const char *name, struct stat *ret_facts, int flags);
ssize_t __real_pread64(int fd, void *ret_bytes, size_t size, off_t offset);
ssize_t __real_pwrite64(int fd, const void *bytes, size_t size, off_t offset);
int __real_fsync(int fd);
int __real_renameat(int from, const char *old, int to, const char *new);
int __real_unlinkat(int folder, const char *name, int flags);
int __real_fcntl64(int fd, int command, ...);
DIR *__real_fdopendir(int fd);
struct dirent *__real_readdir64(DIR *stream);
int __real_closedir(DIR *stream);

int __wrap_open64(const char *path, int flags, ...);
int __wrap_openat64(int folder, const char *name, int flags, ...);
int __wrap_close(int fd);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdirat(int folder, const char *name, mode_t mode);
int __wrap_stat64(const char *path, struct stat *ret_facts);
int __wrap_fstat64(int fd, struct stat *ret_facts);
int __wrap_fstatat64(int folder, const char *name, struct stat *ret_facts, int flags);
ssize_t __wrap_pread64(int fd, void *ret_bytes, size_t size, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t size, off_t offset);
int __wrap_fsync(int fd);
int __wrap_renameat(int from, const char *old, int to, const char *new);
int __wrap_unlinkat(int folder, const char *name, int flags);
int __wrap_fcntl64(int fd, int command, ...);
DIR *__wrap_fdopendir(int fd);
struct dirent *__wrap_readdir64(DIR *stream);
int __wrap_closedir(DIR *stream);

/* A folder that is being listed, in the place of a DIR: with the names that it had at first. */
struct stream {
    struct disk_node *folder;
    int fd;
    char (*names)[DISK_NAME_BYTES]; // (count), owned
    uint32_t next, count;
    struct dirent entry;
};

#define STREAMS_MAX 64
static struct stream streams[STREAMS_MAX];

static bool is_ours(const char *path)
{
    size_t size = strlen(DISK_ROOT);
    return strncmp(path, DISK_ROOT, size) == 0 && (path[size] == '/' || path[size] == '\0');
}

static int fail_with(int error)
{
    errno = error;
    return error == 0 ? 0 : -1;
}

/* The folder that a path is in; *ret_name: its last part. */
static struct disk_node *parent_of(const char *path, const char **ret_name)
{
    char parent[256] = "";
    const char *slash = strrchr(path, '/');
    if (slash == path || (size_t)(slash - path) >= sizeof(parent)) {
        errno = EEXIST; // the root itself
        return NULL;
    }
    memcpy(parent, path, (size_t)(slash - path));
    *ret_name = slash + 1;
    return disk_look_up(parent);
}

static int open_node(struct disk_node *node, int flags)
{
    if (node == NULL) {
        return fail_with(ENOENT);
    }
    if ((flags & O_DIRECTORY) != 0 && !disk_is_folder(node)) {
        return fail_with(ENOTDIR);
    }
    if ((flags & O_ACCMODE) != O_RDONLY && disk_is_folder(node)) {
        return fail_with(EISDIR);
    }
    if ((flags & O_ACCMODE) != O_RDONLY && disk_health()->is_read_only) {
        return fail_with(EROFS);
    }
    return disk_open(node);
}

static mode_t mode_of(int flags, va_list args)
{
    return (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
}

int __wrap_open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_of(flags, args); // NOLINT(clang-analyzer-valist.*)
    va_end(args);
    return is_ours(path) ? open_node(disk_look_up(path), flags) : __real_open64(path, flags, mode);
}

int __wrap_openat64(int folder, const char *name, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_of(flags, args); // NOLINT(clang-analyzer-valist.*)
    va_end(args);
    struct disk_node *in = disk_opened(folder), *node;
    if (name[0] == '/' && is_ours(name)) {
        return open_node(disk_look_up(name), flags);
    }
    if (in == NULL) {
        return __real_openat64(folder, name, flags, mode);
    }
    if ((flags & O_CREAT) == 0) {
        return open_node(disk_find(in, name), flags);
    }
    int error = disk_make(in, name, false, &node);
    return error == 0 ? open_node(node, flags) : fail_with(error);
}

int __wrap_close(int fd)
{
    if (disk_opened(fd) == NULL) {
        return __real_close(fd);
    }
    disk_close(fd);
    return 0;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    const char *name;
    struct disk_node *made;
    if (!is_ours(path)) {
        return __real_mkdir(path, mode);
    }
    struct disk_node *parent = parent_of(path, &name);
    return parent != NULL ? fail_with(disk_make(parent, name, true, &made)) : -1;
}

int __wrap_mkdirat(int folder, const char *name, mode_t mode)
{
    struct disk_node *in = disk_opened(folder), *made;
    return in != NULL ? fail_with(disk_make(in, name, true, &made))
                      : __real_mkdirat(folder, name, mode);
}

static int tell(const struct disk_node *node, struct stat *ret_facts)
{
    if (node == NULL) {
        return fail_with(ENOENT);
    }
    *ret_facts = (struct stat){.st_uid = geteuid(),
                               .st_nlink = 1,
                               .st_mode = disk_is_folder(node) ? S_IFDIR | 0700 : S_IFREG | 0600,
                               .st_size = (off_t)disk_size(node)};
    return 0;
}

int __wrap_stat64(const char *path, struct stat *ret_facts)
{
    return is_ours(path) ? tell(disk_look_up(path), ret_facts) : __real_stat64(path, ret_facts);
}

int __wrap_fstat64(int fd, struct stat *ret_facts)
{
    const struct disk_node *node = disk_opened(fd);
    return node != NULL ? tell(node, ret_facts) : __real_fstat64(fd, ret_facts);
}

int __wrap_fstatat64(int folder, const char *name, struct stat *ret_facts, int flags)
{
    struct disk_node *in = disk_opened(folder);
    return in != NULL ? tell(disk_find(in, name), ret_facts)
                      : __real_fstatat64(folder, name, ret_facts, flags);
}

ssize_t __wrap_pread64(int fd, void *ret_bytes, size_t size, off_t offset)
{
    const struct disk_node *file = disk_opened(fd);
    return file != NULL ? (ssize_t)disk_read(file, ret_bytes, size, (uint64_t)offset)
                        : __real_pread64(fd, ret_bytes, size, offset);
}

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t size, off_t offset)
{
    struct disk_node *file = disk_opened(fd);
    size_t wrote = 0;
    if (file == NULL) {
        return __real_pwrite64(fd, bytes, size, offset);
    }
    int error = disk_write(file, bytes, size, (uint64_t)offset, &wrote);
    return error == 0 ? (ssize_t)wrote : fail_with(error);
}

int __wrap_fsync(int fd)
{
    struct disk_node *node = disk_opened(fd);
    return node != NULL ? fail_with(disk_sync(node)) : __real_fsync(fd);
}

int __wrap_renameat(int from, const char *old, int to, const char *new)
{
    struct disk_node *folder = disk_opened(from);
    if (folder == NULL) {
        return __real_renameat(from, old, to, new);
    }
    return from == to ? fail_with(disk_rename(folder, old, new)) : fail_with(EXDEV);
}

int __wrap_unlinkat(int folder, const char *name, int flags)
{
    struct disk_node *in = disk_opened(folder);
    return in != NULL ? fail_with(disk_remove(in, name, (flags & AT_REMOVEDIR) != 0))
                      : __real_unlinkat(folder, name, flags);
}

int __wrap_fcntl64(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    long value = va_arg(args, long); // NOLINT(clang-analyzer-valist.*): what all of ours take
    va_end(args);
    struct disk_node *node = disk_opened(fd);
    if (node == NULL) {
        return __real_fcntl64(fd, command, value);
    }
    return command == F_DUPFD_CLOEXEC ? disk_open(node) : fail_with(EINVAL);
}

/* NULL: it is the system's. */
static struct stream *stream_of(DIR *stream)
{
    uintptr_t at = (uintptr_t)stream, first = (uintptr_t)streams;
    return at >= first && at < first + sizeof(streams) ? (struct stream *)stream : NULL;
}

/* One that a process has left open which was killed is free again. */
static struct stream *free_stream(void)
{
    for (uint32_t i = 0; i < STREAMS_MAX; i++) {
        struct stream *stream = &streams[i];
        if (stream->folder == NULL || disk_opened(stream->fd) != stream->folder) {
            free(stream->names);
            return stream;
        }
    }
    abort();
}

DIR *__wrap_fdopendir(int fd)
{
    struct disk_node *folder = disk_opened(fd);
    if (folder == NULL) {
        return __real_fdopendir(fd);
    }
    struct stream *stream = free_stream();
    *stream = (struct stream){.folder = folder, .fd = fd};
    while (disk_name(folder, stream->count) != NULL) {
        stream->count++;
    }
    stream->names = calloc(stream->count + UINT64_C(1), sizeof(*stream->names));
    if (stream->names == NULL) {
        abort();
    }
    for (uint32_t i = 0; i < stream->count; i++) {
        memcpy(stream->names[i], disk_name(folder, i), DISK_NAME_BYTES);
    }
    return (DIR *)stream;
}

struct dirent *__wrap_readdir64(DIR *stream)
{
    struct stream *at = stream_of(stream);
    if (at == NULL) {
        return __real_readdir64(stream);
    }
    if (at->next == at->count) {
        return NULL;
    }
    memcpy(at->entry.d_name, at->names[at->next++], DISK_NAME_BYTES);
    return &at->entry;
}

int __wrap_closedir(DIR *stream)
{
    struct stream *at = stream_of(stream);
    if (at == NULL) {
        return __real_closedir(stream);
    }
    disk_close(at->fd);
    free(at->names);
    *at = (struct stream){.folder = NULL};
    return 0;
}
// NOLINTEND(readability-identifier-naming,cert-dcl50-cpp)
