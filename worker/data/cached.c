/* Reads and writes places of a file that is mostly a hole. */
#include "worker/data/cached.h"

#include "common/base/crc32c.h"
#include "common/base/log.h"
#include "common/vector/layout.h"
#include "worker/data/cache_file.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/uio.h>

#define KEY_SAMPLES 4 // whose bytes are part of the key
#define ALIGNMENT   64

/* Before the bytes of an image. */
struct head {
    uint64_t key, index;
    uint32_t label, sum; // sum: CRC-32C of the bytes, and of all before
};

/* What changes while images are read. */
struct use {
    atomic_uint_fast64_t room; // bytes that this process may still write
    atomic_uint_fast64_t found, kept, missed;
};

struct cached {
    struct dataset base;
    struct dataset *inner; // owned
    struct cache_file *file;
    struct use *use; // owned
    uint64_t key, budget;
    size_t image_bytes, place_bytes;
};

/* ---- one image ---- */

static uint32_t sum_of(const struct cached *cached, const struct head *head, const uint8_t *bytes)
{
    return crc32c(bytes, cached->image_bytes) ^ crc32c(head, offsetof(struct head, sum));
}

/* Whether the image is there. */
static bool find(const struct cached *cached, uint64_t index, uint8_t *ret_bytes,
                 uint32_t *ret_label)
{
    struct head head;
    const struct iovec parts[] = {{&head, sizeof(head)}, {ret_bytes, cached->image_bytes}};
    ssize_t wanted = (ssize_t)(sizeof(head) + cached->image_bytes);
    ssize_t got =
        preadv(cache_file_descriptor(cached->file), parts, 2, (off_t)(index * cached->place_bytes));
    if (got != wanted || head.key != cached->key || head.index != index ||
        head.label >= cached->base.class_count || head.sum != sum_of(cached, &head, ret_bytes)) {
        return false;
    }
    *ret_label = head.label;
    return true;
}

static bool take_room(const struct cached *cached)
{
    uint64_t room = atomic_load(&cached->use->room);
    while (room >= cached->place_bytes) {
        if (atomic_compare_exchange_weak(&cached->use->room, &room, room - cached->place_bytes)) {
            return true;
        }
    }
    return false;
}

/* A failure to write is no failure to read. */
static void keep(const struct cached *cached, uint64_t index, uint8_t *bytes, uint32_t label)
{
    struct head head = {.key = cached->key, .index = index, .label = label};
    head.sum = sum_of(cached, &head, bytes);
    if (!take_room(cached)) {
        atomic_fetch_add(&cached->use->missed, 1);
        return;
    }
    const struct iovec parts[] = {{&head, sizeof(head)}, {bytes, cached->image_bytes}};
    ssize_t put = pwritev(cache_file_descriptor(cached->file), parts, 2,
                          (off_t)(index * cached->place_bytes));
    if (put == (ssize_t)(sizeof(head) + cached->image_bytes)) {
        atomic_fetch_add(&cached->use->kept, 1);
        return;
    }
    atomic_fetch_add(&cached->use->missed, 1);
    if (put < 0 && atomic_exchange(&cached->use->room, 0) > 0) {
        log_warn("no more images are kept (--cache): cannot write %s: %m",
                 cache_file_path(cached->file));
    }
}

/* ---- the dataset ---- */

static enum status cached_read_bytes(const struct dataset *dataset, uint64_t index,
                                     uint8_t *ret_bytes, uint32_t *ret_label)
{
    const struct cached *cached = (const struct cached *)dataset;
    if (find(cached, index, ret_bytes, ret_label)) {
        atomic_fetch_add(&cached->use->found, 1);
        return STATUS_OK;
    }
    enum status status = dataset_read_bytes(cached->inner, index, ret_bytes, ret_label);
    if (status == STATUS_OK) {
        keep(cached, index, ret_bytes, *ret_label);
    }
    return status;
}

static enum status cached_read_part(const struct dataset *dataset, uint64_t index,
                                    const struct crop_draw *part, uint8_t *ret_bytes,
                                    uint32_t *ret_label)
{
    return dataset_read_part(((const struct cached *)dataset)->inner, index, part, ret_bytes,
                             ret_label);
}

static void cached_describe(const struct dataset *dataset, struct pixels_source *ret_source)
{
    dataset_describe(((const struct cached *)dataset)->inner, ret_source);
}

static void cached_convert(const struct dataset *dataset, const uint8_t *bytes, float *ret_pixels)
{
    dataset_convert(((const struct cached *)dataset)->inner, bytes, ret_pixels);
}

static void cached_close(struct dataset *dataset)
{
    struct cached *cached = (struct cached *)dataset;
    struct cached_counts counts = {0};
    dataset_cache_counts(dataset, &counts);
    log_info("decoded images in %s: found=%" PRIu64 " kept=%" PRIu64 " did_not_fit=%" PRIu64,
             cache_file_path(cached->file), counts.found, counts.kept, counts.missed);
    cache_file_close(cached->file);
    dataset_close(cached->inner);
    free(cached->use);
    free(cached);
}

static const struct dataset_ops cached_ops = {
    .read = dataset_read_by_bytes,
    .describe = cached_describe,
    .read_bytes = cached_read_bytes,
    .convert = cached_convert,
    .read_part = cached_read_part,
    .close = cached_close,
};

bool dataset_cache_counts(const struct dataset *dataset, struct cached_counts *ret_counts)
{
    if (dataset->ops != &cached_ops) {
        return false;
    }
    struct use *use = ((const struct cached *)dataset)->use;
    *ret_counts = (struct cached_counts){.found = atomic_load(&use->found),
                                         .kept = atomic_load(&use->kept),
                                         .missed = atomic_load(&use->missed)};
    const struct cached *cached = (const struct cached *)dataset;
    uint64_t all = cached->base.sample_count * cached->place_bytes;
    ret_counts->budget = cached->budget;
    ret_counts->taken = all < cached->budget ? all : cached->budget;
    return true;
}

/* ---- opening ---- */

/* Of the files, and of how the first of them are decoded, which a new library may do otherwise. */
static enum status find_key(const struct dataset *inner, size_t image_bytes, uint64_t *ret_key)
{
    uint8_t *bytes = malloc(image_bytes);
    enum status status = bytes != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    uint64_t key = layout_digest_add(LAYOUT_DIGEST_SEED, &inner->stamp, sizeof(inner->stamp));
    key = layout_digest_add(key, &inner->sample_count, sizeof(inner->sample_count));
    key = layout_digest_add(key, &image_bytes, sizeof(image_bytes));
    for (uint64_t i = 0; status == STATUS_OK && i < KEY_SAMPLES && i < inner->sample_count; i++) {
        uint32_t label;
        status = dataset_read_bytes(inner, i, bytes, &label);
        key = status == STATUS_OK ? layout_digest_add(key, bytes, image_bytes) : key;
    }
    free(bytes);
    *ret_key = key;
    return status;
}

static void tell(const struct cached *cached)
{
    uint64_t budget = cached->budget, fitting = budget / cached->place_bytes,
             count = cached->base.sample_count;
    if (fitting >= count) {
        log_info("decoded images are kept in %s, up to %" PRIu64 " MiB; images=%" PRIu64,
                 cache_file_path(cached->file), count * cached->place_bytes >> 20, count);
        return;
    }
    log_warn("--cache has room for %" PRIu64 " of %" PRIu64 " images (%" PRIu64 " of %" PRIu64
             " MiB): the others are decoded each time. Raise --cache-mb if there is more",
             fitting, count, budget >> 20, count * cached->place_bytes >> 20);
}

static enum status fill(struct cached *cached, const struct cached_options *options)
{
    enum status status = find_key(cached->inner, cached->image_bytes, &cached->key);
    if (status != STATUS_OK) {
        return status;
    }
    const struct cache_file_options file = {.key = cached->key,
                                            .is_in_memory = options->place == CACHED_IN_MEMORY,
                                            .folder = options->folder,
                                            .budget = options->budget};
    status = cache_file_open(&file, &cached->file, &cached->budget);
    if (status != STATUS_OK) {
        return status;
    }
    atomic_init(&cached->use->room, cached->budget / options->sharers);
    if (options->tells) {
        tell(cached);
    }
    return STATUS_OK;
}

/* Why nothing can be kept of these images; NULL: it can. */
static const char *why_not(const struct dataset *inner)
{
    return !dataset_has_parts(inner) ? "these images are not decoded from files of their own"
           : inner->stamp == 0 ? "some images changed in the last two seconds; start the job again"
                               : NULL;
}

enum status dataset_cache(struct dataset *inner, const struct cached_options *options,
                          struct dataset **ret_dataset)
{
    const char *why = why_not(inner);
    if (options->place == CACHED_NOWHERE || why != NULL) {
        if (options->place != CACHED_NOWHERE && options->tells) {
            log_warn("--cache keeps nothing: %s", why);
        }
        *ret_dataset = inner;
        return STATUS_OK;
    }
    struct cached *cached = calloc(1, sizeof(*cached));
    struct use *use = calloc(1, sizeof(*use));
    struct pixels_source source;
    enum status status = STATUS_NO_MEMORY;
    if (cached != NULL && use != NULL) {
        dataset_describe(inner, &source);
        size_t bytes = (size_t)pixels_bytes(&source);
        *cached = (struct cached){
            .base = *inner,
            .inner = inner,
            .use = use,
            .image_bytes = bytes,
            .place_bytes = (sizeof(struct head) + bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT,
        };
        cached->base.ops = &cached_ops;
        cached->base.origin = dataset_origin(inner);
        status = fill(cached, options);
    }
    if (status == STATUS_OK) {
        *ret_dataset = &cached->base;
        return STATUS_OK;
    }
    free(use);
    free(cached);
    if (status == STATUS_UNSUPPORTED) { // which was said
        *ret_dataset = inner;
        return STATUS_OK;
    }
    dataset_close(inner);
    return status;
}
