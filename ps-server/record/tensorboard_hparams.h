/* A job's options and end for TensorBoard's plugin for hyper-parameters, as the bytes of its
 * messages (proto/tensorboard_hparams.proto).
 *
 * The plugin reads three tags of a run: which hyper-parameters and metrics there are, their values
 * and when the run began, and how it ended. It takes the first of each that it finds. */
#ifndef PS_SERVER_RECORD_TENSORBOARD_HPARAMS_H
#define PS_SERVER_RECORD_TENSORBOARD_HPARAMS_H

#include "common/job/job.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TENSORBOARD_HPARAMS_EXPERIMENT "_hparams_/experiment"
#define TENSORBOARD_HPARAMS_START      "_hparams_/session_start_info"
#define TENSORBOARD_HPARAMS_END        "_hparams_/session_end_info"

/* Each packs into memory of malloc, which the caller frees. NULL if there is none. */

/* All options of a job, with their meanings, and the metrics that are worth a column. Options that
 * are not at their default, and those that tell designs apart, are shown from the start. */
uint8_t *tensorboard_hparams_experiment(const struct job *job, size_t *ret_size);
uint8_t *tensorboard_hparams_start(const struct job *job, double seconds, size_t *ret_size);
uint8_t *tensorboard_hparams_end(bool is_completed, double seconds, size_t *ret_size);

#endif
