/* Costs of one model with several batches: the field `batches` of a file of costs, and the costs of
 * any other batch that follow. Pure but for reading.
 *
 * Layers, `input` and `spread` depend on the batch. Each of their times lies on a line through the
 * times of two batches of the file: the neighbours of the batch that is asked for, or the nearest
 * two if it is smaller or larger than all of them. A smaller one takes no less than in proportion
 * to its images, and a larger one no less than the largest of the file. */
#ifndef DEPLOY_PREDICT_BASIS_COST_BATCHES_H
#define DEPLOY_PREDICT_BASIS_COST_BATCHES_H

#include "common/base/status.h"
#include "deploy/predict/basis/costs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COST_BATCHES_MAX 16

struct cost_batches {
    struct costs *list; // (count) by batch, ascending; owned
    size_t count;
    size_t own; // index of the file's `batch`
};

/* Reads a file of costs. Logs what is wrong. cost_batches_finish frees it. */
enum status cost_batches_read(const char *file, struct cost_batches *ret_batches);
void cost_batches_finish(struct cost_batches *batches); // zeroed is fine

/* The costs of a batch; 0 stands for the file's. False: it is another one, and the file has no
 * second batch from which its times would follow. */
bool cost_batches_find(const struct cost_batches *batches, uint32_t batch, struct costs *ret_costs);

/* Warns if the costs of a batch are extrapolated. */
void cost_batches_warn(const char *file, const struct costs *costs);

/* Reads those of one batch, that of --batch. Logs if they are not known, and warns if they are
 * extrapolated. */
enum status cost_batches_take(const char *file, uint32_t batch, struct costs *ret_costs);

#endif
