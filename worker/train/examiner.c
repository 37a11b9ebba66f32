/* Gives a model the vectors of a checkpoint, and evaluates every rank's part of the test set. */
#include "worker/train/examiner.h"

#include "common/base/log.h"
#include "common/job/phases.h"
#include "worker/model/model.h"
#include "worker/train/evaluator.h"
#include "worker/train/job_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct examiner {
    const struct job *job; // borrowed, as all but model
    struct checkpoint_reader *checkpoint;
    struct device *device;
    const struct dataset *train, *test;
    struct loaders *loaders;
    struct model *model;     // owned; NULL: there is none yet
    uint32_t batch_size;     // that it is compiled for
    bool has_own_statistics; // each worker evaluated with its own
    struct pixels_source source;
    bool takes_bytes;
};

/* Fills `count` floats from a vector of the checkpoint. */
static enum status read_floats(struct examiner *examiner, const char *name, float *ret_values,
                               uint64_t count)
{
    uint64_t size;
    const char *path = checkpoint_path(examiner->checkpoint);
    if (!checkpoint_has(examiner->checkpoint, name, &size)) {
        log_error("%s has no vector %s, which model %s needs: was it written by a job of another "
                  "model?",
                  path, name, examiner->job->model);
        return STATUS_MISMATCH;
    }
    if (size != count * sizeof(float)) {
        log_error("%s does not fit: its %s has %" PRIu64 " values, and model %s on these data has "
                  "%" PRIu64 "; give the job's own data, or some with as many classes and images "
                  "of the same size",
                  path, name, size / sizeof(float), examiner->job->model, count);
        return STATUS_MISMATCH;
    }
    enum status status = checkpoint_read(examiner->checkpoint, name, 0, ret_values, size);
    if (status != STATUS_OK) {
        log_error("cannot read %s of %s: %m", name, path);
    }
    return status;
}

static enum status read_statistics(struct examiner *examiner, uint32_t rank, float *ret_values,
                                   uint64_t count)
{
    char name[64];
    snprintf(name, sizeof(name), "rank-%u/statistics", (unsigned)rank);
    return read_floats(examiner, name, ret_values, count);
}

/* The mean over workers, added up as the coordinator does. */
static enum status read_mean_statistics(struct examiner *examiner, float *ret_values,
                                        uint64_t count)
{
    uint32_t workers = examiner->job->workers;
    double *sums = calloc(count, sizeof(*sums));
    enum status status = STATUS_OK;
    if (sums == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t rank = 0; rank < workers; rank++) {
        if (rank_list_has(&examiner->job->left_out, rank)) {
            continue;
        }
        status = read_statistics(examiner, rank, ret_values, count);
        if (status != STATUS_OK) {
            goto done;
        }
        for (uint64_t i = 0; i < count; i++) {
            sums[i] += (double)ret_values[i];
        }
    }
    for (uint64_t i = 0; i < count; i++) {
        ret_values[i] = (float)(sums[i] / (workers - examiner->job->left_out.count));
    }
done:
    free(sums);
    return status;
}

/* The model, with the checkpoint's parameters, for batches of the size that every rank has compiled
 * it for: what is rounded in which way depends on that size. */
static enum status prepare_model(struct examiner *examiner)
{
    uint32_t batch_size = job_batch_max(examiner->job);
    if (examiner->model != NULL) {
        return STATUS_OK;
    }
    struct model_options options = job_model_options(examiner->job, batch_size, examiner->device,
                                                     examiner->test, &examiner->source);
    options.has_region = false; // nobody else reads them
    examiner->takes_bytes = options.source != NULL;
    enum status status = model_create(&options, examiner->device, &examiner->model);
    if (status != STATUS_OK) {
        return status;
    }
    examiner->batch_size = batch_size;
    uint64_t statistic_count = model_statistic_count(examiner->model);
    status = read_floats(examiner, "params", model_params(examiner->model),
                         model_layout(examiner->model)->value_count);
    if (status == STATUS_OK && statistic_count > 0 && !examiner->has_own_statistics) {
        status = read_mean_statistics(examiner, model_statistics(examiner->model), statistic_count);
    }
    return status;
}

static enum status examine_rank(struct examiner *examiner, uint32_t rank,
                                struct wire_report *report)
{
    const struct job *job = examiner->job;
    enum status status = prepare_model(examiner);
    if (status != STATUS_OK) {
        return status;
    }
    uint64_t statistic_count = model_statistic_count(examiner->model);
    if (statistic_count > 0 && examiner->has_own_statistics) {
        status =
            read_statistics(examiner, rank, model_statistics(examiner->model), statistic_count);
    }
    const struct batcher_options batches = {
        .batch_size = examiner->batch_size,
        .rank = rank,
        .world = job->workers,
        .seed = job->seed,
        .sample_count = job->limit_test > 0 && job->limit_test < examiner->test->sample_count
                            ? job->limit_test
                            : examiner->test->sample_count,
        .reads_bytes = examiner->takes_bytes,
        .depth = 1,
        .loaders = examiner->loaders,
        .device = examiner->device,
    };
    struct evaluator *evaluator = NULL;
    if (status == STATUS_OK) {
        const struct evaluator_models models = {.trained = examiner->model};
        status = evaluator_create(&batches, examiner->test, &models, &evaluator);
    }
    if (status == STATUS_OK) {
        status = evaluator_run(evaluator, report);
    }
    evaluator_destroy(evaluator);
    return status;
}

/* Whether workers were unsynchronised at the checkpoint's step. The step of a mark belongs to the
 * phase that ends with it. */
static bool was_unsynchronised(const struct job *job, uint64_t step, const struct dataset *train)
{
    struct phases phases;
    char error[OPTION_ERROR_BYTES];
    uint64_t samples = job_train_samples(job, train->sample_count);
    // Of other data than the job's: what cannot be told is taken for the usual.
    if (phases_of(job, samples, &phases, error, sizeof(error)) != STATUS_OK) {
        return false;
    }
    uint32_t i = 0;
    while (i + 1 < phases.count && step > phases.list[i].marks.end) {
        i++;
    }
    return phases.list[i].is_unsynchronised;
}

enum status examiner_run(const struct job *job, struct checkpoint_reader *checkpoint,
                         const struct trainer_tools *tools, struct examination *ret_examination)
{
    struct examiner examiner = {
        .job = job,
        .checkpoint = checkpoint,
        .device = tools->device,
        .train = tools->train,
        .test = tools->test,
        .loaders = tools->loaders,
        .has_own_statistics = was_unsynchronised(job, checkpoint_step(checkpoint), tools->train),
    };
    struct examination sum = {0};
    enum status status = STATUS_OK;
    for (uint32_t rank = 0; rank < job->workers && status == STATUS_OK; rank++) {
        struct wire_report report = {0};
        status = examine_rank(&examiner, rank, &report);
        sum.images += report.test_images;
        sum.correct += report.test_correct;
        sum.loss_sum += report.test_loss_sum;
    }
    model_destroy(examiner.model);
    if (status == STATUS_OK) {
        *ret_examination = sum;
    }
    return status;
}
