/* Opens what a job needs on this host, and tells about it. */
#include "worker/workplace.h"

#include "common/base/cores.h"
#include "common/base/log.h"
#include "common/base/signals.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/job/job_text.h"
#include "common/vector/layout.h"
#include "worker/data/loaders.h"
#include "worker/data/normalized.h"
#include "worker/data/pack/pack_write.h"
#include "worker/data/preview/preview.h"
#include "worker/data/resized.h"
#include "worker/data/statistics.h"
#include "worker/model/description.h"
#include "worker/train/examiner.h"
#include "worker/train/job_model.h"
#include "worker/train/slices.h"

#include <jansson.h>

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A build without optimisation is for debugging.
#ifdef __OPTIMIZE__
static const bool is_debug_build = false;
#else
static const bool is_debug_build = true;
#endif

/* Of the host's cores, by the workers that share them. */
static uint32_t share_of_cores(const struct job *job, uint32_t local_size)
{
    uint32_t sharers = local_size > 0 ? local_size : job_carriers(job).processes;
    uint32_t cores = cores_available() / sharers;
    return cores > 0 ? cores : 1;
}

/* Counts the figures of training images, if that is asked for. */
static enum status resolve(const struct job *job, const struct dataset *train, bool tells,
                           struct normalization *normalization)
{
    struct pixels_source source;
    struct statistics statistics;
    if (normalization->kind != NORMALIZATION_DATASET) {
        return STATUS_OK;
    }
    if (!dataset_describe(train, &source)) {
        log_error("--normalize dataset needs images that are stored as bytes, as cifar10 and mnist "
                  "have them; leave it out");
        return STATUS_INVALID;
    }
    uint64_t count = train->sample_count;
    if (job->limit_train > 0 && job->limit_train < count) {
        count = job->limit_train;
    }
    enum status status = statistics_count(train, count, tells, &statistics);
    return status == STATUS_OK ? statistics_figures(&statistics, source.channels, normalization)
                               : status;
}

/* A label must have an output. */
static enum status check_classes(const struct job *job, const struct dataset *dataset)
{
    if (job_class_count(job, dataset) >= dataset->class_count) {
        return STATUS_OK;
    }
    log_error(
        "--classes %u: %s has %u classes, and each needs an output: raise it, or leave it out",
        job->classes, job->data, dataset->class_count);
    return STATUS_INVALID;
}

/* Training images resolve the normalization, by which others are then read, too. */
static enum status open_images(const struct job *job, enum dataset_split split, bool tells,
                               struct normalization *normalization, struct dataset **ret_dataset)
{
    struct dataset *dataset;
    bool has_own_size = split == DATASET_TEST && job->eval_size > 0;
    uint32_t size = has_own_size ? job->eval_size : job->image_size;
    const struct dataset_options options = {
        .seed = job->seed,
        .split = split,
        .image_size = size,
        .skips_bad = job->bad_images == BAD_IMAGES_SKIP,
        .tells = tells,
    };
    enum status status = dataset_open(job->data, &options, &dataset);
    if (status != STATUS_OK) {
        return status;
    }
    status = check_classes(job, dataset);
    if (status == STATUS_OK) {
        status = resolve(job, dataset, tells, normalization);
    }
    if (status != STATUS_OK) {
        dataset_close(dataset);
        return status;
    }
    status = dataset_normalize(dataset, normalization, &dataset);
    return status == STATUS_OK ? dataset_resize(dataset, size, ret_dataset) : status;
}

/* The job's options were checked. */
static struct normalization normalization_of(const struct job *job)
{
    struct normalization normalization = {.kind = NORMALIZATION_USUAL};
    char why[OPTION_ERROR_BYTES];
    enum status status = normalization_parse(job->normalize, &normalization, why, sizeof(why));
    assert(status == STATUS_OK);
    return normalization;
}

/* Mean and deviation of each channel as they are in use; "" of images without bytes. */
static void describe_figures(const struct dataset *train, char ret_text[WORKPLACE_FIGURES_BYTES])
{
    struct pixels_source source;
    size_t used = 0;
    ret_text[0] = '\0';
    if (!dataset_describe(train, &source)) {
        return;
    }
    for (uint32_t i = 0; i < 2 * source.channels; i++) {
        bool is_mean = i < source.channels;
        uint32_t c = is_mean ? i : i - source.channels;
        double scale = 255 * (double)source.scale[c];
        double figure = is_mean ? fabs((double)source.shift[c]) / scale : 1 / scale;
        const char *mark = i == 0 ? "" : i == source.channels ? "/" : ",";
        used += (size_t)snprintf(ret_text + used, WORKPLACE_FIGURES_BYTES - used, "%s%.6g", mark,
                                 figure);
    }
}

/* A build for GPUs that does without one says so, once for the job. */
static void say_what_is_passed_over(const struct device *device)
{
    for (const struct device_ops *const *ops = device_backends(); *ops != device->ops; ops++) {
        char why[256] = "";
        if (!(*ops)->is_available(why, sizeof(why))) {
            log_warn("--device auto uses %s, because %s cannot be used: %s", device->ops->name,
                     (*ops)->name, why);
        }
    }
}

static struct device_options device_options_of(const struct job *job,
                                               const struct workplace_seat *seat)
{
    return (struct device_options){
        .threads = job->threads > 0 ? job->threads : share_of_cores(job, seat->local_size),
        .local_rank = seat->local_rank,
        .allows_nondeterministic = job->allow_nondeterministic,
        .timing_ms_max = 1000 * job_timing_seconds(job),
        .replays_launches = job->cuda_graphs,
        .checks_operations = job->cuda_sync_check || is_debug_build,
    };
}

/* All but the trainer; what is open stays the caller's to close, also on failure. */
static enum status open_data_and_device(struct workplace *workplace, const struct job *job,
                                        const struct workplace_seat *seat)
{
    const struct device_options device = device_options_of(job, seat);
    struct normalization normalization = normalization_of(job);
    bool tells = seat->process == 0;
    enum status status = open_images(job, DATASET_TRAIN, tells, &normalization, &workplace->train);
    if (status != STATUS_OK) {
        return status;
    }
    describe_figures(workplace->train, workplace->figures);
    status = open_images(job, DATASET_TEST, tells, &normalization, &workplace->test);
    if (status != STATUS_OK) {
        return status;
    }
    const struct loaders_options loaders = {.threads = job->loader_threads,
                                            .processors = share_of_cores(job, seat->local_size)};
    status = loaders_create(&loaders, &workplace->loaders);
    if (status != STATUS_OK) {
        return status;
    }
    return device_open(job->device, &device, &workplace->device);
}

// NOLINTNEXTLINE(misc-redundant-expression): two limits that have to agree.
static_assert(JOB_LOADER_THREADS_MAX <= LOADERS_MAX, "a job may ask for as many threads");

static struct trainer_tools tools_of(const struct workplace *workplace)
{
    return (struct trainer_tools){
        .device = workplace->device,
        .train = workplace->train,
        .test = workplace->test,
        .loaders = workplace->loaders,
        .trace = workplace->trace,
    };
}

enum status workplace_open(struct workplace *workplace, const struct job *job,
                           const struct workplace_seat *seat)
{
    *workplace = (struct workplace){.trace = workplace->trace};
    if (job_is_external(job)) {
        log_error("the model of this job, %s, is a program of its own that joins by libringside: "
                  "start that, not `worker`",
                  job->model);
        return STATUS_UNSUPPORTED;
    }
    enum status status = open_data_and_device(workplace, job, seat);
    if (status != STATUS_OK) {
        goto fail;
    }
    if (seat->process == 0 && strcmp(job->device, "auto") == 0) {
        say_what_is_passed_over(workplace->device);
    }
    return STATUS_OK;

fail:
    workplace_close(workplace);
    return status;
}

enum status workplace_build(struct workplace *workplace, const struct job *job, uint32_t process)
{
    const struct trainer_tools tools = tools_of(workplace);
    return trainer_create(job, carriers_block(job_carriers(job), process), &tools,
                          &workplace->trainer);
}

void workplace_clear(struct workplace *workplace)
{
    trainer_destroy(workplace->trainer);
    workplace->trainer = NULL;
}

void workplace_close(struct workplace *workplace)
{
    workplace_clear(workplace);
    device_close(workplace->device);
    loaders_destroy(workplace->loaders);
    dataset_close(workplace->test);
    dataset_close(workplace->train);
    *workplace = (struct workplace){0};
}

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

enum status workplace_probe(void)
{
    char program[512];
    struct job job;
    if (read_job(&job) != STATUS_OK) {
        return STATUS_INVALID;
    }
    struct workplace workplace = {0};
    job.cuda_engines = JOB_ENGINES_HEURISTIC; // timing is for the job itself
    enum status status = workplace_open(&workplace, &job, &(struct workplace_seat){.process = 0});
    if (status == STATUS_OK) {
        status = workplace_build(&workplace, &job, 0);
    }
    if (status != STATUS_OK) {
        workplace_close(&workplace);
        return status;
    }
    struct link_prepared prepared;
    trainer_describe(workplace.trainer, &prepared);
    trainer_describe_program(workplace.trainer, program, sizeof(program));
    status = print_line(json_pack("{s:s, s:I, s:I, s:I, s:s, s:s}", "model", job.model,
                                  "parameters", (json_int_t)prepared.parameters, "train_samples",
                                  (json_int_t)prepared.train_samples, "test_samples",
                                  (json_int_t)prepared.test_samples, "device", prepared.device,
                                  "program", program));
    workplace_close(&workplace);
    return status;
}

static enum status examine(const struct job *job, struct checkpoint_reader *checkpoint,
                           struct workplace *workplace)
{
    struct examination result;
    enum status status =
        open_data_and_device(workplace, job, &(struct workplace_seat){.process = 0});
    if (status == STATUS_OK) {
        const struct trainer_tools tools = tools_of(workplace);
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

enum status workplace_evaluate(const char *folder)
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

enum status workplace_describe_model(void)
{
    struct dataset *images;
    struct job job;
    char *text;
    if (read_job(&job) != STATUS_OK) {
        return STATUS_INVALID;
    }
    job.eval_size = 0; // of training
    struct normalization normalization = {.kind =
                                              NORMALIZATION_USUAL}; // shapes do not depend on it
    enum status status = open_images(&job, DATASET_TEST, false, &normalization, &images);
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

enum status workplace_pack(const char *path, uint32_t quality)
{
    struct pack_account account;
    struct job job;
    if (read_job(&job) != STATUS_OK) {
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

/* The labels of a sheet, as they lie on it: the names of the classes, if they have any. */
static bool print_labels(const struct preview_account *account, const char *class_text)
{
    json_t *names = class_text != NULL ? json_loads(class_text, 0, NULL) : NULL;
    bool is_written = true;
    for (uint32_t i = 0; i < account->count && is_written; i++) {
        const char *name = json_string_value(json_array_get(names, account->labels[i]));
        const char *mark = i % SHEET_ACROSS == 0 ? "labels  " : ", ";
        is_written = name != NULL ? printf("%s%s", mark, name) > 0
                                  : printf("%s%u", mark, account->labels[i]) > 0;
        bool ends_row = i % SHEET_ACROSS == SHEET_ACROSS - 1 || i == account->count - 1;
        is_written = is_written && (!ends_row || putchar('\n') != EOF);
    }
    json_decref(names);
    return is_written;
}

static enum status print_preview(const struct workplace_preview *preview,
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

static enum status draw(const struct job *job, const struct workplace_preview *preview,
                        const struct draft *draft, struct dataset **ret_train,
                        struct preview_account *ret_account)
{
    struct normalization normalization = normalization_of(job);
    enum status status = open_images(job, DATASET_TRAIN, true, &normalization, ret_train);
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

enum status workplace_preview(const struct workplace_preview *preview)
{
    struct preview_account account = {0};
    struct dataset *train = NULL;
    struct draft draft;
    struct job job;
    if (read_job(&job) != STATUS_OK) {
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

enum status workplace_print_backends(void)
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
