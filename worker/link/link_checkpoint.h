/* The link's part in checkpoints: the trainer's thread fills snapshots and asks for vectors of a
 * checkpoint, the communication thread sends the ones and fetches the others. */
#ifndef WORKER_LINK_LINK_CHECKPOINT_H
#define WORKER_LINK_LINK_CHECKPOINT_H

#include "common/base/status.h"
#include "common/channel/fetch.h"
#include "common/channel/snapshot.h"
#include "worker/link/link.h"

#include <stdbool.h>
#include <stdint.h>

/* After link_welcome: how many steps of the job were made before it was resumed; 0: it was not. */
uint64_t link_begin_step(const struct link *link);

/* Whether the job goes on in place (ps-server/coordinator/in_place.h): servers have the parameters,
 * and workers pull them. */
bool link_is_in_place(const struct link *link);

/* What was not reported of the period that they end in: what this worker's ranks have in common,
 * borrowed, and of the index-th of them its own part. */
const struct wire_report *link_open_period(const struct link *link);
void link_open_slice(const struct link *link, uint32_t index, uint64_t *ret_images,
                     double *ret_loss_sum);

/* Between link_welcome and link_prepare: waits until all of the span is there. STATUS_INVALID: the
 * checkpoint has no such vector of that size. */
enum status link_fetch(struct link *link, const struct fetch *wanted);

/* The step that the coordinator has named for a snapshot; 0: none. */
uint64_t link_announced(struct link *link);

/* Whether no snapshot of this worker is offered or on its way: one may be filled. */
bool link_snapshot_is_gone(struct link *link);

/* Waits until that is so, or the job ends. */
enum status link_await_snapshot(struct link *link);

/* Offers a snapshot that is filled, and what is not reported of the period that is open: in common,
 * which is copied, and of each rank. The others are borrowed until the snapshot is gone. */
void link_offer_snapshot(struct link *link, struct snapshot *snapshot, uint64_t steps,
                         const struct wire_report *open_period, const struct wire_slices *slices);

/* Says that there will be none of this step. */
void link_skip_snapshot(struct link *link, uint64_t steps);

/* Communication thread: SNAPSHOT, COLLECT and PIECE of the coordinator; and what the trainer waits
 * for. */
enum status link_handle_checkpoint(struct link *link, const struct message *message);
void link_run_fetch(struct link *link);

#endif
