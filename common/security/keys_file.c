/* Reads key files that nobody else can read, and makes such files. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/security/keys.h"

#include <sodium.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INPUT_WAIT_MS 30000
#define PATH_BYTES    4096

/* Text with secrets in it: locked, wiped when it is given back. */
static char *text_create(void)
{
    if (sodium_init() < 0) {
        log_error("libsodium does not start");
        return NULL;
    }
    char *text = sodium_malloc(KEYS_TEXT_MAX);
    if (text == NULL) {
        log_error("no memory for keys");
    }
    return text;
}

/* Whether only its owner, which is us or root, can read the file. */
static enum status check_file(int file, const char *path)
{
    struct stat info;
    if (fstat(file, &info) != 0) {
        log_error("cannot read the keys in %s: %m", path);
        return STATUS_IO;
    }
    if (!S_ISREG(info.st_mode)) {
        log_error("the keys in %s cannot be used: it is not a regular file (`-` reads them from "
                  "standard input)",
                  path);
        return STATUS_INVALID;
    }
    if (info.st_uid != geteuid() && info.st_uid != 0) {
        log_error("the keys in %s cannot be used: the file belongs to another user, number %u",
                  path, (unsigned)info.st_uid);
        return STATUS_INVALID;
    }
    // What a service manager gives us may belong to root, and show by what it is ours as the right
    // of root's group to read (an access control list).
    mode_t may_read = info.st_uid == 0 && info.st_gid == 0 && geteuid() != 0 ? S_IRGRP : 0;
    if ((info.st_mode & (S_IRWXG | S_IRWXO) & ~may_read) != 0) {
        log_error(
            "the keys in %s cannot be used: others have access (mode %04o); run: chmod 600 %s",
            path, (unsigned)info.st_mode & 07777, path);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* Standard input may be a pipe whose other end forgets to close it. */
static enum status wait_for_input(int file, uint64_t deadline_ms)
{
    struct pollfd item = {.fd = file, .events = POLLIN};
    uint64_t now_ms = clock_now_ms();
    int ready = now_ms < deadline_ms ? poll(&item, 1, (int)(deadline_ms - now_ms)) : 0;
    if (ready == 0) {
        log_error("the keys on standard input did not end within %d s", INPUT_WAIT_MS / 1000);
        return STATUS_TIMED_OUT;
    }
    return ready > 0 || errno == EINTR ? STATUS_OK : STATUS_IO;
}

static enum status read_text(int file, const char *path, char *text, size_t *ret_size)
{
    size_t size = 0;
    uint64_t deadline_ms = clock_now_ms() + INPUT_WAIT_MS;
    for (;;) {
        enum status status = wait_for_input(file, deadline_ms);
        if (status != STATUS_OK) {
            return status;
        }
        ssize_t got = read(file, text + size, KEYS_TEXT_MAX - size);
        if (got < 0 && errno != EINTR && errno != EAGAIN) {
            log_error("cannot read the keys in %s: %m", path);
            return STATUS_IO;
        }
        if (got == 0) {
            *ret_size = size;
            return STATUS_OK;
        }
        size += got > 0 ? (size_t)got : 0;
        if (size == KEYS_TEXT_MAX) {
            log_error("the keys in %s cannot be used: more than %zu bytes are not a key file", path,
                      KEYS_TEXT_MAX);
            return STATUS_MALFORMED;
        }
    }
}

static enum status parse(const char *path, const char *text, size_t size, struct keys **ret_keys)
{
    char error[KEYS_ERROR_BYTES];
    struct keys *keys = sodium_malloc(sizeof(*keys));
    if (keys == NULL) {
        log_error("no memory for keys");
        return STATUS_NO_MEMORY;
    }
    memset(keys, 0, sizeof(*keys));
    enum status status = keys_parse(text, size, keys, error, sizeof(error));
    if (status != STATUS_OK) {
        log_error("the keys in %s cannot be used: %s; `ringside keygen FILE` makes a file", path,
                  error);
        keys_destroy(keys);
        return status;
    }
    *ret_keys = keys;
    return STATUS_OK;
}

/* Reads the keys of an open file that others cannot read. */
static enum status read_keys(int file, const char *name, struct keys **ret_keys)
{
    char *text = text_create();
    if (text == NULL) {
        return STATUS_NO_MEMORY;
    }
    size_t size = 0;
    enum status status = read_text(file, name, text, &size);
    if (status == STATUS_OK) {
        status = parse(name, text, size, ret_keys);
    }
    sodium_free(text);
    return status;
}

enum status keys_read(const char *path, struct keys **ret_keys)
{
    bool is_input = strcmp(path, "-") == 0;
    const char *name = is_input ? "standard input" : path;
    // Opening a pipe would wait for its other end.
    int file = is_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0) {
        log_error("cannot read the keys in %s: %m", path);
        return STATUS_IO;
    }
    struct stat info;
    // A file without a name is a launcher's, and nobody else can open it.
    bool is_private =
        is_input && fstat(file, &info) == 0 && (!S_ISREG(info.st_mode) || info.st_nlink == 0);
    enum status status = is_private ? STATUS_OK : check_file(file, name);
    if (status == STATUS_OK) {
        status = read_keys(file, name, ret_keys);
    }
    if (!is_input) {
        close(file);
    }
    return status;
}

void keys_path(const char *file, char ret_path[PATH_MAX])
{
    if (strcmp(file, "-") == 0 || realpath(file, ret_path) == NULL) {
        snprintf(ret_path, PATH_MAX, "FILE");
    }
}

enum status keys_write(const struct keys *keys, int fd)
{
    char *text = text_create();
    if (text == NULL) {
        return STATUS_NO_MEMORY;
    }
    keys_format(keys, text);
    enum status status = STATUS_OK;
    size_t size = strlen(text);
    for (size_t at = 0; at < size && status == STATUS_OK;) {
        ssize_t wrote = write(fd, text + at, size - at);
        if (wrote < 0 && errno != EINTR) {
            status = STATUS_IO;
        }
        at += wrote > 0 ? (size_t)wrote : 0;
    }
    sodium_free(text);
    return status;
}

/* Makes a change of a name in the folder of `path` last. */
static bool sync_folder(const char *path)
{
    char name[PATH_BYTES];
    const char *slash = strrchr(path, '/');
    // What is before the last slash, which is all of it for a file of the root.
    int size = slash == NULL ? 0 : slash == path ? 1 : (int)(slash - path);
    snprintf(name, sizeof(name), "%.*s", size, path);
    int folder = open(slash == NULL ? "." : name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_synced = folder >= 0 && fsync(folder) == 0;
    int error = errno;
    if (folder >= 0) {
        close(folder);
    }
    errno = error;
    return is_synced;
}

/* Writes the open file, and gives it the name `path` if it has another one. */
static enum status fill_file(const struct keys *keys, int file, const char *name, const char *path)
{
    bool is_kept = keys_write(keys, file) == STATUS_OK && fsync(file) == 0;
    is_kept = is_kept && (strcmp(name, path) == 0 || rename(name, path) == 0);
    if (!is_kept) {
        log_error("cannot write the keys to %s: %m", path);
        unlink(name);
        return STATUS_IO;
    }
    if (!sync_folder(path)) {
        log_warn("the keys are in %s, but a power failure could still undo that: %m", path);
    }
    return STATUS_OK;
}

enum status keys_create_file(const struct keys *keys, const char *path, bool may_replace)
{
    char name[PATH_BYTES];
    int wrote = snprintf(name, sizeof(name), may_replace ? "%s.XXXXXX" : "%s", path);
    if (wrote < 0 || (size_t)wrote >= sizeof(name)) {
        log_error("cannot write the keys: the path is longer than %zu characters",
                  sizeof(name) - 1);
        return STATUS_INVALID;
    }
    struct stat facts;
    if (may_replace && lstat(path, &facts) == 0 && !S_ISREG(facts.st_mode) &&
        !S_ISDIR(facts.st_mode)) {
        log_error("cannot replace %s: it is not a regular file", path);
        return STATUS_INVALID;
    }
    int file = may_replace ? mkostemp(name, O_CLOEXEC)
                           : open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file < 0) {
        bool is_there = errno == EEXIST;
        log_error("cannot write the keys to %s: %m%s", path,
                  is_there ? "; --force replaces them, and whoever has the old ones is locked out"
                           : "");
        return is_there ? STATUS_INVALID : STATUS_IO;
    }
    enum status status = fill_file(keys, file, name, path);
    close(file);
    return status;
}
