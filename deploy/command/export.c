/* ringside export: the parameters of a checkpoint for other frameworks. */
#include "common/base/log.h"
#include "common/job/job_values.h"
#include "common/options/options.h"
#include "deploy/command/checkpoint_job.h"
#include "deploy/command/commands.h"
#include "deploy/export/checkpoint_source.h"
#include "deploy/export/tensor_files.h"
#include "deploy/export/tensors.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define ERROR_BYTES 8192 // with a path

struct export_options {
    enum tensor_format format;
    enum tensor_names names;
    char out[JOB_PATH_BYTES];
    char data[JOB_PATH_BYTES]; // "": the job's
};

#define FIELD(kind, field) OPTION_FIELD(kind, export_options, field)

static const struct option_choice formats[] = {
    [TENSOR_FORMAT_NPZ] = {"npz", "NumPy's: numpy.load(FILE)"},
    [TENSOR_FORMAT_SAFETENSORS] = {"safetensors", "safetensors.torch.load_file(FILE)"},
    {NULL, NULL},
};

static const struct option_choice naming[] = {
    [TENSOR_NAMES_TORCH] = {"torch", "conv1.weight (K, C, R, S), fc1.weight (K, C*H*W), "
                                     "bn1.running_mean ..."},
    [TENSOR_NAMES_KERAS] = {"keras", "conv2d/kernel (R, S, C, K), dense/kernel (H*W*C, K), "
                                     "batch_normalization/moving_mean ..."},
    {NULL, NULL},
};

static const struct option rows[] = {
    {.name = "out",
     .letter = 'o',
     FIELD(TEXT, out),
     .fallback = "",
     .metavar = "FILE",
     .help = "file to write; one that is there is replaced"},
    {.name = "format",
     FIELD(CHOICE, format),
     .fallback = "npz",
     .choices = formats,
     .help = "kind of file; without it, a FILE that ends in .safetensors is one"},
    {.name = "names",
     FIELD(CHOICE, names),
     .fallback = "torch",
     .choices = naming,
     .help = "whose names and layouts the tensors have"},
    {.name = "data",
     FIELD(TEXT, data),
     .fallback = "",
     .complete = job_data_complete,
     .is_not_ours = job_data_is_folder,
     .metavar = "NAME[:PATH]",
     .help = "where the job's data are now, for a checkpoint that does not describe its model"},
};

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), of_end = strlen(end);
    return length >= of_end && strcmp(text + length - of_end, end) == 0;
}

/* The layers of the model: from the checkpoint, or from a worker. NULL, logged. */
static json_t *describe_model(const struct checkpoint_reader *checkpoint, const struct job *job)
{
    json_t *model = json_object_get(checkpoint_job_part(checkpoint), "model");
    if (json_is_object(model)) {
        return json_incref(model);
    }
    model = checkpoint_job_describe(job);
    if (model == NULL) {
        log_error("the layers of model %s are unknown: the checkpoint does not describe them, and "
                  "a worker needs the job's data for that; --data says where they are",
                  job->model);
    }
    return model;
}

static enum status write_out(const struct checkpoint_reader *checkpoint, const struct job *job,
                             const struct tensor_source *source,
                             const struct export_options *options)
{
    char error[512];
    struct tensors tensors;
    json_t *model = describe_model(checkpoint, job);
    if (model == NULL) {
        return STATUS_INVALID;
    }
    enum status status =
        tensors_make(model, source, options->names, &tensors, error, sizeof(error));
    json_decref(model);
    if (status != STATUS_OK) {
        log_error("%s cannot be exported: %s", checkpoint_path(checkpoint), error);
        return status;
    }
    const struct tensor_file file = {
        .tensors = &tensors, .format = options->format, .model = job->model, .step = source->step};
    status = tensor_file_save(&file, options->out);
    if (status == STATUS_OK) {
        printf("%s: %u tensors of %s at step %llu, as %s\n", options->out, (unsigned)tensors.count,
               job->model, (unsigned long long)source->step, naming[options->names].name);
    }
    tensors_finish(&tensors);
    return status;
}

/* Opens the newest checkpoint, and reads it. The caller closes and finishes what it gets, also
 * where that fails. */
static enum status read_newest(const char *folder, struct checkpoint_reader **ret_checkpoint,
                               struct job *ret_job, struct tensor_source *ret_source)
{
    char error[ERROR_BYTES];
    for (unsigned tries = 0;; tries++) {
        enum status status = checkpoint_job_open(folder, ret_checkpoint);
        if (status != STATUS_OK) {
            return status;
        }
        status = checkpoint_job_read(*ret_checkpoint, ret_job);
        if (status != STATUS_OK) {
            return status;
        }
        status = checkpoint_source_read(*ret_checkpoint, &ret_job->left_out, ret_source, error,
                                        sizeof(error));
        if (status == STATUS_OK) {
            return status;
        }
        if (!checkpoint_job_was_removed(*ret_checkpoint, tries)) {
            log_error("%s", error);
            return status;
        }
        checkpoint_reader_close(*ret_checkpoint);
        *ret_checkpoint = NULL;
    }
}

static enum status export_checkpoint(const char *folder, const struct export_options *options)
{
    struct checkpoint_reader *checkpoint = NULL;
    struct tensor_source source = {0};
    struct job job;
    enum status status = read_newest(folder, &checkpoint, &job, &source);
    if (status == STATUS_OK) {
        if (options->data[0] != '\0') {
            snprintf(job.data, sizeof(job.data), "%s", options->data);
        }
        status = write_out(checkpoint, &job, &source, options);
    }
    checkpoint_source_finish(&source);
    checkpoint_reader_close(checkpoint);
    return status;
}

enum exit_code command_export(int argc, char **argv)
{
    struct export_options options;
    const char *folder = argc > 1 ? argv[1] : "";
    bool is_done;
    struct option_program program = {
        .name = "ringside export",
        .usage = "ringside export RUN-or-CHECKPOINT --out FILE [OPTION ...]",
        .summary = "Writes the parameters of the newest whole checkpoint of a run, or of the one "
                   "that is named, and\nwhat batch normalisation has learned, for PyTorch or Keras "
                   "to load.",
        .example = "  ringside export runs/a --out lenet5.safetensors\n"
                   "  ringside export runs/a --names keras --out lenet5.npz\n",
        .sets = {{.title = "Options",
                  .rows = rows,
                  .count = sizeof(rows) / sizeof(rows[0]),
                  .values = &options}},
        .set_count = 1,
    };
    if (checkpoint_job_parse(&program, argc, argv, &is_done) != STATUS_OK) {
        return EXIT_USAGE;
    }
    if (is_done) {
        return EXIT_COMPLETED;
    }
    if (options.out[0] == '\0') {
        log_error("--out is missing: the file to write, such as --out %s",
                  options.format == TENSOR_FORMAT_NPZ ? "model.npz" : "model.safetensors");
        return EXIT_USAGE;
    }
    if (!options_was_given(&program, "format") && ends_in(options.out, ".safetensors")) {
        options.format = TENSOR_FORMAT_SAFETENSORS;
    }
    return exit_code(export_checkpoint(folder, &options));
}
