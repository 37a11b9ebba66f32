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

/* Outputs of the model: --classes, or as many as the data have classes. */
uint32_t job_class_count(const struct job *job, const struct dataset *dataset);

/* A model for evaluations on images of another size than it is trained on, with vectors of its own.
 * It stays where it is: the model borrows the source. */
struct job_sized_model {
    struct model *model; // owned; NULL: the trained one takes such images itself
    struct pixels_source source;
};

/* For images like those of `test`, by what `trained` was made for. Logs, if the network has other
 * parameters for that size. The caller destroys the model. */
enum status job_create_sized_model(const struct job *job, const struct dataset *train,
                                   const struct model *trained, struct device *device,
                                   const struct dataset *test, struct job_sized_model *ret_sized);

#endif
