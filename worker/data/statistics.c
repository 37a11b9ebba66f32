/* Adds up bytes and their squares in several threads, and keeps the sums. */
#include "worker/data/statistics.h"

#include "common/base/cache_folder.h"
#include "common/base/cores.h"
#include "common/base/crc32c.h"
#include "common/base/log.h"
#include "common/base/new_file.h"
#include "common/vector/layout.h"
#include "worker/data/helpers.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TURN        64    // samples that a thread takes at once
#define SPAN_MAX    65536 // of bytes whose squares add up to 32 bits
#define KEY_SAMPLES 16    // whose pixels are part of the key
#define MAGIC       "RSsumsP1"

/* ---- counting ---- */

struct count {
    const struct dataset *dataset;
    uint64_t samples;
    atomic_uint_fast64_t next;
    atomic_int failure; // enum status
    pthread_mutex_t lock;
    struct statistics total; // guarded by the lock
};

static void add_span(const uint8_t *bytes, size_t size, uint64_t *sum, uint64_t *squares)
{
    uint32_t low = 0, high = 0;
    for (size_t i = 0; i < size; i++) {
        uint32_t byte = bytes[i];
        low += byte;
        high += byte * byte;
    }
    *sum += low;
    *squares += high;
}

static void add_sample(struct statistics *statistics, const uint8_t *bytes, uint32_t channels,
                       size_t plane)
{
    for (uint32_t c = 0; c < channels; c++) {
        for (size_t at = 0; at < plane; at += SPAN_MAX) {
            size_t size = plane - at < SPAN_MAX ? plane - at : SPAN_MAX;
            add_span(bytes + c * plane + at, size, &statistics->sums[c], &statistics->squares[c]);
        }
    }
    statistics->pixels += plane;
}

static enum status count_turns(struct count *count, const struct pixels_source *source,
                               uint8_t *bytes, struct statistics *own)
{
    size_t plane = (size_t)source->rows * source->columns;
    for (;;) {
        uint64_t first = atomic_fetch_add(&count->next, TURN);
        for (uint64_t i = first; i < first + TURN; i++) {
            uint32_t label;
            if (i >= count->samples || atomic_load(&count->failure) != STATUS_OK) {
                return STATUS_OK;
            }
            enum status status = dataset_read_bytes(count->dataset, i, bytes, &label);
            if (status != STATUS_OK) {
                return status;
            }
            add_sample(own, bytes, source->channels, plane);
        }
    }
}

static void *run_count(void *argument)
{
    struct count *count = argument;
    struct statistics own = {0};
    struct pixels_source source;
    dataset_describe(count->dataset, &source);
    uint8_t *bytes = malloc(pixels_bytes(&source));
    enum status status =
        bytes != NULL ? count_turns(count, &source, bytes, &own) : STATUS_NO_MEMORY;
    free(bytes);
    if (status != STATUS_OK) {
        atomic_store(&count->failure, (int)status);
    }
    pthread_mutex_lock(&count->lock);
    count->total.pixels += own.pixels;
    for (uint32_t c = 0; c < PIXELS_CHANNELS_MAX; c++) {
        count->total.sums[c] += own.sums[c];
        count->total.squares[c] += own.squares[c];
    }
    pthread_mutex_unlock(&count->lock);
    return NULL;
}

static enum status count_all(const struct dataset *dataset, uint64_t samples,
                             struct statistics *ret_statistics)
{
    struct count count = {.dataset = dataset, .samples = samples};
    uint64_t turns = samples / TURN + 1, cores = cores_available();
    pthread_mutex_init(&count.lock, NULL); // which never fails on Linux
    helpers_run(run_count, &count, turns < cores ? turns : cores);
    pthread_mutex_destroy(&count.lock);
    *ret_statistics = count.total;
    return (enum status)atomic_load(&count.failure);
}

/* ---- what is kept ---- */

struct kept {
    char magic[sizeof(MAGIC) - 1];
    uint64_t key, samples;
    struct statistics statistics;
    uint32_t sum, zero; // sum: CRC-32C of all before
};

/* Of the files, and of how the first of them are decoded, which a new library may do otherwise. */
static enum status find_key(const struct dataset *dataset, uint64_t samples, uint64_t *ret_key)
{
    struct pixels_source source;
    dataset_describe(dataset, &source);
    uint8_t *bytes = malloc(pixels_bytes(&source));
    enum status status = bytes != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    uint64_t key = layout_digest_add(LAYOUT_DIGEST_SEED, &dataset->stamp, sizeof(dataset->stamp));
    key = layout_digest_add(key, &samples, sizeof(samples));
    key = layout_digest_add(key, &source.rows, sizeof(source.rows));
    for (uint64_t i = 0; status == STATUS_OK && i < KEY_SAMPLES && i < samples; i++) {
        uint32_t label;
        status = dataset_read_bytes(dataset, i, bytes, &label);
        key = status == STATUS_OK ? layout_digest_add(key, bytes, pixels_bytes(&source)) : key;
    }
    free(bytes);
    *ret_key = key;
    return status;
}

static bool read_kept(const char *path, uint64_t key, uint64_t samples,
                      struct statistics *ret_statistics)
{
    struct kept kept;
    size_t size;
    char *bytes = cache_folder_read(path, sizeof(kept), &size);
    bool is_whole = bytes != NULL && size == sizeof(kept);
    if (is_whole) {
        memcpy(&kept, bytes, sizeof(kept));
        is_whole = memcmp(kept.magic, MAGIC, sizeof(kept.magic)) == 0 && kept.key == key &&
                   kept.samples == samples && kept.statistics.pixels > 0 &&
                   kept.sum == crc32c(&kept, offsetof(struct kept, sum));
    }
    free(bytes);
    if (is_whole) {
        *ret_statistics = kept.statistics;
    }
    return is_whole;
}

static void write_kept(const char *path, uint64_t key, uint64_t samples,
                       const struct statistics *statistics)
{
    char draft[CACHE_FOLDER_BYTES + 8];
    struct kept kept = {.key = key, .samples = samples, .statistics = *statistics};
    memcpy(kept.magic, MAGIC, sizeof(kept.magic));
    kept.sum = crc32c(&kept, offsetof(struct kept, sum));
    snprintf(draft, sizeof(draft), "%s.part", path);
    FILE *file = new_file_stream(draft, true);
    if (file == NULL) {
        return;
    }
    bool is_written = fwrite(&kept, sizeof(kept), 1, file) == 1;
    if (fclose(file) != 0 || !is_written || rename(draft, path) != 0) {
        unlink(draft);
    }
}

enum status statistics_count(const struct dataset *dataset, uint64_t samples, bool tells,
                             struct statistics *ret_statistics)
{
    char path[CACHE_FOLDER_BYTES], folder[CACHE_FOLDER_BYTES];
    uint64_t key = 0;
    int lock = -1;
    if (dataset->stamp != 0 && cache_folder_find("images", folder) && cache_folder_make(folder)) {
        enum status status = find_key(dataset, samples, &key);
        if (status != STATUS_OK) {
            return status;
        }
        snprintf(path, sizeof(path), "%.4000s/%016" PRIx64 ".sums", folder, key);
        lock = cache_folder_lock(path);
    }
    if (lock >= 0 && read_kept(path, key, samples, ret_statistics)) {
        close(lock);
        return STATUS_OK;
    }
    if (tells && dataset->stamp != 0) {
        log_info("decoding %" PRIu64 " training images for their mean and deviation%s", samples,
                 lock >= 0 ? ", which is kept" : "");
    }
    enum status status = count_all(dataset, samples, ret_statistics);
    if (lock >= 0) {
        if (status == STATUS_OK) {
            write_kept(path, key, samples, ret_statistics);
        }
        close(lock);
    }
    return status;
}

/* ---- figures ---- */

enum status statistics_figures(const struct statistics *statistics, uint32_t channels,
                               struct normalization *ret_normalization)
{
    char means[64] = "", deviations[64] = "", text[160], why[256];
    size_t means_size = 0, deviations_size = 0;
    for (uint32_t c = 0; c < channels; c++) {
        double count = (double)statistics->pixels;
        double mean = (double)statistics->sums[c] / count;
        double variance = (double)statistics->squares[c] / count - mean * mean;
        double deviation = sqrt(fmax(0, variance)) / 255;
        if (deviation < 0.0001) {
            log_error("channel %u has the same value in all images: they have no deviation to be "
                      "normalised by, and nothing to learn from",
                      c);
            return STATUS_INVALID;
        }
        const char *comma = c > 0 ? "," : "";
        means_size += (size_t)snprintf(means + means_size, sizeof(means) - means_size, "%s%.4f",
                                       comma, mean / 255);
        deviations_size +=
            (size_t)snprintf(deviations + deviations_size, sizeof(deviations) - deviations_size,
                             "%s%.4f", comma, deviation);
    }
    snprintf(text, sizeof(text), "%s/%s", means, deviations);
    return normalization_parse(text, ret_normalization, why, sizeof(why));
}
