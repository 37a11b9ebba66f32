/* Prints what a worker is asked for in the place of training. */
#include "worker/errands.h"

#include "common/base/log.h"
#include "common/base/signals.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/job/faults.h"
#include "common/job/job_text.h"
#include "common/job/phases.h"
#include "common/options/names.h"
#include "worker/data/pack/pack_write.h"
#include "worker/data/preview/preview.h"
#include "worker/model/description.h"
#include "worker/train/examiner.h"
#include "worker/train/job_model.h"
#include "worker/train/memory_use.h"
#include "worker/train/slices.h"
#include "worker/workplace.h"

#include <jansson.h>

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum status print_line(json_t *object)
{
    char *line = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    if (line == NULL) {
        return STATUS_NO_MEMORY;
    }
    bool is_written = puts(line) >= 0 && fflush(stdout) == 0;
    free(line);
    return is_written ? STATUS_OK : STATUS_IO;
}

/* The job on standard input. */
static enum status read_job(struct job *ret_job)
{
    char text[JOB_TEXT_BYTES], error[OPTION_ERROR_BYTES];
    text[fread(text, 1, sizeof(text) - 1, stdin)] = '\0';
    if (job_decode(text, ret_job, error, sizeof(error)) != STATUS_OK) {
        log_error("the job on standard input: %s", error);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* Whether the job has the steps of its faults: how many it has follows from the data. */
static bool has_steps_of_faults(const struct job *job, const struct dataset *train)
{
    char error[OPTION_ERROR_BYTES];
    struct phases phases;
    const struct faults faults = faults_of(job);
    uint64_t samples = job_train_samples(job, train->sample_count);
    return phases_of(job, samples, &phases, error, sizeof(error)) != STATUS_OK ||
           faults_check_phases(&faults, &phases, error, sizeof(error)) == STATUS_OK;
}

static enum status print_workplace(const struct job *job, const struct workplace *workplace)
{
    char program[512];
    struct link_prepared prepared;
    trainer_describe(workplace->trainer, &prepared);
    trainer_describe_program(workplace->trainer, program, sizeof(program));
    uint64_t value_bytes = prepared.layout->value_count * sizeof(float);
    return print_line(json_pack(
        "{s:s, s:I, s:I, s:I, s:s, s:s, s:I, s:I, s:I}", "model", job->model, "parameters",
        (json_int_t)prepared.parameters, "train_samples", (json_int_t)prepared.train_samples,
        "test_samples", (json_int_t)prepared.test_samples, "device", prepared.device, "program",
        program, "memory_bytes", (json_int_t)memory_use_of_worker(job, value_bytes), "value_bytes",
        (json_int_t)value_bytes, "device_bytes",
        (json_int_t)trainer_device_memory(workplace->trainer)));
}

enum exit_code errand_probe(void)
{
    struct job job;
    if (read_job(&job) != STATUS_OK) {
        return EXIT_FAILED;
    }
    struct workplace workplace = {0};
    job.cuda_engines = JOB_ENGINES_HEURISTIC; // timing is for the job itself
    enum status status = workplace_open(&workplace, &job, &(struct workplace_seat){.process = 0});
    if (status != STATUS_OK) {
        return exit_code(status);
    }
    status = workplace_build(&workplace, &job, 0); // says it if a fault never comes
    bool is_misused = status != STATUS_OK && !has_steps_of_faults(&job, workplace.train);
    if (status == STATUS_OK) {
        status = print_workplace(&job, &workplace);
    }
    workplace_close(&workplace);
    return is_misused ? EXIT_USAGE : exit_code(status);
}

static enum status examine(const struct job *job, struct checkpoint_reader *checkpoint,
                           struct workplace *workplace)
{
    struct examination result;
    enum status status =
        workplace_open_data(workplace, job, &(struct workplace_seat){.process = 0});
    if (status == STATUS_OK) {
        const struct trainer_tools tools = workplace_tools(workplace);
        status = examiner_run(job, checkpoint, &tools, &result);
    }
    if (status != STATUS_OK) {
        return status;
    }
    double loss = result.loss_sum / (double)result.images;
    // There is no number in JSON for a loss that is not finite.
    json_t *test_loss = isfinite(loss) ? json_real(loss) : json_null();
    return print_line(json_pack(
        "{s:s, s:I, s:I, s:o, s:f, s:s}", "checkpoint", checkpoint_path(checkpoint), "step",
        (json_int_t)checkpoint_step(checkpoint), "test_images", (json_int_t)result.images,
        "test_loss", test_loss, "test_accuracy", (double)result.correct / (double)result.images,
        "device", workplace->device->ops->name));
}

enum status errand_evaluate(const char *folder)
{
    char error[2048], notes[2048];
    struct workplace workplace = {0};
    struct checkpoint_reader *checkpoint;
    struct job job;
    if (read_job(&job) != STATUS_OK) {
        return STATUS_INVALID;
    }
    enum status status =
        checkpoint_open(folder, &checkpoint, error, sizeof(error), notes, sizeof(notes));
    if (status != STATUS_OK) {
        log_error("%s", error);
        return status;
    }
    status = examine(&job, checkpoint, &workplace);
    workplace_close(&workplace);
    checkpoint_reader_close(checkpoint);
    return status;
}

enum status errand_describe_model(void)
{
    struct dataset *images;
    struct job job;
    char *text;
    if (read_job(&job) != STATUS_OK) {
        return STATUS_INVALID;
    }
    job.eval_size = 0; // of training
    // Shapes do not depend on it.
    struct normalization normalization = {.kind = NORMALIZATION_USUAL};
    const struct workplace_images wanted = {.split = DATASET_TEST};
    enum status status = workplace_open_images(&job, &wanted, &normalization, &images);
    if (status != STATUS_OK) {
        return status;
    }
    status = description_make(job.model, images->sample, job_class_count(&job, images), &text);
    dataset_close(images);
    if (status != STATUS_OK) {
        log_error("model %s cannot be described for images of %s: %s", job.model, job.data,
                  status == STATUS_INVALID ? "it does not fit them" : status_text(status));
        return status;
    }
    bool is_written = puts(text) >= 0 && fflush(stdout) == 0;
    free(text);
    return is_written ? STATUS_OK : STATUS_IO;
}

/* A file that is replaced must not be what is read, nor lie in it; but for one with an ending that
 * no dataset reads there. NULL: none. */
static enum status check_target(const char *path, const char *data, const char *ending)
{
    const char *source = strchr(names_behind_synthetic(data), ':');
    char target[PATH_MAX], real[PATH_MAX];
    if (source == NULL || realpath(source + 1, real) == NULL || realpath(path, target) == NULL) {
        return STATUS_OK; // there is no such path, or reading it says what is wrong
    }
    size_t size = strlen(real), length = strlen(target);
    size_t tail = ending != NULL ? strlen(ending) : 0;
    if (tail > 0 && length > tail && strcmp(target + length - tail, ending) == 0) {
        return STATUS_OK;
    }
    if (strncmp(target, real, size) == 0 && (target[size] == '/' || target[size] == '\0')) {
        log_error("%s is there, and is, or lies in, what --data names (%s): choose another file",
                  path, source + 1);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

enum status errand_pack(const char *path, uint32_t quality)
{
    struct pack_account account;
    struct job job;
    if (read_job(&job) != STATUS_OK || check_target(path, job.data, ".rpk") != STATUS_OK) {
        return STATUS_INVALID;
    }
    const struct pack_order order = {
        .data = job.data,
        .path = path,
        .size = job.image_size,
        .quality = quality,
        .seed = job.seed,
        .skips_bad = job.bad_images == BAD_IMAGES_SKIP,
        .shows_progress = isatty(STDERR_FILENO) == 1,
        .is_ended = signals_flag(),
    };
    enum status status = pack_write(&order, &account);
    if (status != STATUS_OK) {
        return status;
    }
    char kind[80] = "pixels";
    if (quality > 0) {
        snprintf(kind, sizeof(kind), "JPEG of quality %u (%llu copied)", quality,
                 (unsigned long long)account.copied);
    }
    int put =
        printf("%s: %llu training and %llu validation images of %u classes, %u x %u, %s, "
               "%.1f MB\n",
               path, (unsigned long long)account.train_count, (unsigned long long)account.val_count,
               account.class_count, order.size, order.size, kind, (double)account.bytes / 1e6);
    return put > 0 && fflush(stdout) == 0 ? STATUS_OK : STATUS_IO;
}

static bool print_label(const json_t *names, uint32_t label)
{
    const char *name = json_string_value(json_array_get(names, label));
    return name != NULL ? printf("%s", name) > 0 : printf("%u", label) > 0;
}

/* "cat", or of a mixed image "cat 0.7 + dog 0.3". */
static bool print_label_of(const struct preview_account *account, uint32_t i, const json_t *names)
{
    const struct mixed_label *mixed = &account->mixed[i];
    if (!account->is_mixed) {
        return print_label(names, account->labels[i]);
    }
    return print_label(names, account->labels[i]) && printf(" %.2f + ", (double)mixed->share) > 0 &&
           print_label(names, mixed->other) && printf(" %.2f", 1 - (double)mixed->share) > 0;
}

/* The labels of a sheet, as they lie on it: the names of the classes, if they have any. */
static bool print_labels(const struct preview_account *account, const char *class_text)
{
    json_t *names = class_text != NULL ? json_loads(class_text, 0, NULL) : NULL;
    bool is_written = true;
    for (uint32_t i = 0; i < account->count && is_written; i++) {
        const char *mark = i % SHEET_ACROSS == 0 ? "labels  " : ", ";
        is_written = printf("%s", mark) > 0 && print_label_of(account, i, names);
        bool ends_row = i % SHEET_ACROSS == SHEET_ACROSS - 1 || i == account->count - 1;
        is_written = is_written && (!ends_row || putchar('\n') != EOF);
    }
    json_decref(names);
    return is_written;
}

static enum status print_preview(const struct errand_preview *preview,
                                 const struct preview_account *account, const struct dataset *train)
{
    const struct shape *sample = &train->sample;
    bool is_written =
        printf("%s: images %llu to %llu of epoch %llu, %u x %u x %u; their pixels, as a model sees "
               "them, are from %.3g to %.3g, mean %.3g, deviation %.3g\n",
               preview->path, (unsigned long long)account->first + 1,
               (unsigned long long)account->first + account->count,
               (unsigned long long)preview->epoch + 1, sample->channels, sample->rows,
               sample->columns, account->lowest, account->highest, account->mean,
               account->deviation) > 0 &&
        print_labels(account, train->class_text) && fflush(stdout) == 0;
    return is_written ? STATUS_OK : STATUS_IO;
}

static enum status draw(const struct job *job, const struct errand_preview *preview,
                        const struct draft *draft, struct dataset **ret_train,
                        struct preview_account *ret_account)
{
    struct normalization normalization = workplace_normalization(job);
    const struct workplace_images wanted = {.split = DATASET_TRAIN, .tells = true};
    enum status status = workplace_open_images(job, &wanted, &normalization, ret_train);
    if (status != STATUS_OK) {
        return status;
    }
    const struct preview_order order = {
        .seed = job->seed,
        .augmentation = slices_augmentation(job),
        .sample_count = job->limit_train < (*ret_train)->sample_count ? job->limit_train : 0,
        .epoch = preview->epoch,
        .sheet = preview->sheet,
        .zoom = preview->zoom,
        .is_ended = signals_flag(),
    };
    return preview_write(&order, *ret_train, draft, ret_account);
}

enum status errand_preview(const struct errand_preview *preview)
{
    struct preview_account account = {0};
    struct dataset *train = NULL;
    struct draft draft;
    struct job job;
    if (read_job(&job) != STATUS_OK || check_target(preview->path, job.data, NULL) != STATUS_OK) {
        return STATUS_INVALID;
    }
    // The file first: that it cannot be written is known at once.
    enum status status = preview_open(&draft, preview->path);
    if (status == STATUS_OK) {
        status = draw(&job, preview, &draft, &train, &account);
    }
    status = draft_finish(&draft, status);
    if (status == STATUS_OK) {
        assert(train != NULL);
        status = print_preview(preview, &account, train);
    }
    dataset_close(train);
    return status;
}

enum status errand_print_backends(void)
{
    enum status status = STATUS_OK;
    for (const struct device_ops *const *backend = device_backends();
         *backend != NULL && status == STATUS_OK; backend++) {
        char why[256] = "", list[1024] = "";
        bool is_available = (*backend)->is_available(why, sizeof(why));
        if ((*backend)->list != NULL) {
            (*backend)->list(list, sizeof(list));
        }
        status = print_line(json_pack("{s:s, s:b, s:s, s:s, s:s}", "name", (*backend)->name,
                                      "available", is_available, "summary", (*backend)->summary,
                                      "why", why, "list", list));
    }
    return status;
}
