/* Evaluates a checkpoint as the job that wrote it did: what each of its workers would have computed
 * is computed here, one after another, and added up in the order of their ranks. So test loss and
 * accuracy have the same bits. */
#ifndef WORKER_TRAIN_EXAMINER_H
#define WORKER_TRAIN_EXAMINER_H

#include "common/base/status.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/job/job.h"
#include "worker/train/trainer.h"

#include <stdint.h>

struct examination {
    uint64_t images, correct;
    double loss_sum;
};

/* Logs. */
enum status examiner_run(const struct job *job, struct checkpoint_reader *checkpoint,
                         const struct trainer_tools *tools, struct examination *ret_examination);

#endif
