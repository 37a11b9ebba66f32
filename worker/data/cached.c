/* Reads and writes places of a file that is mostly a hole.
 *
 * Where there is not room for all, which images may be written follows from their numbers alone, so
 * that processes need not agree on how much each of them takes. Steps of the golden ratio spread
 * them over the list: each rank finds about the same share of its part (--shard local). With less
 * room, it is a part of the same images. */
#include "worker/data/cached.h"

#include "common/base/crc32c.h"
#include "common/base/log.h"
#include "common/vector/layout.h"
#include "worker/data/cache_file.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/uio.h>

#define KEY_SAMPLES 4 // whose bytes are part of the key
#define ALIGNMENT   64
#define GOLDEN      0.6180339887498949

/* Before the bytes of an image. */
struct head {
    uint64_t key, index;
    uint32_t label, sum; // sum: CRC-32C of the bytes, and of all before
};

/* What changes while images are read. */
struct use {
    atomic_bool is_broken; // writing has failed, and is given up
    atomic_uint_fast64_t found, kept, missed;
};

struct cached {
    struct dataset base;
    struct dataset *inner; // owned
    struct cache_file *file;
    struct use *use; // owned
    uint64_t key, budget;
    uint64_t samples; // that are read, at least 1
    uint64_t fitting; // of those: as many may be written
    uint64_t stride;  // without a common divisor with them
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

static bool may_keep(const struct cached *cached, uint64_t index)
{
    if (cached->fitting >= cached->samples || index >= cached->samples) {
        return index < cached->samples;
    }
    return index * cached->stride % cached->samples < cached->fitting;
}

/* A failure to write is no failure to read. */
static void keep(const struct cached *cached, uint64_t index, uint8_t *bytes, uint32_t label)
{
    struct head head = {.key = cached->key, .index = index, .label = label};
    if (!may_keep(cached, index) || atomic_load(&cached->use->is_broken)) {
        atomic_fetch_add(&cached->use->missed, 1);
        return;
    }
    head.sum = sum_of(cached, &head, bytes);
    const struct iovec parts[] = {{&head, sizeof(head)}, {bytes, cached->image_bytes}};
    ssize_t put = pwritev(cache_file_descriptor(cached->file), parts, 2,
                          (off_t)(index * cached->place_bytes));
    if (put == (ssize_t)(sizeof(head) + cached->image_bytes)) {
        atomic_fetch_add(&cached->use->kept, 1);
        return;
    }
    atomic_fetch_add(&cached->use->missed, 1); // a disk that is full may have taken a part
    if (put < 0 && !atomic_exchange(&cached->use->is_broken, true)) {
        log_warn("no more images are kept (--cache), and those that are not there are decoded each "
                 "time: cannot write %s: %m",
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
    const struct cached *cached = dataset->cached;
    if (cached == NULL) {
        return false;
    }
    const struct use *use = cached->use;
    *ret_counts = (struct cached_counts){.found = atomic_load(&use->found),
                                         .kept = atomic_load(&use->kept),
                                         .missed = atomic_load(&use->missed),
                                         .budget = cached->budget,
                                         .taken = cached->fitting * cached->place_bytes};
    return true;
}

/* ---- opening ---- */

/* The first images, as they are decoded here. */
struct first {
    uint64_t count;
    uint8_t *bytes; // (count + 1) images, owned; the last is scratch
    uint32_t labels[KEY_SAMPLES];
};

/* Of the files, and of how the first of them are decoded, which a new library may do otherwise. */
static enum status find_key(const struct dataset *inner, size_t image_bytes, struct first *ret,
                            uint64_t *ret_key)
{
    uint64_t samples = inner->sample_count;
    ret->count = samples < KEY_SAMPLES ? samples : KEY_SAMPLES;
    ret->bytes = calloc(ret->count + 1, image_bytes);
    enum status status = ret->bytes != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    uint64_t key = layout_digest_add(LAYOUT_DIGEST_SEED, &inner->stamp, sizeof(inner->stamp));
    key = layout_digest_add(key, &samples, sizeof(samples));
    key = layout_digest_add(key, &image_bytes, sizeof(image_bytes));
    for (uint64_t i = 0; status == STATUS_OK && i < ret->count; i++) {
        uint8_t *bytes = ret->bytes + i * image_bytes;
        status = dataset_read_bytes(inner, i, bytes, &ret->labels[i]);
        key = status == STATUS_OK ? layout_digest_add(key, bytes, image_bytes) : key;
    }
    *ret_key = key;
    return status;
}

/* They need not be decoded again. */
static void keep_first(const struct cached *cached, const struct first *first)
{
    uint8_t *scratch = first->bytes + first->count * cached->image_bytes;
    for (uint64_t i = 0; i < first->count && i < cached->samples; i++) {
        uint32_t label;
        if (!find(cached, i, scratch, &label)) {
            keep(cached, i, first->bytes + i * cached->image_bytes, first->labels[i]);
        }
    }
}

static bool has_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a > 1;
}

/* Shares out what may be written. */
static void plan(struct cached *cached, uint64_t samples)
{
    uint64_t count = cached->base.sample_count, places = cached->budget / cached->place_bytes;
    cached->samples = samples > 0 && samples < count ? samples : count;
    cached->fitting = places < cached->samples ? places : cached->samples;
    cached->stride = (uint64_t)(GOLDEN * (double)cached->samples);
    while (has_common_divisor(cached->samples, cached->stride)) {
        cached->stride++;
    }
}

/* `which`: "training" or "test". */
static void tell(const struct cached *cached, const char *which)
{
    const double mib = 1 << 20;
    uint64_t samples = cached->samples;
    double needed = (double)(samples * cached->place_bytes) / mib;
    double budget = (double)cached->budget / mib;
    if (cached->fitting == samples) {
        log_info("decoded %s images are kept in %s; images=%" PRIu64 " MiB=%.1f budget_MiB=%.1f",
                 which, cache_file_path(cached->file), samples, needed, budget);
        return;
    }
    log_warn("--cache has room for %" PRIu64 " of %" PRIu64 " %s images (%.1f of %.1f MiB): the "
             "others are decoded each time. Raise --cache-mb if there is more",
             cached->fitting, samples, which, budget, needed);
}

/* What images that go before leave. False: nothing. */
static bool find_budget(const struct cached_options *options, uint64_t *ret_budget,
                        bool *ret_is_rest)
{
    struct cached_counts before;
    *ret_is_rest = options->before != NULL && dataset_cache_counts(options->before, &before);
    *ret_budget = *ret_is_rest ? before.budget - before.taken : options->budget;
    return !*ret_is_rest || *ret_budget > 0;
}

static enum status fill(struct cached *cached, const struct cached_options *options)
{
    struct cache_file_options file = {.is_in_memory = options->place == CACHED_IN_MEMORY,
                                      .folder = options->folder,
                                      .tells = options->tells};
    struct first first = {0};
    if (!find_budget(options, &file.budget, &file.is_rest)) {
        return STATUS_UNSUPPORTED;
    }
    enum status status = find_key(cached->inner, cached->image_bytes, &first, &cached->key);
    if (status == STATUS_OK) {
        file.key = cached->key;
        status = cache_file_open(&file, &cached->file, &cached->budget);
    }
    if (status == STATUS_OK) {
        plan(cached, options->samples);
        keep_first(cached, &first);
        if (options->tells) {
            tell(cached, options->is_test ? "test" : "training");
        }
    }
    free(first.bytes);
    return status;
}

/* Why nothing can be kept of these images; NULL: it can. */
static const char *why_not(const struct dataset *inner)
{
    return !dataset_has_parts(inner) ? "these images are not decoded from files of their own"
           : inner->stamp == 0 ? "some images changed in the last two seconds; start the job again"
           : inner->sample_count > UINT32_MAX ? "there are too many images"
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
        cached->base.cached = cached;
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
