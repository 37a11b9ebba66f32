/* Each thread has a decompressor of its own, and takes the next image; files lie in memory. */
#include "bench/programs/bare_decode.h"

#include "worker/data/helpers.h"
#include "worker/data/images/decoder_parts.h"

#include <glob.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <turbojpeg.h>

struct jpeg_file {
    uint8_t *bytes; // owned
    size_t size;
    int width, height; // of the result
};

struct bare_decode {
    struct jpeg_file *files; // (count), owned
    size_t count, most_bytes;
    pthread_t threads[HELPERS_MAX];
    uint32_t thread_count;
    atomic_size_t next;
    atomic_uint_fast64_t decoded;
    atomic_bool is_stopping;
};

static bool read_file(const char *path, struct jpeg_file *ret_file)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        return false;
    }
    ret_file->size = (size_t)ftell(file);
    ret_file->bytes = malloc(ret_file->size);
    rewind(file);
    bool is_whole = ret_file->bytes != NULL &&
                    fread(ret_file->bytes, 1, ret_file->size, file) == ret_file->size;
    fclose(file);
    return is_whole;
}

static bool plan_file(tjhandle handle, struct jpeg_file *file, uint32_t size)
{
    int width, height, sampling, space;
    if (tjDecompressHeader3(handle, file->bytes, file->size, &width, &height, &sampling, &space) !=
        0) {
        return false;
    }
    int side = width < height ? width : height;
    const tjscalingfactor scale = {.num = decode_jpeg_eighths((uint32_t)side, size), .denom = 8};
    file->width = TJSCALED(width, scale);
    file->height = TJSCALED(height, scale);
    return true;
}

static enum status read_files(struct bare_decode *decode, const char *folder, uint32_t size,
                              uint32_t count)
{
    char pattern[1024];
    glob_t found;
    enum status status = STATUS_OK;
    snprintf(pattern, sizeof(pattern), "%s/train/*/*", folder);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
    if (glob(pattern, 0, NULL, &found) != 0) {
        fprintf(stderr, "bench_input: %s has no files\n", pattern);
        return STATUS_INVALID;
    }
    decode->files = calloc(found.gl_pathc, sizeof(*decode->files));
    tjhandle handle = tjInitDecompress();
    bool has_memory = decode->files != NULL && handle != NULL;
    for (size_t i = 0; has_memory && i < found.gl_pathc && i < count; i++) {
        struct jpeg_file *file = &decode->files[decode->count++];
        if (!read_file(found.gl_pathv[i], file) || !plan_file(handle, file, size)) {
            fprintf(stderr, "bench_input: %s cannot be decoded\n", found.gl_pathv[i]);
            status = STATUS_INVALID;
            break;
        }
        size_t bytes = (size_t)file->width * (size_t)file->height * 3;
        decode->most_bytes = bytes > decode->most_bytes ? bytes : decode->most_bytes;
    }
    tjDestroy(handle);
    globfree(&found);
    return has_memory ? status : STATUS_NO_MEMORY;
}

static void *run_decode(void *argument)
{
    struct bare_decode *decode = argument;
    tjhandle handle = tjInitDecompress();
    uint8_t *pixels = malloc(decode->most_bytes);
    while (handle != NULL && pixels != NULL && !atomic_load(&decode->is_stopping)) {
        const struct jpeg_file *file =
            &decode->files[atomic_fetch_add(&decode->next, 1) % decode->count];
        if (tjDecompress2(handle, file->bytes, file->size, pixels, file->width, 0, file->height,
                          TJPF_RGB, TJFLAG_ACCURATEDCT) != 0) {
            fprintf(stderr, "bench_input: %s\n", tjGetErrorStr2(handle));
            abort();
        }
        atomic_fetch_add(&decode->decoded, 1);
    }
    free(pixels);
    tjDestroy(handle);
    return NULL;
}

enum status bare_decode_start(const char *folder, uint32_t size, uint32_t threads, uint32_t count,
                              struct bare_decode **ret_decode)
{
    struct bare_decode *decode = calloc(1, sizeof(*decode));
    if (decode == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = read_files(decode, folder, size, count);
    while (status == STATUS_OK && decode->thread_count < threads) {
        bool is_started = decode->thread_count < HELPERS_MAX &&
                          helpers_start(&decode->threads[decode->thread_count], run_decode, decode);
        status = is_started ? STATUS_OK : STATUS_NO_MEMORY;
        decode->thread_count += is_started;
    }
    if (status != STATUS_OK) {
        bare_decode_stop(decode);
        return status;
    }
    *ret_decode = decode;
    return STATUS_OK;
}

uint64_t bare_decode_count(const struct bare_decode *decode)
{
    return atomic_load(&decode->decoded);
}

void bare_decode_stop(struct bare_decode *decode)
{
    atomic_store(&decode->is_stopping, true);
    for (uint32_t i = 0; i < decode->thread_count; i++) {
        pthread_join(decode->threads[i], NULL);
    }
    for (size_t i = 0; i < decode->count; i++) {
        free(decode->files[i].bytes);
    }
    free(decode->files);
    free(decode);
}
