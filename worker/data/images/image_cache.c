/* Files of findings.
 *
 *     8 bytes     "RSimagP1", or "RSimagJ1" of a build that cannot read PNG
 *     records     in the order of the list: the lengths of class and name (2 x u16), size (u64),
 *                 time (i64), class, name
 *     4 bytes     CRC-32C of all before
 *
 * Numbers are little-endian. A file is written beside its place and moved there. */
#include "worker/data/images/image_cache.h"

#include "common/base/cache_folder.h"
#include "common/base/crc32c.h"
#include "common/base/log.h"
#include "common/base/new_file.h"
#include "common/vector/layout.h"
#include "worker/data/images/decoder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC_BYTES  8
#define SUM_BYTES    4
#define RECORD_BYTES 20
#define FRESH_NS     2000000000
#define PATH_BYTES   CACHE_FOLDER_BYTES
#define FILE_MAX     ((size_t)1 << 32)

struct image_cache {
    char path[PATH_BYTES];
    int lock; // descriptor
};

/* ---- bytes ---- */

struct record {
    uint16_t class_size, name_size;
    uint64_t size;
    int64_t changed_ns;
    const char *class, *name; // not terminated
};

static void put(uint8_t **at, const void *bytes, size_t size)
{
    memcpy(*at, bytes, size);
    *at += size;
}

static void take(const uint8_t **at, void *ret_bytes, size_t size)
{
    memcpy(ret_bytes, *at, size);
    *at += size;
}

static bool is_kept(const struct image_file *file, int64_t now_ns)
{
    return file->is_checked && file->why == NULL && file->changed_ns < now_ns - FRESH_NS;
}

/* What another build finds bad is not good here. */
static const char *magic_of_build(void)
{
    char why[DECODER_WHY_BYTES];
    return decoder_allows_png(why, sizeof(why)) == STATUS_OK ? "RSimagP1" : "RSimagJ1";
}

static size_t record_size(const struct image_list *list, const struct image_file *file)
{
    return RECORD_BYTES + strlen(list->classes[file->class]) + strlen(list->names + file->name_at);
}

static void put_record(uint8_t **at, const struct image_list *list, const struct image_file *file)
{
    const char *class = list->classes[file->class], *name = list->names + file->name_at;
    uint16_t sizes[2] = {(uint16_t)strlen(class), (uint16_t)strlen(name)};
    put(at, sizes, sizeof(sizes));
    put(at, &file->size, sizeof(file->size));
    put(at, &file->changed_ns, sizeof(file->changed_ns));
    put(at, class, sizes[0]);
    put(at, name, sizes[1]);
}

enum status image_cache_encode(const struct image_list *list, int64_t now_ns, uint8_t **ret_bytes,
                               size_t *ret_size)
{
    size_t size = MAGIC_BYTES + SUM_BYTES;
    for (uint64_t i = 0; i < list->count; i++) {
        size += is_kept(&list->files[i], now_ns) ? record_size(list, &list->files[i]) : 0;
    }
    uint8_t *bytes = malloc(size), *at = bytes;
    if (bytes == NULL) {
        return STATUS_NO_MEMORY;
    }
    put(&at, magic_of_build(), MAGIC_BYTES);
    for (uint64_t i = 0; i < list->count; i++) {
        if (is_kept(&list->files[i], now_ns)) {
            put_record(&at, list, &list->files[i]);
        }
    }
    uint32_t sum = crc32c(bytes, size - SUM_BYTES);
    put(&at, &sum, sizeof(sum));
    *ret_bytes = bytes;
    *ret_size = size;
    return STATUS_OK;
}

static bool take_record(const uint8_t **at, size_t *left, struct record *ret_record)
{
    struct record record;
    if (*left < RECORD_BYTES) {
        return false;
    }
    take(at, &record.class_size, sizeof(record.class_size));
    take(at, &record.name_size, sizeof(record.name_size));
    take(at, &record.size, sizeof(record.size));
    take(at, &record.changed_ns, sizeof(record.changed_ns));
    *left -= RECORD_BYTES;
    size_t texts = (size_t)record.class_size + record.name_size;
    if (*left < texts) {
        return false;
    }
    record.class = (const char *)*at;
    record.name = record.class + record.class_size;
    *at += texts;
    *left -= texts;
    *ret_record = record;
    return true;
}

/* As strcmp, where the first text has a size instead of an end. */
static int compare_text(const char *text, size_t size, const char *other)
{
    size_t other_size = strlen(other);
    int order = memcmp(text, other, size < other_size ? size : other_size);
    return order != 0 ? order : (size > other_size) - (size < other_size);
}

static int compare_record(const struct record *record, const struct image_list *list,
                          const struct image_file *file)
{
    int order = compare_text(record->class, record->class_size, list->classes[file->class]);
    return order != 0 ? order
                      : compare_text(record->name, record->name_size, list->names + file->name_at);
}

static void take_over(const struct record *record, struct image_file *file)
{
    file->is_checked =
        file->is_checked || (file->size == record->size && file->changed_ns == record->changed_ns);
}

enum status image_cache_decode(const uint8_t *bytes, size_t size, struct image_list *list)
{
    uint32_t sum;
    if (size < MAGIC_BYTES + SUM_BYTES || memcmp(bytes, magic_of_build(), MAGIC_BYTES) != 0) {
        return STATUS_MALFORMED;
    }
    memcpy(&sum, bytes + size - SUM_BYTES, sizeof(sum));
    if (sum != crc32c(bytes, size - SUM_BYTES)) {
        return STATUS_MALFORMED;
    }
    const uint8_t *at = bytes + MAGIC_BYTES;
    size_t left = size - MAGIC_BYTES - SUM_BYTES;
    uint64_t next = 0;
    while (left > 0) {
        struct record record;
        if (!take_record(&at, &left, &record)) {
            return STATUS_MALFORMED;
        }
        while (next < list->count && compare_record(&record, list, &list->files[next]) > 0) {
            next++;
        }
        if (next < list->count && compare_record(&record, list, &list->files[next]) == 0) {
            take_over(&record, &list->files[next]);
        }
    }
    return STATUS_OK;
}

/* ---- files ---- */

struct image_cache *image_cache_open(const char *folder)
{
    char kept[PATH_BYTES];
    char *real = realpath(folder, NULL);
    struct image_cache *cache = calloc(1, sizeof(*cache));
    if (real == NULL || cache == NULL || !cache_folder_find("images", kept) ||
        !cache_folder_make(kept)) {
        goto fail;
    }
    uint64_t digest = layout_digest_add(LAYOUT_DIGEST_SEED, real, strlen(real));
    snprintf(cache->path, sizeof(cache->path), "%.4000s/%016llx", kept, (unsigned long long)digest);
    cache->lock = cache_folder_lock(cache->path);
    if (cache->lock < 0) {
        goto fail;
    }
    free(real);
    return cache;

fail:
    free(real);
    free(cache);
    return NULL;
}

void image_cache_close(struct image_cache *cache)
{
    if (cache != NULL) {
        close(cache->lock);
        free(cache);
    }
}

void image_cache_read(const struct image_cache *cache, struct image_list *list)
{
    size_t size;
    char *bytes = cache_folder_read(cache->path, FILE_MAX, &size);
    if (bytes != NULL &&
        image_cache_decode((const uint8_t *)bytes, size, list) == STATUS_MALFORMED) {
        log_warn("what was kept in %s is broken, or of another build, and is made anew",
                 cache->path);
    }
    free(bytes);
}

void image_cache_write(const struct image_cache *cache, const struct image_list *list,
                       int64_t now_ns)
{
    char draft[PATH_BYTES + 8];
    uint8_t *bytes;
    size_t size;
    if (image_cache_encode(list, now_ns, &bytes, &size) != STATUS_OK) {
        return;
    }
    snprintf(draft, sizeof(draft), "%s.part", cache->path);
    FILE *file = new_file_stream(draft, true);
    bool is_written = file != NULL && fwrite(bytes, 1, size, file) == size;
    free(bytes);
    if (file == NULL) {
        return;
    }
    if (fclose(file) != 0 || !is_written || rename(draft, cache->path) != 0) {
        unlink(draft);
    }
}
