/* ringside preview: training images as a model sees them, in one PNG file. A worker does the work,
 * in the place of this process: it has what makes batches. */
#include "common/base/log.h"
#include "common/job/job.h"
#include "common/job/job_options.h"
#include "common/job/job_resolve.h"
#include "common/options/options.h"
#include "deploy/command/commands.h"
#include "deploy/command/worker_job.h"

#include <stdbool.h>
#include <stdio.h>

struct preview_options {
    char out[1024];
    uint32_t epoch, sheet, zoom;
};

#define FIELD(kind, field) OPTION_FIELD(kind, preview_options, field)

static const struct option rows[] = {
    {.name = "out",
     .letter = 'o',
     FIELD(TEXT, out),
     .fallback = "",
     .metavar = "FILE",
     .help = "PNG file to write; one that is there is replaced"},
    {.name = "epoch",
     FIELD(U32, epoch),
     .fallback = "1",
     OPTION_RANGE(1, UINT32_MAX),
     .metavar = "EPOCH",
     .help = "which epoch's images: each has an order and changes of its own"},
    {.name = "sheet",
     FIELD(U32, sheet),
     .fallback = "1",
     OPTION_RANGE(1, UINT32_MAX),
     .metavar = "NUMBER",
     .help = "which 64 images of the epoch: 1 has those of its first steps"},
    {.name = "zoom",
     FIELD(U32, zoom),
     .fallback = "0",
     OPTION_RANGE(0, 64),
     .metavar = "FACTOR",
     .help = "each pixel of an image becomes a square of so many rows and columns; 0: as many as "
             "fit into 128, at least 1"},
};

// Options of a job that decide what its training images are.
static const char *const job_names[] = {"data",      "image-size", "bad-images", "augment",
                                        "normalize", "seed",       "limit-train"};
#define JOB_ROWS (sizeof(job_names) / sizeof(job_names[0]))

static enum exit_code start(const struct job *job, const struct preview_options *options)
{
    char epoch[16], sheet[16], zoom[16];
    snprintf(epoch, sizeof(epoch), "%u", options->epoch);
    snprintf(sheet, sizeof(sheet), "%u", options->sheet);
    snprintf(zoom, sizeof(zoom), "%u", options->zoom);
    const char *const argv[] = {"worker",     "--preview",
                                options->out, "--preview-epoch",
                                epoch,        "--preview-sheet",
                                sheet,        "--preview-zoom",
                                zoom,         NULL};
    return worker_job_become(job, argv);
}

enum exit_code command_preview(int argc, char **argv)
{
    struct option job_rows[JOB_ROWS];
    struct preview_options options;
    struct job job;
    char error[OPTION_ERROR_BYTES];
    bool is_done;
    const struct option_set defaults = job_option_set(&job);
    options_reset(&defaults);
    for (size_t i = 0; i < JOB_ROWS; i++) {
        job_rows[i] = *job_option_find(job_names[i]);
    }
    struct option_program program = {
        .name = "ringside preview",
        .usage = "ringside preview --out FILE [--data NAME[:PATH]] [OPTION ...]",
        .summary = "Draws 64 training images of a job to a PNG file, scaled and changed as its "
                   "model sees them: those of\nthe same seed, in the order of an epoch. "
                   "Normalisation is undone, so that they can be looked at.",
        .example = "  ringside preview --data cifar10:/data/cifar10 --augment cifar,cutout:8 "
                   "--out sheet.png\n"
                   "  ringside preview --data images:/data/photos --image-size 96 --epoch 2 "
                   "--out sheet.png\n",
        .sets = {{.title = "Options",
                  .rows = rows,
                  .count = sizeof(rows) / sizeof(rows[0]),
                  .values = &options},
                 {.title = "The job", .rows = job_rows, .count = JOB_ROWS, .values = &job}},
        .set_count = 2,
    };
    if (options_parse(&program, argc, argv, &is_done) != STATUS_OK) {
        return EXIT_USAGE;
    }
    if (is_done) {
        return EXIT_COMPLETED;
    }
    if (options.out[0] == '\0') {
        log_error("--out is missing: the PNG file to write, such as --out sheet.png");
        return EXIT_USAGE;
    }
    if (job_resolve(&job, error, sizeof(error)) != STATUS_OK) {
        log_error("%s", error);
        return EXIT_USAGE;
    }
    return start(&job, &options);
}
