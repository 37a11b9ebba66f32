/* Opens files by name, under locks. */
#include "worker/data/cache_file.h"

#include "common/base/cache_folder.h"
#include "common/base/log.h"
#include "common/base/memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MEMORY_FOLDER "/dev/shm"
#define SUFFIX        ".pixels"
#define TRIES_MAX     100
#define FREE_PARTS    10 // of what is free, one of so many is left to others in any case
#define PATH_BYTES    (CACHE_FOLDER_BYTES + 64)

struct cache_file {
    char folder[CACHE_FOLDER_BYTES];
    char path[PATH_BYTES];
    int descriptor;
    bool is_in_memory;
};

/* "ringside-1000-": of this user. */
static void name_prefix(char *ret_text, size_t size)
{
    snprintf(ret_text, size, "ringside-%u-", (unsigned)getuid());
}

static bool is_ours(const struct stat *facts)
{
    return S_ISREG(facts->st_mode) && facts->st_uid == getuid() && (facts->st_mode & 077) == 0;
}

static uint64_t taken_bytes(const struct stat *facts)
{
    return (uint64_t)facts->st_blocks * 512;
}

/* A file in memory is limited by its folder, and by memory. */
static uint64_t free_bytes(const struct cache_file *file)
{
    struct statvfs facts;
    bool is_known = statvfs(file->folder, &facts) == 0;
    uint64_t bytes = is_known ? (uint64_t)facts.f_bavail * facts.f_frsize : 0;
    uint64_t memory = file->is_in_memory ? memory_available() : UINT64_MAX;
    return bytes < memory ? bytes : memory;
}

/* Whether another file like this one is there, and what it takes. -1: none that is ours. */
static int open_other(const struct cache_file *file, const char *name, uint64_t *ret_bytes)
{
    char prefix[32], path[PATH_BYTES + 256];
    struct stat facts;
    size_t size = strlen(name), suffix = strlen(SUFFIX);
    name_prefix(prefix, sizeof(prefix));
    if (strncmp(name, prefix, strlen(prefix)) != 0 || size < suffix ||
        strcmp(name + size - suffix, SUFFIX) != 0) {
        return -1;
    }
    snprintf(path, sizeof(path), "%s/%s", file->folder, name);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor >= 0 && strcmp(path, file->path) != 0 && fstat(descriptor, &facts) == 0 &&
        is_ours(&facts)) {
        *ret_bytes = taken_bytes(&facts);
        return descriptor;
    }
    if (descriptor >= 0) {
        close(descriptor);
    }
    return -1;
}

/* Removes others that nobody has open, until all that are left take no more than `bytes`. Returns
 * what these take. */
static uint64_t sweep(const struct cache_file *file, uint64_t bytes)
{
    DIR *directory = opendir(file->folder);
    uint64_t total = 0;
    const struct dirent *entry;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this thread's
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        uint64_t size;
        int descriptor = open_other(file, entry->d_name, &size);
        if (descriptor < 0) {
            continue;
        }
        bool is_kept = (bytes > 0 && total + size <= bytes) ||
                       flock(descriptor, LOCK_EX | LOCK_NB) != 0 ||
                       unlinkat(dirfd(directory), entry->d_name, 0) != 0;
        total += is_kept ? size : 0;
        close(descriptor);
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return total;
}

/* Opens the file, with the lock of those who use it, as it has its name. -1, and errno. */
static int open_locked(const char *path)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        struct stat facts;
        int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (descriptor < 0) {
            return -1;
        }
        // Its last user may have removed it in the meantime.
        if (flock(descriptor, LOCK_SH) == 0 && fstat(descriptor, &facts) == 0 && is_ours(&facts) &&
            facts.st_nlink > 0) {
            return descriptor;
        }
        close(descriptor);
    }
    return -1;
}

static bool find_folder(const struct cache_file_options *options, char ret[CACHE_FOLDER_BYTES])
{
    if (options->folder != NULL || options->is_in_memory) {
        snprintf(ret, CACHE_FOLDER_BYTES, "%s",
                 options->folder != NULL ? options->folder : MEMORY_FOLDER);
        return true;
    }
    return cache_folder_find("images", ret) && cache_folder_make(ret);
}

/* What it already has counts as free, so that processes that open it later come to the same. */
static uint64_t plan_budget(const struct cache_file *file, const struct cache_file_options *options)
{
    struct stat facts;
    uint64_t own = fstat(file->descriptor, &facts) == 0 ? taken_bytes(&facts) : 0;
    if (options->is_rest) {
        return options->budget;
    }
    if (file->is_in_memory) {
        sweep(file, 0);
    }
    uint64_t room = free_bytes(file) + own;
    uint64_t all = options->budget > 0 ? options->budget : room / 2;
    uint64_t others = sweep(file, all / 2);
    uint64_t most = room - room / FREE_PARTS;
    uint64_t budget = all > others ? all - others : 0;
    if (budget <= most) {
        return budget;
    }
    if (options->tells) {
        log_warn("--cache-mb %" PRIu64 ": %s has %" PRIu64 " MiB, of which %" PRIu64
                 " are taken at most",
                 options->budget >> 20, file->folder, room >> 20, most >> 20);
    }
    return most;
}

enum status cache_file_open(const struct cache_file_options *options, struct cache_file **ret_file,
                            uint64_t *ret_budget)
{
    char prefix[32];
    struct cache_file *file = calloc(1, sizeof(*file));
    if (file == NULL) {
        return STATUS_NO_MEMORY;
    }
    name_prefix(prefix, sizeof(prefix));
    file->is_in_memory = options->is_in_memory;
    if (!find_folder(options, file->folder)) {
        log_warn("--cache keeps nothing: there is no folder for it: RINGSIDE_CACHE or HOME names "
                 "one");
        free(file);
        return STATUS_UNSUPPORTED;
    }
    snprintf(file->path, sizeof(file->path), "%s/%s%016" PRIx64 SUFFIX, file->folder, prefix,
             options->key);
    file->descriptor = open_locked(file->path);
    if (file->descriptor < 0) {
        log_warn("--cache keeps nothing: cannot open %s: %m", file->path);
        free(file);
        return STATUS_UNSUPPORTED;
    }
    *ret_budget = plan_budget(file, options);
    *ret_file = file;
    return STATUS_OK;
}

void cache_file_close(struct cache_file *file)
{
    if (file == NULL) {
        return;
    }
    if (file->is_in_memory && flock(file->descriptor, LOCK_EX | LOCK_NB) == 0) {
        unlink(file->path);
    }
    close(file->descriptor);
    free(file);
}

int cache_file_descriptor(const struct cache_file *file)
{
    return file->descriptor;
}

const char *cache_file_path(const struct cache_file *file)
{
    return file->path;
}
