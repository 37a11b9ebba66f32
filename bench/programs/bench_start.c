/* How long a worker takes to open a folder of very many images.
 *
 *     bench_start make DIR TRAIN VAL CLASSES SIDE
 *     bench_start open DATA SIZE
 *
 * `make` fills an empty folder in ImageNet's layout. Its files are names of few, as hard links take
 * no room: noise of SIDE x SIDE pixels, of the size that JPEG makes of it, changed long ago. `open`
 * opens training and validation images of DATA as a worker does, and prints a line of JSON: how
 * many there are, what it took, and the most memory that it had. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/random.h"
#include "worker/data/dataset.h"
#include "worker/data/images/encode_jpeg.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define JPEG_QUALITY 90
#define SIDE_MAX     1024
#define LONG_AGO     1600000000 // seconds since 1970
#define PATH_BYTES   1280

/* The file that others are links to. */
struct source {
    const char *folder;
    uint8_t *bytes; // owned
    size_t size;
    char path[PATH_BYTES]; // "": there is none yet
};

/* ---- make ---- */

static enum status fail(const char *what, const char *path)
{
    fprintf(stderr, "bench_start: cannot %s %s: %m\n", what, path);
    return STATUS_IO;
}

static enum status make_noise(uint32_t side, struct source *source)
{
    size_t count = (size_t)3 * side * side;
    uint8_t *pixels = malloc(count);
    if (pixels == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        pixels[i] = (uint8_t)random_mix(i);
    }
    enum status status = encode_jpeg(pixels, side, JPEG_QUALITY, &source->bytes, &source->size);
    free(pixels);
    return status;
}

static enum status write_source(struct source *source, const char *path)
{
    const struct timespec times[2] = {{.tv_sec = LONG_AGO}, {.tv_sec = LONG_AGO}};
    FILE *file = fopen(path, "wxe");
    if (file == NULL) {
        return fail("make", path);
    }
    bool is_written = fwrite(source->bytes, 1, source->size, file) == source->size;
    if (fclose(file) != 0 || !is_written || utimensat(AT_FDCWD, path, times, 0) != 0) {
        return fail("write", path);
    }
    snprintf(source->path, sizeof(source->path), "%s", path);
    return STATUS_OK;
}

/* Where a file has as many names as its system allows, the next one is a file of its own. */
static enum status add_file(struct source *source, const char *path)
{
    if (source->path[0] != '\0' && link(source->path, path) == 0) {
        return STATUS_OK;
    }
    bool is_full = source->path[0] == '\0' || errno == EMLINK || errno == EPERM;
    return is_full ? write_source(source, path) : fail("link", path);
}

static enum status fill_split(struct source *source, const char *split, uint64_t count,
                              uint32_t classes)
{
    char path[PATH_BYTES];
    enum status status = STATUS_OK;
    snprintf(path, sizeof(path), "%.1000s/%s", source->folder, split);
    if (mkdir(path, 0777) != 0) {
        return fail("make", path);
    }
    for (uint32_t class = 0; class < classes && status == STATUS_OK; class ++) {
        snprintf(path, sizeof(path), "%.1000s/%s/n%08u", source->folder, split, class);
        status = mkdir(path, 0777) == 0 ? STATUS_OK : fail("make", path);
        for (uint64_t i = class; i < count && status == STATUS_OK; i += classes) {
            snprintf(path, sizeof(path), "%.1000s/%s/n%08u/n%08u_%08" PRIu64 ".JPEG",
                     source->folder, split, class, class, i);
            status = add_file(source, path);
        }
    }
    return status;
}

static enum status make_folder(char **words)
{
    struct source source = {.folder = words[0]};
    uint64_t train = strtoull(words[1], NULL, 10), val = strtoull(words[2], NULL, 10);
    uint32_t classes = (uint32_t)strtoul(words[3], NULL, 10);
    uint32_t side = (uint32_t)strtoul(words[4], NULL, 10);
    if (classes < 2 || train < classes || val < classes || side == 0 || side > SIDE_MAX) {
        fprintf(stderr, "bench_start: each of at least two classes needs an image of each split, "
                        "with sides up to 1024\n");
        return STATUS_INVALID;
    }
    enum status status = make_noise(side, &source);
    if (status == STATUS_OK) {
        status = fill_split(&source, "train", train, classes);
    }
    if (status == STATUS_OK) {
        status = fill_split(&source, "val", val, classes);
    }
    free(source.bytes);
    return status;
}

/* ---- open ---- */

static double seconds_of(const struct timeval *time)
{
    return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

static enum status open_folder(char **words)
{
    struct dataset_options options = {
        .seed = 1, .split = DATASET_TRAIN, .image_size = (uint32_t)strtoul(words[1], NULL, 10)};
    struct dataset *train, *test;
    struct rusage used;
    uint64_t began_ns = clock_now_ns();
    enum status status = dataset_open(words[0], &options, &train);
    if (status != STATUS_OK) {
        return status;
    }
    uint64_t train_ns = clock_now_ns();
    options.split = DATASET_TEST;
    options.train = train;
    status = dataset_open(words[0], &options, &test);
    if (status != STATUS_OK) {
        dataset_close(train);
        return status;
    }
    uint64_t ended_ns = clock_now_ns();
    getrusage(RUSAGE_SELF, &used);
    printf("{\"images\":%" PRIu64 ",\"validation_images\":%" PRIu64
           ",\"classes\":%u,\"seconds\":%.3f,\"train_seconds\":%.3f,\"cpu_seconds\":%.3f,"
           "\"peak_mib\":%.1f}\n",
           train->sample_count, test->sample_count, train->class_count,
           (double)(ended_ns - began_ns) / 1e9, (double)(train_ns - began_ns) / 1e9,
           seconds_of(&used.ru_utime) + seconds_of(&used.ru_stime), (double)used.ru_maxrss / 1024);
    dataset_close(test);
    dataset_close(train);
    return STATUS_OK;
}

int main(int argc, char **argv)
{
    memory_keep_heap();
    log_init("bench_start", LOG_WARN);
    if (argc == 7 && strcmp(argv[1], "make") == 0) {
        return make_folder(argv + 2) == STATUS_OK ? 0 : 1;
    }
    if (argc == 4 && strcmp(argv[1], "open") == 0) {
        return open_folder(argv + 2) == STATUS_OK ? 0 : 1;
    }
    fprintf(stderr, "usage: bench_start make DIR TRAIN VAL CLASSES SIDE\n"
                    "       bench_start open DATA SIZE\n");
    return 2;
}
