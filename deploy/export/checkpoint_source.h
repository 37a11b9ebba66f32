/* Reads what an export needs from a checkpoint: parameters, and the statistics of batch
 * normalisation as an evaluation uses them. */
#ifndef DEPLOY_EXPORT_CHECKPOINT_SOURCE_H
#define DEPLOY_EXPORT_CHECKPOINT_SOURCE_H

#include "common/base/status.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/plan/rank_list.h"
#include "deploy/export/tensors.h"

#include <stddef.h>

/* Statistics are the mean over the ranks that take part, in double, in their order. What a rank
 * that is left out has is of the step at which it was lost. STATUS_MALFORMED or another, with an
 * error, which is the caller's to say: the checkpoint may have been removed meanwhile. The source
 * is finished with checkpoint_source_finish. */
enum status checkpoint_source_read(struct checkpoint_reader *checkpoint,
                                   const struct rank_list *left_out,
                                   struct tensor_source *ret_source, char *ret_error,
                                   size_t error_size);
void checkpoint_source_finish(struct tensor_source *source); // zeroed is fine

#endif
