/* Regions by memfd_create, sealed, found through /proc. */
#include "common/base/region.h"

#include "common/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define REGION_NAME    "ringside"
#define PAGE_BYTES_MAX ((size_t)64 * 1024) // a multiple of every page size that Linux has

/* The nonce lies in a page of its own, before what the owner sees. */
static size_t file_bytes(size_t size)
{
    return PAGE_BYTES_MAX + (size + PAGE_BYTES_MAX - 1) / PAGE_BYTES_MAX * PAGE_BYTES_MAX;
}

/* A file of that size, sealed, with all its memory. -1 with errno. */
static int create_file(size_t size)
{
    int file = memfd_create(REGION_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0) {
        return -1;
    }
    int error = ftruncate(file, (off_t)file_bytes(size)) != 0 ? errno : 0;
    if (error == 0) {
        error = posix_fallocate(file, 0, (off_t)file_bytes(size));
    }
    if (error == 0 && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        error = errno;
    }
    if (error != 0) {
        close(file);
        errno = error;
        return -1;
    }
    return file;
}

/* Memory of the machine. The kernel would grant a file of any size, and then kill somebody. */
static size_t physical_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_bytes > 0 ? (size_t)pages * (size_t)page_bytes : SIZE_MAX / 4;
}

enum status region_create(size_t size, struct region *ret_region)
{
    if (size > physical_bytes()) {
        log_error("cannot share %zu bytes of memory: the machine has %zu", size, physical_bytes());
        return STATUS_NO_MEMORY;
    }
    uint64_t nonce; // so few bytes come whole, once the system has any
    if (getrandom(&nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce)) {
        log_error("cannot share memory: the system gives no random numbers: %m");
        return STATUS_IO;
    }
    int file = create_file(size);
    void *start = file < 0 ? MAP_FAILED
                           : mmap(NULL, file_bytes(size), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_POPULATE, file, 0);
    if (start == MAP_FAILED) {
        log_error("cannot share %zu bytes of memory: %m", size);
        if (file >= 0) {
            close(file);
        }
        return STATUS_NO_MEMORY;
    }
    // Where the kernel gives huge pages to shared memory on demand. It need not.
    (void)madvise(start, file_bytes(size), MADV_HUGEPAGE);
    struct region region = {
        .key = {.process_id = (uint64_t)getpid(),
                .descriptor = (uint32_t)file,
                .size = size,
                .nonce = nonce},
        .bytes = (unsigned char *)start + PAGE_BYTES_MAX,
    };
    memcpy(start, &nonce, sizeof(nonce));
    *ret_region = region;
    return STATUS_OK;
}

void region_destroy(struct region *region)
{
    if (region->bytes != NULL) {
        munmap((unsigned char *)region->bytes - PAGE_BYTES_MAX, file_bytes(region->key.size));
        close((int)region->key.descriptor);
    }
    *region = (struct region){0};
}

/* Whether the path leads to a region, which can be told without opening it: opening a terminal or
 * a pipe of somebody else's could have effects. */
static bool is_region(const char *path)
{
    static const char expected[] = "/memfd:" REGION_NAME;
    char target[sizeof(expected)];
    ssize_t size = readlink(path, target, sizeof(target));
    return size >= (ssize_t)sizeof(expected) - 1 &&
           memcmp(target, expected, sizeof(expected) - 1) == 0;
}

/* Whether the file cannot become shorter than the key says. */
static bool is_sealed(int file, uint64_t size)
{
    struct stat facts;
    int seals = fcntl(file, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(file, &facts) == 0 &&
           facts.st_size >= 0 && (uint64_t)facts.st_size == file_bytes(size);
}

enum status region_open(const struct region_key *key, enum region_access access,
                        struct region_view *ret_view)
{
    bool writes = access == REGION_WRITE;
    char path[64];
    snprintf(path, sizeof(path), "/proc/%llu/fd/%u", (unsigned long long)key->process_id,
             key->descriptor);
    if (key->size > PTRDIFF_MAX / 2 || !is_region(path)) {
        return STATUS_UNREACHABLE;
    }
    int file = open(path, (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0) {
        return STATUS_UNREACHABLE;
    }
    void *start = MAP_FAILED;
    if (is_sealed(file, key->size)) {
        start = mmap(NULL, file_bytes(key->size), PROT_READ | (writes ? PROT_WRITE : 0),
                     MAP_SHARED | MAP_POPULATE, file, 0);
    }
    close(file);
    if (start == MAP_FAILED) {
        return STATUS_UNREACHABLE;
    }
    struct region_view view = {(unsigned char *)start + PAGE_BYTES_MAX, key->size};
    if (memcmp(start, &key->nonce, sizeof(key->nonce)) != 0) {
        region_close(&view);
        return STATUS_UNREACHABLE;
    }
    *ret_view = view;
    return STATUS_OK;
}

void region_close(struct region_view *view)
{
    if (view->bytes != NULL) {
        munmap(view->bytes - PAGE_BYTES_MAX, file_bytes(view->size));
    }
    *view = (struct region_view){0};
}
