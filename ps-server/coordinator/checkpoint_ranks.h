/* What a checkpoint has of each rank beside its vectors: the results so far, and what was not
 * reported of the period that is open. A worker tells it for all ranks that it carries; when the
 * job is resumed, others may carry them. Pure. */
#ifndef PS_SERVER_COORDINATOR_CHECKPOINT_RANKS_H
#define PS_SERVER_COORDINATOR_CHECKPOINT_RANKS_H

#include "common/channel/wire.h"
#include "common/job/carriers.h"
#include "ps-server/coordinator/results.h"

#include <stdbool.h>

struct coordinator;
struct coordinator_resume;

/* As they were at the step that the rank's worker has offered last. */
struct checkpoint_rank {
    struct results_rank results;
    struct wire_report open_period;
};

/* Keeps what a SNAPSHOT says of the ranks that its sender carries. False if it is not about as
 * many. */
bool checkpoint_ranks_take(struct coordinator *coordinator, struct rank_block ranks,
                           const struct message *snapshot);

/* What who carries these ranks gets back: of the report, the ranks' own parts are in the slices.
 * Those are borrowed from the resume. */
void checkpoint_ranks_give(const struct coordinator_resume *resume, struct rank_block ranks,
                           struct wire_report *ret_report, struct wire_slices *ret_slices);

#endif
