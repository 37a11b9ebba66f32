/* Locks a folder with flock on a file in it. */
#include "common/base/folder_lock.h"

#include "common/base/log.h"
#include "common/base/new_file.h"
#include "common/base/printable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATH_BYTES   (FOLDER_LOCK_PATH_MAX + 32)
#define HOLDER_BYTES 200
#define MADE_FROM    "folders made from character " // of the path

void folder_lock_path(const char *folder, char *ret_path, size_t path_size)
{
    snprintf(ret_path, path_size, "%s/" FOLDER_LOCK_NAME, folder);
}

/* Makes the folder and missing parents; ret_made_from is the path length of the first one made. */
static enum status make_folders(const char *folder, size_t *ret_made_from)
{
    char path[FOLDER_LOCK_PATH_MAX];
    size_t made_from = SIZE_MAX, size = strlen(folder);
    for (size_t i = 1; i <= size; i++) {
        if (folder[i] != '/' && folder[i] != '\0') {
            continue;
        }
        snprintf(path, sizeof(path), "%.*s", (int)i, folder);
        if (mkdir(path, 0777) == 0) {
            made_from = i < made_from ? i : made_from;
        } else if (errno != EEXIST) {
            log_error("cannot make the folder %s: %m", path);
            return STATUS_IO;
        }
    }
    *ret_made_from = made_from;
    return STATUS_OK;
}

static void remove_folders(const struct folder_lock *lock)
{
    char path[FOLDER_LOCK_PATH_MAX];
    snprintf(path, sizeof(path), "%s", lock->folder);
    for (size_t i = strlen(path); i >= lock->made_from && i > 0; i--) {
        if (path[i] != '/' && path[i] != '\0') {
            continue;
        }
        path[i] = '\0';
        if (rmdir(path) != 0) {
            return; // there is something in it
        }
    }
}

/* For people, and for folder_lock_remove_left. */
static void write_holder(int fd, size_t made_from)
{
    char host[65] = "", stamp[32] = "", text[HOLDER_BYTES];
    struct tm parts;
    time_t now = time(NULL);
    gethostname(host, sizeof(host) - 1);
    gmtime_r(&now, &parts);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", &parts);
    int size =
        snprintf(text, sizeof(text), "host %s, pid %ld, since %s\n", host, (long)getpid(), stamp);
    if (made_from != SIZE_MAX) {
        size += snprintf(text + size, sizeof(text) - (size_t)size, MADE_FROM "%zu\n", made_from);
    }
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)size, 0) != size) {
        log_debug("the holder of a lock cannot be written: %m"); // the lock holds without it
    }
}

static void refuse(int fd, const char *folder)
{
    char holder[HOLDER_BYTES];
    ssize_t size = pread(fd, holder, sizeof(holder) - 1, 0);
    holder[size > 0 ? size : 0] = '\0';
    holder[strcspn(holder, "\n")] = '\0';
    printable_make(holder, strlen(holder));
    log_error("%s is in use by another ringside (%s): wait for its end, or choose another folder "
              "with --out",
              folder, holder[0] != '\0' ? holder : "which has just begun");
}

/* ret_fd is -1 where the file system has no locks. */
static enum status lock_file(const char *folder, const char *path, int *ret_fd)
{
    for (;;) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0) {
            log_error("cannot write %s: %m", path);
            return STATUS_IO;
        }
        if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            bool is_held = errno == EWOULDBLOCK;
            if (is_held) {
                refuse(fd, folder);
            } else {
                log_warn("%s cannot be locked (%m): see that no other ringside writes to it",
                         folder);
                unlink(path);
                *ret_fd = -1;
            }
            close(fd);
            return is_held ? STATUS_TIMED_OUT : STATUS_OK;
        }
        // Between open and flock, a holder that ended may have removed the file.
        if (new_file_is_at(fd, path)) {
            *ret_fd = fd;
            return STATUS_OK;
        }
        close(fd);
    }
}

enum status folder_lock_take(const char *folder, struct folder_lock *ret_lock)
{
    struct folder_lock lock = {.fd = -1};
    char path[PATH_BYTES];
    if (snprintf(lock.folder, sizeof(lock.folder), "%s", folder) >= (int)sizeof(lock.folder)) {
        log_error("--out is too long");
        return STATUS_INVALID;
    }
    enum status status = make_folders(folder, &lock.made_from);
    if (status != STATUS_OK) {
        return status;
    }
    folder_lock_path(folder, path, sizeof(path));
    status = lock_file(folder, path, &lock.fd);
    if (status != STATUS_OK) {
        return status;
    }
    if (lock.fd >= 0) {
        write_holder(lock.fd, lock.made_from);
    }
    *ret_lock = lock;
    return STATUS_OK;
}

bool folder_lock_is_held(const char *folder)
{
    char path[PATH_BYTES];
    folder_lock_path(folder, path, sizeof(path));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool is_held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0) {
        close(fd);
    }
    return is_held;
}

void folder_lock_bequeath(const struct folder_lock *lock)
{
    if (lock->fd >= 0) {
        fcntl(lock->fd, F_SETFD, 0);
    }
}

/* The path length of the first folder that the holder made; SIZE_MAX: it made none. */
static size_t read_made_from(const char *lock_path)
{
    char text[HOLDER_BYTES] = "";
    int fd = open(lock_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return SIZE_MAX;
    }
    ssize_t size = pread(fd, text, sizeof(text) - 1, 0);
    close(fd);
    const char *line = size > 0 ? strstr(text, MADE_FROM) : NULL;
    return line != NULL ? strtoul(line + strlen(MADE_FROM), NULL, 10) : SIZE_MAX;
}

void folder_lock_remove_left(const char *lock_path)
{
    struct folder_lock lock = {.made_from = read_made_from(lock_path)};
    const char *name = strrchr(lock_path, '/');
    snprintf(lock.folder, sizeof(lock.folder), "%.*s", name != NULL ? (int)(name - lock_path) : 0,
             lock_path);
    unlink(lock_path);
    remove_folders(&lock);
}

void folder_lock_release(struct folder_lock *lock)
{
    char path[PATH_BYTES];
    if (lock->folder[0] == '\0') {
        return;
    }
    if (lock->fd >= 0) {
        folder_lock_path(lock->folder, path, sizeof(path));
        unlink(path); // while still locked: the next holder makes a new file
        close(lock->fd);
    }
    remove_folders(lock);
    *lock = (struct folder_lock){.fd = -1};
}
