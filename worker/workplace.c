/* Opens what a job needs on this host, and tells about it. */
#include "worker/workplace.h"

#include "common/base/cores.h"
#include "common/base/log.h"
#include "common/vector/layout.h"
#include "worker/data/batches/loaders.h"
#include "worker/data/cached.h"
#include "worker/data/normalized.h"
#include "worker/data/resized.h"
#include "worker/data/statistics.h"
#include "worker/train/job_model.h"
#include "worker/train/slices.h"

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

static enum cached_place job_cached_place(const struct job *job)
{
    return job->cache == JOB_CACHE_RAM    ? CACHED_IN_MEMORY
           : job->cache == JOB_CACHE_DISK ? CACHED_ON_DISK
                                          : CACHED_NOWHERE;
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
    uint64_t count = job_train_samples(job, train->sample_count);
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

/* Keeps decoded images, if that is asked for: training images first. Closes them on failure. */
static enum status keep_images(const struct job *job, const struct workplace_images *wanted,
                               struct dataset *dataset, struct dataset **ret_dataset)
{
    const struct cached_options options = {
        .place = wanted->keeps ? job_cached_place(job) : CACHED_NOWHERE,
        .budget = (uint64_t)job->cache_mb << 20,
        .samples = wanted->split == DATASET_TRAIN ? job->limit_train : job->limit_test,
        .before = wanted->train,
        .tells = wanted->tells_room,
        .is_test = wanted->split != DATASET_TRAIN,
    };
    bool has_parts = wanted->split == DATASET_TRAIN &&
                     slices_augmentation(job).amounts[AUGMENT_RESIZED_CROP] > 0;
    if (!has_parts) {
        return dataset_cache(dataset, &options, ret_dataset);
    }
    if (options.place != CACHED_NOWHERE && options.tells) {
        log_warn("--cache keeps no training images: --augment resized-crop takes another part of "
                 "them each time");
    }
    *ret_dataset = dataset;
    return STATUS_OK;
}

/* Training images resolve the normalization, by which others are then read, too. What they are
 * decoded for then is kept. */
enum status workplace_open_images(const struct job *job, const struct workplace_images *wanted,
                                  struct normalization *normalization, struct dataset **ret_dataset)
{
    struct dataset *dataset;
    bool has_own_size = wanted->split == DATASET_TEST && job->eval_size > 0;
    uint32_t size = has_own_size ? job->eval_size : job->image_size;
    const struct dataset_options options = {
        .seed = job->seed,
        .split = wanted->split,
        .train = wanted->train,
        .image_size = size,
        .skips_bad = job->bad_images == BAD_IMAGES_SKIP,
        .tells = wanted->tells,
    };
    enum status status = dataset_open(job->data, &options, &dataset);
    if (status != STATUS_OK) {
        return status;
    }
    status = check_classes(job, dataset);
    if (status != STATUS_OK) {
        dataset_close(dataset);
        return status;
    }
    status = keep_images(job, wanted, dataset, &dataset);
    if (status != STATUS_OK) {
        return status;
    }
    status = resolve(job, dataset, wanted->tells, normalization);
    if (status != STATUS_OK) {
        dataset_close(dataset);
        return status;
    }
    status = dataset_normalize(dataset, normalization, &dataset);
    return status == STATUS_OK ? dataset_resize(dataset, size, ret_dataset) : status;
}

struct normalization workplace_normalization(const struct job *job)
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
enum status workplace_open_data(struct workplace *workplace, const struct job *job,
                                const struct workplace_seat *seat)
{
    const struct device_options device = device_options_of(job, seat);
    struct normalization normalization = workplace_normalization(job);
    struct workplace_images wanted = {
        .split = DATASET_TRAIN,
        .tells = seat->process == 0,
        .keeps = true,
        .tells_room = seat->local_rank == 0, // each host has its own
    };
    enum status status = workplace_open_images(job, &wanted, &normalization, &workplace->train);
    if (status != STATUS_OK) {
        return status;
    }
    describe_figures(workplace->train, workplace->figures);
    wanted.split = DATASET_TEST;
    wanted.train = workplace->train;
    status = workplace_open_images(job, &wanted, &normalization, &workplace->test);
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

struct trainer_tools workplace_tools(const struct workplace *workplace)
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
    enum status status = workplace_open_data(workplace, job, seat);
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
    const struct trainer_tools tools = workplace_tools(workplace);
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
    kept_statistics_finish(&workplace->kept);
    device_close(workplace->device);
    loaders_destroy(workplace->loaders);
    dataset_close(workplace->test);
    dataset_close(workplace->train);
    *workplace = (struct workplace){0};
}
