/* Opens checkpoints for commands, and has workers look at them. */
#include "deploy/command/checkpoint_job.h"

#include "common/base/log.h"
#include "common/checkpoint/step_folders.h"
#include "common/job/job_text.h"
#include "deploy/system/process.h"
#include "deploy/system/process_run.h"
#include "deploy/system/programs.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES        8192
#define TRIES_MAX         9 // for a newer checkpoint in the place of one that was removed
#define DESCRIPTION_BYTES ((size_t)4 * 1024 * 1024)

enum status checkpoint_job_parse(struct option_program *program, int argc, char **argv,
                                 bool *ret_is_done)
{
    bool has_folder = argc > 1 && argv[1][0] != '-' && argv[1][0] != '\0';
    enum status status =
        options_parse(program, has_folder ? argc - 1 : argc, has_folder ? argv + 1 : argv,
                      ret_is_done); // of which the first one is not looked at
    if (status != STATUS_OK || *ret_is_done || has_folder) {
        return status;
    }
    log_error("the run folder or the checkpoint is missing; it comes first: %s", program->usage);
    return STATUS_INVALID;
}

enum status checkpoint_job_open(const char *folder, struct checkpoint_reader **ret_checkpoint)
{
    char error[TEXT_BYTES], notes[TEXT_BYTES];
    enum status status =
        checkpoint_open(folder, ret_checkpoint, error, sizeof(error), notes, sizeof(notes));
    if (status != STATUS_OK) {
        log_error("%s", error);
        return status;
    }
    for (char *line = notes, *end; line[0] != '\0'; line = end) {
        end = line + strcspn(line, "\n");
        bool is_last = *end == '\0';
        *end = '\0';
        log_warn("%s", line);
        end += is_last ? 0 : 1;
    }
    return STATUS_OK;
}

bool checkpoint_job_was_removed(const struct checkpoint_reader *checkpoint, unsigned tries)
{
    bool was_removed = step_folder_was_removed(AT_FDCWD, checkpoint_path(checkpoint));
    if (was_removed && tries < TRIES_MAX) {
        log_warn("%s was removed while it was read; looking for a newer one",
                 checkpoint_path(checkpoint));
    }
    return was_removed && tries < TRIES_MAX;
}

enum status checkpoint_job_read(const struct checkpoint_reader *checkpoint, struct job *ret_job)
{
    char error[OPTION_ERROR_BYTES];
    const char *path = checkpoint_path(checkpoint);
    const char *text = json_string_value(json_object_get(checkpoint_job_part(checkpoint), "job"));
    if (text == NULL) {
        log_error("%s does not say which job wrote it: its manifest has no job", path);
        return STATUS_MALFORMED;
    }
    enum status status = job_decode(text, ret_job, error, sizeof(error));
    if (status != STATUS_OK) {
        const char *version =
            json_string_value(json_object_get(checkpoint_job_part(checkpoint), "ringside"));
        log_error("the job of %s cannot be read: %s; Ringside %.20s wrote it, and this is %s", path,
                  error, version != NULL ? version : "of an unknown version", RINGSIDE_VERSION);
    }
    return status;
}

enum status checkpoint_job_ask(const char **argv, const struct job *job, int error_fd,
                               char *ret_output, size_t output_size)
{
    char text[JOB_TEXT_BYTES];
    struct programs programs;
    enum status status = programs_find(&programs);
    if (status != STATUS_OK) {
        return status;
    }
    status = job_encode(job, text, sizeof(text));
    if (status != STATUS_OK) {
        log_error("the job is too long to be given to a worker");
        return status;
    }
    argv[0] = programs.worker;
    const struct process_run_options options = {.argv = argv, .input = text, .error_fd = error_fd};
    int code = 0;
    status = process_run(&options, ret_output, output_size, &code);
    if (status == STATUS_IO) {
        char name[80] = "a signal";
        if (code < 0) {
            process_name_signal(-code, name, sizeof(name));
        }
        log_error("the worker that was asked was killed by %s", name);
    }
    // Otherwise the worker has said what is wrong.
    return status == STATUS_OK && code != 0 ? STATUS_INVALID : status;
}

json_t *checkpoint_job_describe(const struct job *job)
{
    const char *argv[] = {NULL, "--describe-model", NULL};
    char *text = malloc(DESCRIPTION_BYTES);
    json_t *model = NULL;
    if (text != NULL && checkpoint_job_ask(argv, job, 0, text, DESCRIPTION_BYTES) == STATUS_OK) {
        model = json_loads(text, 0, NULL);
        if (model == NULL) {
            log_error("the worker's description of model %s cannot be understood", job->model);
        }
    }
    free(text);
    return model;
}
