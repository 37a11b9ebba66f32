/* Reads what an export needs from a checkpoint: parameters, and the statistics of batch
 * normalisation as an evaluation uses them. */
#ifndef DEPLOY_EXPORT_CHECKPOINT_SOURCE_H
#define DEPLOY_EXPORT_CHECKPOINT_SOURCE_H

#include "common/base/status.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "deploy/export/tensors.h"

/* Statistics are the mean over workers, in double, in the order of ranks. STATUS_MALFORMED or
 * another, logged. The source is finished with checkpoint_source_finish. */
enum status checkpoint_source_read(struct checkpoint_reader *checkpoint,
                                   struct tensor_source *ret_source);
void checkpoint_source_finish(struct tensor_source *source); // zeroed is fine

#endif
