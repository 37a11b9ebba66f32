/* The model that a job says, as options of the model. */
#ifndef WORKER_TRAIN_JOB_MODEL_H
#define WORKER_TRAIN_JOB_MODEL_H

#include "common/job/job.h"
#include "worker/data/dataset.h"
#include "worker/device/device.h"
#include "worker/model/model.h"

#include <stdint.h>

/* For samples like those of the dataset, in batches of so many. `source` (borrowed, by the options,
 * too) is where the device makes pixels of bytes: then it is filled, and in the options. */
struct model_options job_model_options(const struct job *job, uint32_t batch_size,
                                       const struct device *device, const struct dataset *dataset,
                                       struct pixels_source *source);

#endif
