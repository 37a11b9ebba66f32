/* Makes the slices of the ranks that a process carries, and keeps apart what is each one's own. */
#include "worker/train/slices.h"

#include "common/base/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// Batches that are read ahead.
#define READ_AHEAD 4

struct augmentation slices_augmentation(const struct job *job)
{
    struct augmentation augmentation = {{0}};
    char why[OPTION_ERROR_BYTES];
    enum status status = augmentation_parse(job->augment, &augmentation, why, sizeof(why));
    assert(status == STATUS_OK);
    return augmentation;
}

/* What --shard local means, in numbers. Files of folders and packs lie by class. */
static void tell_part(const struct slice *slice, const struct slices_sources *sources)
{
    const struct job *job = sources->job;
    struct span part = batcher_part(slice->batcher);
    bool is_sorted = strncmp(job->data, "images:", 7) == 0 || strncmp(job->data, "pack:", 5) == 0;
    log_info(
        "rank %u keeps to training images %llu to %llu of %llu (--shard local), in an order of "
        "its own; another number of workers ends with other parameters",
        slice->rank, (unsigned long long)part.offset + 1,
        (unsigned long long)(part.offset + part.count), (unsigned long long)sources->train_samples);
    if (slice->rank == 0 && job->workers > 1 && is_sorted) {
        log_warn("--shard local gives each worker images that lie together, and those of %s lie by "
                 "class: each worker sees some classes alone. Leave it out, unless hosts hold no "
                 "more than their part",
                 job->data);
    }
}

static enum status create_batches(struct slice *slice, const struct slices_sources *sources,
                                  struct model *sized_model)
{
    const struct evaluator_models models = {sources->model, sized_model};
    const struct job *job = sources->job;
    struct batcher_options options = {
        .batch_size = job_batch_max(job),
        .global_batch = job->global_batch,
        .rank = slice->rank,
        .world = job->workers,
        .seed = job->seed,
        .sample_count = sources->train_samples,
        .is_local = job->shard == SAMPLE_SPLIT_LOCAL,
        .is_training = true,
        .reads_bytes = sources->takes_bytes,
        .augmentation = slices_augmentation(job),
        .depth = READ_AHEAD,
        .loaders = sources->loaders,
        .device = sources->device,
    };
    const struct trace_window window = job_timeline(job);
    enum status status =
        trace_open_tape(sources->trace, TRACE_INPUT, slice->rank, &window, &options.trace);
    if (status != STATUS_OK) {
        return status;
    }
    status = batcher_create(&options, sources->train, &slice->batcher);
    if (status != STATUS_OK) {
        return status;
    }
    if (options.is_local) {
        tell_part(slice, sources);
    }
    options.is_training = options.is_local = false;
    options.trace = NULL;
    options.sample_count = sources->test_samples;
    options.depth = 1;
    return evaluator_create(&options, sources->test, &models, &slice->evaluator);
}

/* All begin with those that the model begins with. */
static enum status create_statistics(struct slice *slice, const struct slices *slices)
{
    uint64_t count = model_statistic_count(slices->model);
    if (slices->count == 1 || count == 0) {
        return STATUS_OK;
    }
    slice->statistics = calloc(count, sizeof(*slice->statistics));
    if (slice->statistics == NULL) {
        return STATUS_NO_MEMORY;
    }
    return slice_leave(slices, slice);
}

enum status slices_init(struct slices *slices, const struct slices_sources *sources)
{
    *slices = (struct slices){
        .list = calloc(sources->ranks.count, sizeof(*slices->list)),
        .count = sources->ranks.count,
        .model = sources->model,
    };
    enum status status = slices->list != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    if (status == STATUS_OK) {
        status = job_create_sized_model(sources->job, sources->train, sources->model,
                                        sources->device, sources->test, &slices->sized);
    }
    for (uint32_t i = 0; i < slices->count && status == STATUS_OK; i++) {
        struct slice *slice = &slices->list[i];
        slice->rank = sources->ranks.first + i;
        slice->is_left_out = rank_list_has(&sources->job->left_out, slice->rank);
        straggling_init(&slice->straggling, sources->job, slice->rank);
        status = create_statistics(slice, slices);
        if (status == STATUS_OK) {
            status = create_batches(slice, sources, slices->sized.model);
        }
    }
    return status;
}

void slices_finish(struct slices *slices)
{
    for (uint32_t i = 0; slices->list != NULL && i < slices->count; i++) {
        evaluator_destroy(slices->list[i].evaluator);
        batcher_destroy(slices->list[i].batcher);
        free(slices->list[i].statistics);
    }
    free(slices->list);
    model_destroy(slices->sized.model);
    *slices = (struct slices){0};
}

enum status slices_seek(struct slices *slices, uint64_t epoch, uint64_t step)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < slices->count && status == STATUS_OK; i++) {
        status = batcher_seek(slices->list[i].batcher, epoch, step);
    }
    return status;
}

static size_t statistics_bytes(const struct slices *slices)
{
    return model_statistic_count(slices->model) * sizeof(float);
}

enum status slice_enter(const struct slices *slices, const struct slice *slice)
{
    if (slice->statistics == NULL) {
        return STATUS_OK;
    }
    enum status status = model_fetch_statistics(slices->model);
    if (status == STATUS_OK) {
        memcpy(model_statistics(slices->model), slice->statistics, statistics_bytes(slices));
    }
    return status;
}

enum status slice_leave(const struct slices *slices, const struct slice *slice)
{
    if (slice->statistics == NULL) {
        return STATUS_OK;
    }
    enum status status = model_fetch_statistics(slices->model);
    if (status == STATUS_OK) {
        memcpy(slice->statistics, model_statistics(slices->model), statistics_bytes(slices));
    }
    return status;
}

float *slice_statistics(const struct slices *slices, const struct slice *slice)
{
    return slice->statistics != NULL ? slice->statistics : model_statistics(slices->model);
}

static void add(struct slice_sums *sums, uint32_t images, double loss_sum)
{
    sums->steps++;
    sums->images += images;
    sums->loss_sum += loss_sum;
}

void slice_count_step(struct slice *slice, uint64_t step, uint32_t images, bool is_ahead)
{
    slice->made = step + 1;
    add(&slice->interval, images, slice->loss_sum);
    add(is_ahead ? &slice->next_period : &slice->period, images, slice->loss_sum);
}

void slice_note_fate(struct slice *slice, double late_share, double staleness)
{
    double dropped = late_share * slice->pushed_images;
    slice->interval.staleness_sum += staleness;
    slice->interval.images_dropped += dropped;
    slice->period.images_dropped += dropped;
    slice->noted_images = slice->pushed_images;
    slice->noted_warm_images = slice->pushed_warm_images;
    slice->noted_share = late_share;
    slice->pushed_images = slice->pushed_warm_images = 0;
}

double slice_amend_fate(struct slice *slice, double late_share)
{
    double change = late_share - slice->noted_share;
    slice->interval.images_dropped += change * slice->noted_images;
    slice->period.images_dropped += change * slice->noted_images;
    slice->noted_share = late_share;
    return change * slice->noted_warm_images;
}

void slice_close_period(struct slice *slice)
{
    slice->period = slice->next_period;
    slice->next_period = (struct slice_sums){0};
}
