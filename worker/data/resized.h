/* A dataset whose images are scaled to another size while they are read. */
#ifndef WORKER_DATA_RESIZED_H
#define WORKER_DATA_RESIZED_H

#include "worker/data/dataset.h"

#define RESIZED_ROWS_MAX 1024 // of the result, and columns

/* Images become (C, size, size), bilinearly, with the centres of corner pixels inset by half a
 * pixel as TensorFlow and PyTorch have it (align_corners=False), and without anti-aliasing. Takes
 * `inner`, which is closed with it; also if it fails. size 0, or the one that they have: `inner`
 * itself. Logs. */
enum status dataset_resize(struct dataset *inner, uint32_t size, struct dataset **ret_dataset);

#endif
