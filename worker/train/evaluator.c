/* Runs the model forward over the test set. */
#include "worker/train/evaluator.h"

#include <assert.h>
#include <stdlib.h>

struct evaluator {
    struct model *model;
    struct batcher *batcher;
};

enum status evaluator_create(const struct batcher_options *batches, const struct dataset *test,
                             struct model *model, struct evaluator **ret_evaluator)
{
    assert(!batches->is_training);
    struct evaluator *evaluator = calloc(1, sizeof(*evaluator));
    if (evaluator == NULL) {
        return STATUS_NO_MEMORY;
    }
    evaluator->model = model;
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

enum status evaluator_run(struct evaluator *evaluator, struct wire_report *report)
{
    enum status status = batcher_seek(evaluator->batcher, 0, 0);
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
        status = model_forward(evaluator->model, &input, &result);
        if (status == STATUS_OK) {
            report->test_images += batch.count;
            report->test_correct += result.correct_count;
            report->test_loss_sum += result.loss_sum;
        }
    }
    return status == STATUS_END_OF_DATA ? STATUS_OK : status;
}
