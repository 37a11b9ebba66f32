/* The operations of each dataset of names.h's DATASET_MAP: dataset_NAME_ops. */
#ifndef WORKER_DATA_DATASET_ROWS_H
#define WORKER_DATA_DATASET_ROWS_H

#include "common/options/names.h"
#include "worker/data/dataset.h"

#define X(identifier, name, path, summary) \
    extern const struct dataset_ops dataset_##identifier##_ops;
DATASET_MAP(X)
#undef X

#endif
