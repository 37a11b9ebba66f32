/* A dataset whose bytes become pixels by other figures than its own. */
#ifndef WORKER_DATA_NORMALIZED_H
#define WORKER_DATA_NORMALIZED_H

#include "common/plan/normalization.h"
#include "worker/data/dataset.h"

/* Takes `inner`, which is closed with it; also if it fails. NORMALIZATION_USUAL: `inner` itself.
 * NORMALIZATION_DATASET has to be resolved before. Only of images that are stored as bytes, with as
 * many channels as figures are given. Logs. */
enum status dataset_normalize(struct dataset *inner, const struct normalization *normalization,
                              struct dataset **ret_dataset);

#endif
