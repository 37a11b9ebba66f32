/* Speed of a worker's input: its own datasets, augmentation and batches, which nobody trains on.
 *
 *     bench_input read DATA SIZE BATCH THREADS AUGMENT ROUNDS SECONDS
 *     bench_input bytes DATA SIZE BATCH THREADS AUGMENT ROUNDS SECONDS
 *     bench_input decode DIR SIZE THREADS ROUNDS SECONDS
 *     bench_input make CIFAR10 DIR COUNT
 *
 * `read` makes batches of DATA as a job with --data, --image-size, --loader-threads and --augment
 * would, of floats, as on a CPU; `bytes` makes them of bytes, as for a GPU, which makes floats
 * itself. `decode` decodes the same JPEG files by libturbojpeg and does no more. All three print a
 * line of JSON for each round of so many seconds, so that a script can interleave them with a peer.
 *
 * `make` writes COUNT training images to DIR, and a tenth to validate: mosaics of 64 images of the
 * folder CIFAR10, scaled to twice their size, as JPEG files of 512x512 pixels, which have about as
 * much detail as photographs. */
#include "bench/programs/bare_decode.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/plan/augmentation.h"
#include "worker/data/batches/batcher.h"
#include "worker/data/batches/loaders.h"
#include "worker/data/images/encode_jpeg.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define WARMUP_NS 300000000
#define DEPTH     4 // batches ahead, as in a job

#define SIDE         ((size_t)32) // of an image of CIFAR-10
#define SCALE        2
#define TILES        8 // of a mosaic, in a row and a column
#define MOSAIC       (SIDE * SCALE * TILES)
#define CLASSES      10
#define JPEG_QUALITY 90

/* What a round is measured of: both sides count images. */
struct side {
    const char *name;
    uint32_t size, batch, threads;
    struct batcher *batcher;    // NULL: bare decoding
    struct bare_decode *decode; // NULL: batches
    uint64_t images;            // that were taken
};

static uint64_t cpu_ns(void)
{
    struct timespec busy;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &busy);
    return (uint64_t)busy.tv_sec * 1000000000 + (uint64_t)busy.tv_nsec;
}

/* Goes on for some time. */
static enum status advance(struct side *side, uint64_t until_ns)
{
    struct timespec while_decoding = {.tv_nsec = 1000000};
    while (clock_now_ns() < until_ns) {
        if (side->decode != NULL) {
            nanosleep(&while_decoding, NULL);
            side->images = bare_decode_count(side->decode);
            continue;
        }
        struct batch batch;
        enum status status = batcher_next(side->batcher, &batch);
        if (status != STATUS_OK) {
            return status;
        }
        side->images += batch.count;
    }
    return STATUS_OK;
}

static enum status run_rounds(struct side *side, uint32_t rounds, double seconds)
{
    enum status status = advance(side, clock_now_ns() + WARMUP_NS);
    for (uint32_t i = 0; i < rounds && status == STATUS_OK; i++) {
        uint64_t began_ns = clock_now_ns(), began_cpu_ns = cpu_ns(), before = side->images;
        status = advance(side, began_ns + (uint64_t)(1e9 * seconds));
        double took = (double)(clock_now_ns() - began_ns) / 1e9;
        double busy = (double)(cpu_ns() - began_cpu_ns) / 1e9;
        double images = (double)(side->images - before);
        printf("{\"side\":\"%s\",\"size\":%u,\"batch\":%u,\"threads\":%u,"
               "\"images_per_second\":%.1f,\"images_per_cpu_second\":%.1f}\n",
               side->name, side->size, side->batch, side->threads, images / took, images / busy);
        fflush(stdout);
    }
    return status;
}

/* ---- read ---- */

static enum status open_batches(struct side *side, const struct dataset *dataset,
                                const char *augment, bool reads_bytes, struct loaders *loaders)
{
    char why[512];
    struct batcher_options options = {
        .batch_size = side->batch,
        .global_batch = side->batch,
        .world = 1,
        .seed = 1,
        .is_training = true,
        .reads_bytes = reads_bytes,
        .depth = DEPTH,
        .loaders = loaders,
    };
    if (augmentation_parse(augment, &options.augmentation, why, sizeof(why)) != STATUS_OK) {
        fprintf(stderr, "bench_input: AUGMENT: %s\n", why);
        return STATUS_INVALID;
    }
    return batcher_create(&options, dataset, &side->batcher);
}

static enum status read_batches(char **words, bool reads_bytes)
{
    struct side side = {.name = "ringside",
                        .size = (uint32_t)strtoul(words[1], NULL, 10),
                        .batch = (uint32_t)strtoul(words[2], NULL, 10),
                        .threads = (uint32_t)strtoul(words[3], NULL, 10)};
    const struct dataset_options data = {
        .seed = 1, .split = DATASET_TRAIN, .image_size = side.size};
    const struct loaders_options threads = {.threads = side.threads, .processors = side.threads};
    struct dataset *dataset;
    struct loaders *loaders = NULL;
    enum status status = dataset_open(words[0], &data, &dataset);
    if (status != STATUS_OK) {
        return status;
    }
    status = loaders_create(&threads, &loaders);
    if (status == STATUS_OK) {
        status = open_batches(&side, dataset, words[4], reads_bytes, loaders);
    }
    if (status == STATUS_OK) {
        status = run_rounds(&side, (uint32_t)strtoul(words[5], NULL, 10), strtod(words[6], NULL));
    }
    batcher_destroy(side.batcher);
    loaders_destroy(loaders);
    dataset_close(dataset);
    return status;
}

static enum status read_floats(char **words)
{
    return read_batches(words, false);
}

static enum status read_bytes(char **words)
{
    return read_batches(words, true);
}

/* ---- decode ---- */

static enum status decode_files(char **words)
{
    struct side side = {.name = "bare",
                        .size = (uint32_t)strtoul(words[1], NULL, 10),
                        .threads = (uint32_t)strtoul(words[2], NULL, 10)};
    enum status status =
        bare_decode_start(words[0], side.size, side.threads, UINT32_MAX, &side.decode);
    if (status != STATUS_OK) {
        return status;
    }
    status = run_rounds(&side, (uint32_t)strtoul(words[3], NULL, 10), strtod(words[4], NULL));
    bare_decode_stop(side.decode);
    return status;
}

/* ---- make ---- */

/* Puts an image into a mosaic, every pixel `SCALE` times across and down, its neighbours between
 * them: (3, MOSAIC, MOSAIC). */
static void put_tile(const uint8_t *image, uint32_t tile, uint8_t *mosaic)
{
    size_t top = tile / TILES * SIDE * SCALE, left = tile % TILES * SIDE * SCALE;
    for (uint32_t c = 0; c < 3; c++) {
        const uint8_t *plane = image + c * SIDE * SIDE;
        uint8_t *to = mosaic + c * MOSAIC * MOSAIC;
        for (uint32_t row = 0; row < SIDE * SCALE; row++) {
            for (uint32_t column = 0; column < SIDE * SCALE; column++) {
                size_t y = row / SCALE, x = column / SCALE;
                size_t y2 = y + row % SCALE < SIDE ? y + row % SCALE : y;
                size_t x2 = x + column % SCALE < SIDE ? x + column % SCALE : x;
                int sum = plane[y * SIDE + x] + plane[y * SIDE + x2] + plane[y2 * SIDE + x] +
                          plane[y2 * SIDE + x2];
                to[(top + row) * MOSAIC + left + column] = (uint8_t)((sum + 2) / 4);
            }
        }
    }
}

static enum status write_image(const uint8_t *mosaic, const char *folder, const char *split,
                               uint32_t index)
{
    char path[1024];
    uint8_t *bytes;
    size_t size;
    int used = snprintf(path, sizeof(path), "%s/%s", folder, split);
    bool is_made = mkdir(path, 0777) == 0 || errno == EEXIST;
    snprintf(path + used, sizeof(path) - (size_t)used, "/%u", index % CLASSES);
    is_made = is_made && (mkdir(path, 0777) == 0 || errno == EEXIST);
    used = (int)strlen(path);
    snprintf(path + used, sizeof(path) - (size_t)used, "/%06u.jpg", index);
    FILE *file = is_made ? fopen(path, "wb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "bench_input: cannot write %s: %m\n", path);
        return STATUS_IO;
    }
    enum status status = encode_jpeg(mosaic, (uint32_t)MOSAIC, JPEG_QUALITY, &bytes, &size);
    if (status == STATUS_OK) {
        status = fwrite(bytes, 1, size, file) == size ? STATUS_OK : STATUS_IO;
        free(bytes);
    }
    return fclose(file) == 0 ? status : STATUS_IO;
}

static enum status write_split(const struct dataset *cifar10, const char *folder, const char *split,
                               uint32_t count)
{
    static uint8_t mosaic[3 * MOSAIC * MOSAIC], image[3 * SIDE * SIDE];
    const uint32_t tiles = TILES * TILES;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        for (uint32_t tile = 0; tile < tiles && status == STATUS_OK; tile++) {
            uint32_t label;
            uint64_t index = ((uint64_t)i * tiles + tile) % cifar10->sample_count;
            status = dataset_read_bytes(cifar10, index, image, &label);
            put_tile(image, tile, mosaic);
        }
        status = status == STATUS_OK ? write_image(mosaic, folder, split, i) : status;
    }
    return status;
}

static enum status make_folder(char **words)
{
    char data[1024];
    const struct dataset_options options = {.split = DATASET_TRAIN};
    struct dataset *cifar10;
    uint32_t count = (uint32_t)strtoul(words[2], NULL, 10);
    snprintf(data, sizeof(data), "cifar10:%s", words[0]);
    enum status status = dataset_open(data, &options, &cifar10);
    if (status != STATUS_OK) {
        return status;
    }
    status = write_split(cifar10, words[1], "train", count);
    if (status == STATUS_OK) {
        status = write_split(cifar10, words[1], "val", count / 10 > CLASSES ? count / 10 : CLASSES);
    }
    dataset_close(cifar10);
    return status;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int words;
        enum status (*run)(char **words);
    } commands[] = {{"read", 7, read_floats},
                    {"bytes", 7, read_bytes},
                    {"decode", 5, decode_files},
                    {"make", 3, make_folder}};
    memory_keep_heap();
    log_init("bench_input", LOG_WARN);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (argc == 2 + commands[i].words && strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argv + 2) == STATUS_OK ? 0 : 1;
        }
    }
    fprintf(stderr, "usage: bench_input read DATA SIZE BATCH THREADS AUGMENT ROUNDS SECONDS\n"
                    "       bench_input bytes DATA SIZE BATCH THREADS AUGMENT ROUNDS SECONDS\n"
                    "       bench_input decode DIR SIZE THREADS ROUNDS SECONDS\n"
                    "       bench_input make CIFAR10 DIR COUNT\n");
    return 2;
}
