/* Maps large buffers, and tunes malloc's heap. */
#include "common/base/memory.h"

#include "common/base/number.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Linux 5.14; older headers lack the name, older kernels answer EINVAL.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define HUGE_PAGE_BYTES ((size_t)2 * 1024 * 1024)

// The largest value that glibc accepts (HEAP_MAX_SIZE / 2 on 64-bit machines).
#define MMAP_THRESHOLD_BYTES (32 * 1024 * 1024)
#define TRIM_THRESHOLD_BYTES (1024 * 1024 * 1024)
#define TOP_PAD_BYTES        (4 * 1024 * 1024)

/* Length of the mapping for a buffer of `bytes`, or 0 if no mapping can be that long. Huge pages
 * are for buffers that fill one: small ones must not cost more than they hold. */
static size_t mapping_bytes(size_t bytes)
{
    size_t page_bytes = bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : (size_t)sysconf(_SC_PAGESIZE);
    if (bytes == 0) {
        return page_bytes;
    }
    if (bytes > PTRDIFF_MAX - 2 * HUGE_PAGE_BYTES) {
        return 0;
    }
    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

static char *map(size_t bytes)
{
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

/* Maps one huge page more than needed, and gives back what lies before and behind the part that is
 * aligned. */
static char *map_huge(size_t bytes)
{
    char *start = map(bytes + HUGE_PAGE_BYTES);
    if (start == NULL) {
        return NULL;
    }
    size_t before = (HUGE_PAGE_BYTES - (uintptr_t)start % HUGE_PAGE_BYTES) % HUGE_PAGE_BYTES;
    if (before > 0) {
        munmap(start, before);
    }
    munmap(start + before + bytes, HUGE_PAGE_BYTES - before);
    // A kernel without huge pages refuses, and small ones serve.
    (void)madvise(start + before, bytes, MADV_HUGEPAGE);
    return start + before;
}

/* Takes the page faults now. False if there is not enough memory. */
static bool populate(char *start, size_t bytes)
{
    if (madvise(start, bytes, MADV_POPULATE_WRITE) == 0) {
        return true;
    }
    if (errno == ENOMEM) {
        return false;
    }
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < bytes; i += page_bytes) {
        *(volatile char *)(start + i) = 0;
    }
    return true;
}

void *memory_create_large(size_t bytes)
{
    size_t length = mapping_bytes(bytes);
    if (length == 0) {
        return NULL;
    }
    char *start = bytes >= HUGE_PAGE_BYTES ? map_huge(length) : map(length);
    if (start == NULL) {
        return NULL;
    }
    if (!populate(start, length)) {
        munmap(start, length);
        return NULL;
    }
    return start;
}

void memory_destroy_large(void *buffer, size_t bytes)
{
    if (buffer == NULL) {
        return;
    }
    int failed = munmap(buffer, mapping_bytes(bytes));
    assert(failed == 0);
}

void memory_keep_heap(void)
{
    // NOLINTBEGIN(concurrency-mt-unsafe): called before there are threads.
    mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES);
    mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES);
    mallopt(M_TOP_PAD, TOP_PAD_BYTES);
    // The heaps of further arenas are unmapped as soon as they are empty; only the first is kept.
    mallopt(M_ARENA_MAX, 1);
    // NOLINTEND(concurrency-mt-unsafe)
}

static bool take_number(const char *line, const char *word, uint64_t *ret_number)
{
    if (strncmp(line, word, strlen(word)) != 0) {
        return false;
    }
    line += strlen(word);
    line += strspn(line, " ");
    return number_whole(line, strspn(line, "0123456789"), UINT64_MAX, ret_number);
}

/* The number behind a word at the beginning of a line, "" being the first line's. False: there is
 * none, as in "max". */
static bool read_number(const char *path, const char *word, uint64_t *ret_number)
{
    char line[256];
    bool is_found = false;
    FILE *file = fopen(path, "re");
    while (file != NULL && !is_found && fgets(line, sizeof(line), file) != NULL) {
        is_found = take_number(line, word, ret_number);
    }
    if (file != NULL) {
        fclose(file);
    }
    return is_found;
}

/* The folder of this process's control group, of version 2. */
static bool find_group(char *ret_path, size_t size)
{
    char line[1024];
    bool is_found = false;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file != NULL && !is_found && fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        is_found = strncmp(line, "0::/", 4) == 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    int used = is_found ? snprintf(ret_path, size, "/sys/fs/cgroup%s", line + 3) : -1;
    return used > 0 && (size_t)used < size - 32;
}

/* What its files take can be had again, but for the part that lies in memory alone. */
static uint64_t group_available(void)
{
    char folder[1280], path[1344];
    uint64_t most, now, files = 0;
    if (!find_group(folder, sizeof(folder))) {
        return UINT64_MAX;
    }
    snprintf(path, sizeof(path), "%s/memory.max", folder);
    bool is_limited = read_number(path, "", &most);
    snprintf(path, sizeof(path), "%s/memory.current", folder);
    if (!is_limited || !read_number(path, "", &now)) {
        return UINT64_MAX;
    }
    snprintf(path, sizeof(path), "%s/memory.stat", folder);
    read_number(path, "inactive_file ", &files);
    now = now > files ? now - files : 0;
    return most > now ? most - now : 0;
}

uint64_t memory_available(void)
{
    uint64_t kilobytes, group = group_available();
    bool is_known = read_number("/proc/meminfo", "MemAvailable:", &kilobytes);
    uint64_t host = is_known ? kilobytes << 10 : UINT64_MAX;
    return host < group ? host : group;
}
