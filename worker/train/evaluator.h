/* Evaluation of a model on this worker's part of the test set. */
#ifndef WORKER_TRAIN_EVALUATOR_H
#define WORKER_TRAIN_EVALUATOR_H

#include "common/base/status.h"
#include "common/channel/wire.h"
#include "worker/data/batches/batcher.h"
#include "worker/model/model.h"

struct evaluator;

/* Which model is evaluated. */
struct evaluator_models {
    struct model *trained;
    struct model *sized; // for images of the test set's size, where that is another: each
                         // evaluation gives it what `trained` has learned; NULL: `trained` is
};

/* `batches` says which part of `test` (is_training must be false). Borrows test and models. */
enum status evaluator_create(const struct batcher_options *batches, const struct dataset *test,
                             const struct evaluator_models *models,
                             struct evaluator **ret_evaluator);
void evaluator_destroy(struct evaluator *evaluator); // NULL is fine

/* Adds to the report's test_* sums, with the model's parameters of now. */
enum status evaluator_run(struct evaluator *evaluator, struct wire_report *report);

#endif
