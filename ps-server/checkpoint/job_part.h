/* What a checkpoint says of the job beside its vectors: options, layout, data, and the results so
 * far. Written from the coordinator, and read back into what a coordinator begins with. */
#ifndef PS_SERVER_CHECKPOINT_JOB_PART_H
#define PS_SERVER_CHECKPOINT_JOB_PART_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "ps-server/coordinator/coordinator.h"

#include <jansson.h>

#include <stddef.h>
#include <stdint.h>

/* Of the checkpoint that is being committed. NULL: no memory. */
json_t *job_part_json(const struct coordinator *coordinator, uint64_t now_ms);

/* What was read. */
struct job_part {
    struct coordinator_resume resume;
    // (workers), owned; resume has them.
    struct wire_report *open_periods;
    uint64_t *open_images;
    double *open_loss_sums;
    struct results results; // of a coordinator's kind, owned
};

/* Checks that the job is the one of the checkpoint. STATUS_INVALID with a sentence, or
 * STATUS_END_OF_DATA, also with one, if nothing of the job is left to do. `step` is that of the
 * checkpoint. */
enum status job_part_read(const json_t *tree, const struct job *job, uint64_t step,
                          struct job_part *ret_part, char *ret_error, size_t error_size);
void job_part_finish(struct job_part *part); // zeroed is fine

#endif
