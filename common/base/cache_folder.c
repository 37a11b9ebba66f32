/* Finds the folder by variables, makes it, and reads whole files. */
#include "common/base/cache_folder.h"

#include "common/base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

bool cache_folder_find(const char *kind, char ret_path[CACHE_FOLDER_BYTES])
{
    // NOLINTBEGIN(concurrency-mt-unsafe): nobody changes the environment once threads run
    const char *own = getenv("RINGSIDE_CACHE");
    const char *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    // NOLINTEND(concurrency-mt-unsafe)
    int used = -1;
    if (own != NULL) {
        used = own[0] == '/' ? snprintf(ret_path, CACHE_FOLDER_BYTES, "%s/%s", own, kind) : -1;
    } else if (caches != NULL && caches[0] == '/') {
        used = snprintf(ret_path, CACHE_FOLDER_BYTES, "%s/ringside/%s", caches, kind);
    } else if (home != NULL && home[0] == '/') {
        used = snprintf(ret_path, CACHE_FOLDER_BYTES, "%s/.cache/ringside/%s", home, kind);
    }
    return used > 0 && used < CACHE_FOLDER_BYTES - 64;
}

bool cache_folder_is_safe(const char *path)
{
    char error[CACHE_FOLDER_BYTES + 256];
    return new_file_check_folder(path, error, sizeof(error)) == STATUS_OK;
}

bool cache_folder_make(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    mkdir(path, 0700);
    return cache_folder_is_safe(path);
}

int cache_folder_lock(const char *path)
{
    char name[CACHE_FOLDER_BYTES + 8];
    snprintf(name, sizeof(name), "%s.lock", path);
    int lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    while (lock >= 0 && flock(lock, LOCK_EX) != 0) {
        if (errno != EINTR) {
            close(lock);
            return -1;
        }
    }
    return lock;
}

char *cache_folder_read(const char *path, size_t size_max, size_t *ret_size)
{
    struct stat facts;
    int descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        return NULL;
    }
    bool is_fit = fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0 &&
                  (size_t)facts.st_size <= size_max;
    size_t size = is_fit ? (size_t)facts.st_size : 0, used = 0;
    char *bytes = is_fit ? malloc(size + 1) : NULL;
    while (bytes != NULL && used < size) {
        ssize_t got = read(descriptor, bytes + used, size - used);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            break;
        }
        used += got > 0 ? (size_t)got : 0;
    }
    close(descriptor);
    if (bytes == NULL || used < size) {
        free(bytes);
        return NULL;
    }
    bytes[size] = '\0';
    *ret_size = size;
    return bytes;
}
