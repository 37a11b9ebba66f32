/* Runs the model forward over the test set. */
#include "worker/train/evaluator.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct evaluator {
    struct evaluator_models models;
    struct batcher *batcher;
};

enum status evaluator_create(const struct batcher_options *batches, const struct dataset *test,
                             const struct evaluator_models *models,
                             struct evaluator **ret_evaluator)
{
    assert(!batches->is_training);
    struct evaluator *evaluator = calloc(1, sizeof(*evaluator));
    if (evaluator == NULL) {
        return STATUS_NO_MEMORY;
    }
    evaluator->models = *models;
    enum status status = batcher_create(batches, test, &evaluator->batcher);
    if (status != STATUS_OK) {
        free(evaluator);
        return status;
    }
    *ret_evaluator = evaluator;
    return STATUS_OK;
}

void evaluator_destroy(struct evaluator *evaluator)
{
    if (evaluator == NULL) {
        return;
    }
    batcher_destroy(evaluator->batcher);
    free(evaluator);
}

/* Parameters and statistics as they are now. */
static enum status teach(const struct evaluator_models *models)
{
    enum status status = model_fetch(models->trained);
    if (status == STATUS_OK) {
        status = model_fetch_statistics(models->trained);
    }
    if (status != STATUS_OK) {
        return status;
    }
    memcpy(model_params(models->sized), model_params(models->trained),
           model_layout(models->trained)->value_count * sizeof(float));
    memcpy(model_statistics(models->sized), model_statistics(models->trained),
           model_statistic_count(models->trained) * sizeof(float));
    return STATUS_OK;
}

enum status evaluator_run(struct evaluator *evaluator, struct wire_report *report)
{
    const struct evaluator_models *models = &evaluator->models;
    struct model *model = models->sized != NULL ? models->sized : models->trained;
    enum status status = models->sized != NULL ? teach(models) : STATUS_OK;
    if (status != STATUS_OK) {
        return status;
    }
    status = batcher_seek(evaluator->batcher, 0, 0);
    while (status == STATUS_OK) {
        struct batch batch;
        status = batcher_next(evaluator->batcher, &batch);
        if (status != STATUS_OK) {
            break;
        }
        struct program_input input = {
            .pixels = batch.pixels,
            .bytes = batch.bytes,
            .labels = batch.labels,
            .sample_keys = batch.sample_keys,
            .count = batch.count,
        };
        struct program_result result;
        status = model_forward(model, &input, &result);
        if (status == STATUS_OK) {
            report->test_images += batch.count;
            report->test_correct += result.correct_count;
            report->test_loss_sum += result.loss_sum;
        }
    }
    return status == STATUS_END_OF_DATA ? STATUS_OK : status;
}
