/* A shard's share of checkpoints: offers what it has copied to the coordinator, and sends it in
 * pieces; fetches what a restored shard needs. */
#ifndef PS_SERVER_SHARD_SERVICE_CHECKPOINT_H
#define PS_SERVER_SHARD_SERVICE_CHECKPOINT_H

#include "common/base/status.h"
#include "common/channel/fetch.h"
#include "common/channel/snapshot.h"
#include "common/channel/wire.h"
#include "common/job/checkpoints.h"
#include "common/job/phases.h"
#include "ps-server/results/staleness.h"

#include <stdbool.h>
#include <stdint.h>

struct service;

struct service_checkpoint {
    struct checkpoints plan;
    struct phases phases;
    uint64_t next;      // steps of the job after which the next one is; CHECKPOINTS_NEVER
    uint64_t announced; // by the coordinator; 0: none
    struct snapshot now;
    bool is_held;    // `now` is offered, or on its way
    bool is_offered; // it was: there was a coordinator
    uint64_t told;   // the newest step that was offered, or said to be missing; 0: none was
    uint64_t missed; // the newest that could not be said to be missing; 0: there is none
    bool is_behind;  // the last one of the job waits for it

    // What this generation had counted at `now`.
    struct staleness staleness;
    uint64_t late_count;

    // A snapshot of the phase before that is still on its way.
    struct snapshot before;
    bool is_before_held;

    // What a restored shard still lacks.
    bool is_restoring, is_fetching_known;
    uint32_t index; // of the span that is being fetched
    struct fetch fetch;
};

/* A phase has begun, with service->shard: in the midst of it if the job is resumed. *ret_is_ready:
 * the shard has all it needs. */
enum status service_checkpoint_begin(struct service *service, uint64_t train_samples,
                                     uint32_t phase_index, bool *ret_is_ready);
void service_checkpoint_finish(struct service *service);

/* The coordinator was lost. Drops what it was offered, of which it may have had a part. Returns the
 * newest step that it was told of. */
uint64_t service_checkpoint_let_go(struct service *service);

/* There is a coordinator again: offers what has become whole meanwhile. */
void service_checkpoint_offer_again(struct service *service);

/* Offers what has become whole. After every message. */
void service_checkpoint_advance(struct service *service);

/* SNAPSHOT, COLLECT or PIECE of the coordinator. *ret_is_ready as above. */
enum status service_checkpoint_handle(struct service *service, const struct message *message,
                                      bool *ret_is_ready);

#endif
