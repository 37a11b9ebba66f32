/* What a checkpoint has beside its vectors. Of each rank: the results so far, and what was not
 * reported of the period that is open. A worker tells it for all ranks that it carries; when the
 * job is resumed, others may carry them. And what servers had counted by then. Pure. */
#ifndef PS_SERVER_COORDINATOR_CHECKPOINT_RANKS_H
#define PS_SERVER_COORDINATOR_CHECKPOINT_RANKS_H

#include "common/channel/wire.h"
#include "common/job/carriers.h"
#include "ps-server/results/results.h"

#include <stdbool.h>

struct checkpointing;
struct coordinator;
struct coordinator_resume;

/* As they were at the step that the rank's worker has offered last. */
struct checkpoint_rank {
    struct results_rank results;
    struct wire_report open_period;
};

/* A server tells what it has counted in this generation, with its snapshot. */
void checkpoint_counts_note(struct checkpointing *checkpointing, uint32_t server,
                            const struct wire_report *report);

/* Adds what so many servers have told to what was counted before this generation: that is what the
 * checkpoint which is collected has. */
void checkpoint_counts_add(struct coordinator *coordinator, uint32_t servers);

/* Keeps what a SNAPSHOT says of the ranks that its sender carries. False if it is not about as
 * many. */
bool checkpoint_ranks_take(struct coordinator *coordinator, struct rank_block ranks,
                           const struct message *snapshot);

/* What who carries these ranks gets back: of the report, the ranks' own parts are in the slices.
 * Those are borrowed from the resume. */
void checkpoint_ranks_give(const struct coordinator_resume *resume, struct rank_block ranks,
                           struct wire_report *ret_report, struct wire_slices *ret_slices);

#endif
