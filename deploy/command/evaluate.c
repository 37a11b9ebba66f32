/* ringside evaluate: test loss and accuracy of a checkpoint. */
#include "common/base/log.h"
#include "common/job/job_values.h"
#include "common/options/options.h"
#include "deploy/command/checkpoint_job.h"
#include "deploy/command/commands.h"
#include "deploy/system/process.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OUTPUT_BYTES 16384

struct evaluate_options {
    char data[JOB_PATH_BYTES];   // "": the job's
    char device[JOB_NAME_BYTES]; // "": the job's
    uint32_t threads;            // 0: the job's
    bool json;
};

#define FIELD(kind, field) OPTION_FIELD(kind, evaluate_options, field)

static const struct option rows[] = {
    {.name = "data",
     FIELD(TEXT, data),
     .fallback = "",
     .complete = job_data_complete,
     .is_not_ours = job_data_is_folder,
     .metavar = "NAME[:PATH]",
     .help = "dataset whose test images are used; otherwise the job's"},
    {.name = "device",
     FIELD(TEXT, device),
     .fallback = "",
     .metavar = "NAME",
     .help = "device to compute on instead of the job's: auto, ref, cpu, cuda, cuda:I"},
    {.name = "threads",
     FIELD(U32, threads),
     .fallback = "0",
     OPTION_RANGE(0, 1024),
     .metavar = "COUNT",
     .help = "compute threads; 0: as many as each worker of the job would have on this host"},
    {.name = "json",
     FIELD(FLAG, json),
     .fallback = "false",
     .help = "print one JSON object, with all digits, for scripts"},
};

static void override(const struct evaluate_options *options, struct job *job)
{
    if (options->data[0] != '\0') {
        snprintf(job->data, sizeof(job->data), "%s", options->data);
    }
    if (options->device[0] != '\0') {
        snprintf(job->device, sizeof(job->device), "%s", options->device);
    }
    if (options->threads != 0) {
        job->threads = options->threads;
    }
}

static enum status print_result(const char *output, bool is_json)
{
    json_t *result = json_loads(output, 0, NULL);
    const json_t *loss = json_object_get(result, "test_loss");
    const char *path = json_string_value(json_object_get(result, "checkpoint"));
    const char *device = json_string_value(json_object_get(result, "device"));
    if (path == NULL || device == NULL) {
        log_error("the worker's answer cannot be understood");
        json_decref(result);
        return STATUS_MALFORMED;
    }
    if (is_json) {
        printf("%s", output);
    } else {
        char text[32] = "not finite";
        if (json_is_real(loss)) {
            snprintf(text, sizeof(text), "%.4f", json_real_value(loss));
        }
        printf("%s: step %lld, test loss %s, test accuracy %.2f %% (%lld images, on %s)\n", path,
               (long long)json_integer_value(json_object_get(result, "step")), text,
               100 * json_real_value(json_object_get(result, "test_accuracy")),
               (long long)json_integer_value(json_object_get(result, "test_images")), device);
    }
    json_decref(result);
    return STATUS_OK;
}

/* Shows the log of a worker, which is a file in memory. */
static void show_log(int fd)
{
    char text[4096];
    ssize_t got;
    for (off_t at = 0; (got = pread(fd, text, sizeof(text), at)) > 0; at += got) {
        fwrite(text, 1, (size_t)got, stderr);
    }
}

/* Has a worker evaluate the checkpoint. Writes what it prints, and its log to log_fd. */
static enum status ask(struct checkpoint_reader *checkpoint, const struct evaluate_options *options,
                       int log_fd, char ret_output[OUTPUT_BYTES])
{
    struct job job;
    enum status status = checkpoint_job_read(checkpoint, &job);
    if (status != STATUS_OK) {
        return status;
    }
    override(options, &job);
    const char *argv[] = {NULL, "--evaluate", checkpoint_path(checkpoint), NULL};
    return checkpoint_job_ask(argv, &job, log_fd, ret_output, OUTPUT_BYTES);
}

/* Evaluates the newest checkpoint. *ret_was_removed: it could not, because there is a newer one
 * now. Then the worker's complaints are of no interest. */
static enum status evaluate_newest(const char *folder, const struct evaluate_options *options,
                                   unsigned tries, char ret_output[OUTPUT_BYTES],
                                   bool *ret_was_removed)
{
    struct checkpoint_reader *checkpoint;
    enum status status = checkpoint_job_open(folder, &checkpoint);
    *ret_was_removed = false;
    if (status != STATUS_OK) {
        return status;
    }
    int log_fd = process_open_input("");
    status = ask(checkpoint, options, log_fd > 0 ? log_fd : 0, ret_output);
    *ret_was_removed = status != STATUS_OK && checkpoint_job_was_removed(checkpoint, tries);
    if (!*ret_was_removed) {
        show_log(log_fd);
    }
    if (log_fd >= 0) {
        close(log_fd);
    }
    checkpoint_reader_close(checkpoint);
    return status;
}

static enum status evaluate(const char *folder, const struct evaluate_options *options)
{
    char output[OUTPUT_BYTES];
    enum status status = STATUS_OK;
    bool was_removed = true;
    for (unsigned tries = 0; was_removed; tries++) {
        status = evaluate_newest(folder, options, tries, output, &was_removed);
    }
    return status == STATUS_OK ? print_result(output, options->json) : status;
}

enum exit_code command_evaluate(int argc, char **argv)
{
    struct evaluate_options options;
    const char *folder = argc > 1 ? argv[1] : "";
    bool is_done;
    struct option_program program = {
        .name = "ringside evaluate",
        .usage = "ringside evaluate RUN-or-CHECKPOINT [--data NAME[:PATH]] [OPTION ...]",
        .summary = "Evaluates the newest whole checkpoint of a run, or the one that is named, on "
                   "the test images,\nas the job itself did: with the same bits on the same device "
                   "with as many threads.",
        .example = "  ringside evaluate runs/a\n"
                   "  ringside evaluate runs/a/checkpoint/step-000000000938 --device ref\n",
        .sets = {{.title = "Options",
                  .rows = rows,
                  .count = sizeof(rows) / sizeof(rows[0]),
                  .values = &options}},
        .set_count = 1,
    };
    if (checkpoint_job_parse(&program, argc, argv, &is_done) != STATUS_OK) {
        return EXIT_USAGE;
    }
    return is_done ? EXIT_COMPLETED : exit_code(evaluate(folder, &options));
}
