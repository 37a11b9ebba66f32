/* The trainer's model as a device that sums gradients: see exchange_device.h. */
#ifndef WORKER_TRAIN_DEVICE_SUMS_H
#define WORKER_TRAIN_DEVICE_SUMS_H

#include "worker/exchange/exchange_device.h"
#include "worker/model/model.h"

/* Borrows the model. */
struct exchange_device device_sums(struct model *model);

struct trainer;

/* Whether the workers' devices sum the gradients of this phase. All workers ask, and wait for each
 * other. */
enum status device_sums_meet(struct trainer *trainer);

#endif
