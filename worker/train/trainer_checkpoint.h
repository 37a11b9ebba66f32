/* Checkpoints, as one worker sees them: when it takes a snapshot, what is in it, and how a job that
 * is resumed gets it back. */
#ifndef WORKER_TRAIN_TRAINER_CHECKPOINT_H
#define WORKER_TRAIN_TRAINER_CHECKPOINT_H

#include "common/base/status.h"
#include "common/channel/snapshot.h"
#include "common/job/checkpoints.h"
#include "worker/link/link.h"

#include <stdbool.h>
#include <stdint.h>

struct trainer;

struct trainer_checkpoint {
    struct checkpoints plan;
    struct snapshot snapshot; // laid out for the phase
    uint64_t answered;        // the announced step that was answered last
    uint64_t offered;         // steps of the last snapshot that was offered or skipped
    uint64_t begin_step;      // of a job that is resumed; 0: it is not
    float *residuals;         // (ranks, value_count) that were fetched, until there is an exchange;
                              // owned
    uint64_t *open_images;    // (ranks) what an offered snapshot says of the open period; owned
    double *open_loss_sums;   // (ranks) likewise
};

/* A phase has begun, with its exchange. Waits until a snapshot of the phase before has gone. */
enum status trainer_checkpoint_begin_phase(struct trainer *trainer, struct link *link);

/* After `steps` steps, with everything that followed the last one: takes a snapshot if one is due.
 */
enum status trainer_checkpoint_after_step(struct trainer *trainer, struct link *link,
                                          uint64_t step);

/* After the last step: workers whose steps are not counted take the last one now. */
enum status trainer_checkpoint_end(struct trainer *trainer, struct link *link);

void trainer_checkpoint_finish(struct trainer *trainer); // also of a trainer that is half-built

#endif
