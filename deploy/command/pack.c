/* ringside pack: the images of a folder, of one size, in one file. A worker does the work, in the
 * place of this process: it has what decodes images. */
#include "common/base/log.h"
#include "common/base/signals.h"
#include "common/job/job.h"
#include "common/job/job_choices.h"
#include "common/job/job_options.h"
#include "common/job/job_values.h"
#include "common/options/options.h"
#include "deploy/command/commands.h"
#include "deploy/command/worker_job.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct pack_options {
    uint32_t size, quality;
    bool is_raw;
    enum bad_images bad_images;
    uint64_t seed;
};

#define FIELD(kind, field) OPTION_FIELD(kind, pack_options, field)

static const struct option_choice bad_choices[] = {
    [BAD_IMAGES_FAIL] = {"fail", "they end it, named and counted"},
    [BAD_IMAGES_SKIP] = {"skip", "they are left out, named and counted"},
    {NULL, NULL},
};

static const struct option rows[] = {
    {.name = "size",
     FIELD(U32, size),
     .fallback = "256",
     OPTION_RANGE(1, JOB_IMAGE_SIZE_MAX),
     .metavar = "PIXELS",
     .help = "rows and columns of the packed images; a job may scale them to another size"},
    {.name = "raw",
     FIELD(FLAG, is_raw),
     .fallback = "false",
     .help = "pixels as they are: 3 bytes each, and the same bits as images:DIR at this size"},
    {.name = "jpeg",
     FIELD(U32, quality),
     .fallback = "90",
     OPTION_RANGE(1, 100),
     .metavar = "QUALITY",
     .help = "JPEG files of this quality; one that has the size already is copied as it is"},
    {.name = "bad-images",
     FIELD(CHOICE, bad_images),
     .fallback = "fail",
     .choices = bad_choices,
     .help = "what to do about files that cannot be decoded"},
    {.name = "seed",
     FIELD(U64, seed),
     .fallback = "1",
     OPTION_RANGE(0, 9007199254740992.0),
     .metavar = "SEED",
     .help = "of the images that a flat folder holds back for validation: that of the jobs"},
};

static enum exit_code start(const char *data, const char *path, const struct pack_options *options)
{
    struct job job;
    char quality[16], why[OPTION_ERROR_BYTES] = "";
    struct option_set set = job_option_set(&job);
    options_reset(&set);
    job_data_complete(data, job.data);
    job.image_size = options->size;
    job.seed = options->seed;
    job.bad_images = options->bad_images;
    if (!job_data_is_valid(job.data, why, sizeof(why))) {
        log_error("%s cannot be packed: %s", data, why);
        return EXIT_USAGE;
    }
    snprintf(quality, sizeof(quality), "%u", options->is_raw ? 0 : options->quality);
    const char *const argv[] = {"worker", "--pack", path, "--pack-jpeg", quality, NULL};
    return worker_job_become(&job, argv);
}

static bool is_word(const char *text)
{
    return text[0] != '-' && text[0] != '\0';
}

enum exit_code command_pack(int argc, char **argv)
{
    struct pack_options options;
    bool is_done;
    int words = argc > 1 && is_word(argv[1]) ? 1 : 0;
    words += words == 1 && argc > 2 && is_word(argv[2]) ? 1 : 0;
    struct option_program program = {
        .name = "ringside pack",
        .usage = "ringside pack images:DIR FILE [OPTION ...]",
        .summary = "Writes the images of a folder, training and validation, to one file, for file "
                   "systems that are slow\nwith many small ones. Jobs train on it by --data "
                   "pack:FILE.",
        .example = "  ringside pack images:/data/imagenet imagenet.rpk --size 256\n"
                   "  ringside run -n 4 --model resnet50v2 --data pack:imagenet.rpk --image-size "
                   "224\n",
        .sets = {{.title = "Options",
                  .rows = rows,
                  .count = sizeof(rows) / sizeof(rows[0]),
                  .values = &options}},
        .set_count = 1,
    };
    if (options_parse(&program, argc - words, argv + words, &is_done) != STATUS_OK) {
        return EXIT_USAGE;
    }
    if (is_done) {
        return EXIT_COMPLETED;
    }
    if (words < 2) {
        log_error("the images or the file to write is missing; they come first: %s", program.usage);
        return EXIT_USAGE;
    }
    if (options.is_raw && options_was_given(&program, "jpeg")) {
        log_error("--raw and --jpeg exclude each other: packed images are pixels or JPEG files");
        return EXIT_USAGE;
    }
    return start(argv[1], argv[2], &options);
}
