/* One part of the parameters, and the rules for changing and reading it.
 *
 * A pure state machine: messages in, messages out. It opens no socket, reads no clock and starts no
 * thread, so tests drive it with any interleaving they like. A PUSH and the answers to its PULLs go
 * through these files:
 *
 *     shard_service.c   receives, decodes, sends
 *     shard.c           keeps pushes and pulls, and answers
 *     policy_*.c        when pushes are applied and pulls answered: a row for each way to update
 *     policy_sync.c     also the update from the pushes of all workers
 *     shard_on_push.c   the update from one push, where workers are unsynchronised
 *     shard_math_*.c    sums, and runs the optimizer: on the host, or on a device
 *
 * Part k of K of every bucket is here. Parts that are updated and read together are a unit. In
 * ps-sync each part is a unit, so that buckets travel while others are computed. Where workers are
 * unsynchronised, all parts are one unit, so that no worker reads half an update. A unit's version
 * counts its updates.
 *
 * ps-sync updates a unit when every worker has pushed its gradient of the step. The sum is taken in
 * ring order, so that it has the bits that a ring all-reduce would give: for each of the bucket's N
 * chunks, rank c first, then c+1, ... modulo N; then the scale by 1/N, then the optimizer. The
 * pushed messages are held, not copied, until then: at most one per worker and bucket.
 *
 * With B backup workers the first N - B gradients are enough. A gradient of a step that is over is
 * dropped and counted, and its worker goes on with the parameters of now. The first gradients may
 * be others on another shard, but all are of the same parameters: a worker asks again (a PULL with
 * `params_version`) until all shards have given it the same version. So every shard gets N - B
 * gradients of each version, and makes every update.
 *
 * In ps-ssp and ps-async a push is applied when it is whole, in the order of arrival or of a seeded
 * order (see order.h), and a pull is answered when it is whole, with one version. The staleness of
 * a gradient is the number of updates between the version that its worker had read and its own. An
 * update may take several gradients (their mean), and a remedy may change the weight of a stale
 * one.
 *
 * Where workers are unsynchronised, the parameters are copied at each mark (see phases.h), and each
 * worker may pull that copy once (a PULL with the number of the mark, from 1), to evaluate it;
 * training goes on meanwhile. After the last update nothing changes any more: late gradients are
 * dropped and counted.
 *
 * A push may say which settings its update has for each group of parameters (`groups`). Without
 * them it has those of the config. In ps-sync all workers have to say the same for a step: a shard
 * in which one differs has a fault, and a dispute. With backup workers the settings are those of
 * the contributor that has made most steps; where every push is an update, its own; and where an
 * update takes several pushes, those of the one that completes it.
 *
 * A shard of ps-sync may make no updates, and hand back means: then what is called parameters here
 * are the mean gradients of the last step.
 *
 * A shard lives for one phase of its job. The parameters, and from the second phase on the
 * optimizer's states, are seeded by rank 0; at the end workers may pull the states (a PULL with
 * `vector`, the number of the state from 1). Where a program commits what it goes on from, they do
 * so whenever all have stopped for that. */
#ifndef PS_SERVER_SHARD_SHARD_H
#define PS_SERVER_SHARD_SHARD_H

#include "common/channel/wire.h"
#include "common/job/consistency.h"
#include "common/job/job.h"
#include "common/job/phases.h"
#include "common/optimizer/groups.h"
#include "common/optimizer/schedule.h"
#include "common/plan/order.h"
#include "common/transport/transport.h"
#include "common/vector/layout.h"
#include "ps-server/results/staleness.h"
#include "ps-server/shard/remedy/remedy.h"

struct shard;
struct vector_device;

/* Who is told when a shard begins to compute, and when it has: of a bucket, or, where all parts are
 * one unit, of UINT32_MAX. On a device it is queued, and waited for where that has to be. */
enum shard_work { SHARD_SUM, SHARD_UPDATE, SHARD_SUM_AND_UPDATE };

struct shard_watch {
    void (*note)(void *context, enum shard_work work, uint32_t bucket,
                 bool is_begin); // NULL: nobody
    void *context;
};

struct shard_config {
    uint32_t index, shard_count, workers;
    uint32_t processes; // that carry the workers' ranks, see carriers.h; 0: one for each
    struct rank_list left_out;
    struct layout layout;
    struct consistency consistency;
    struct schedule schedule;
    enum optimizer_kind optimizer;
    struct optimizer_settings settings;
    const struct optimizer_groups *groups; // of the parameters, valid ones, with rates in units of
                                           // the schedule's; read during create; NULL: one group
    float *params;                // (shard_value_count) zeros, borrowed; NULL: the shard's own
    struct vector_device *device; // borrowed; has all vectors, and reaches all gradients; NULL: the
                                  // host does. At most VECTOR_DEVICE_RANKS workers, no views, and
                                  // no remedy that adjusts gradients

    struct marks marks;      // of the phase; period 0: a single one, at its end
    uint64_t updates_before; // in earlier phases
    bool seeds_states;       // rank 0 seeds the optimizer's states as well
    bool tells_states;       // at any time when no gradient is under way, not only at its end
    bool is_restored;        // nothing is seeded: see shard_checkpoint_restore
    uint64_t rounds_before; // pushes of each worker before, in this phase: of a restored shard with
                            // a seeded order
    uint64_t gradients_ahead; // of a restored shard whose workers race: as many of the first are in
                              // its parameters already, and are not applied

    // The parameters are the mean gradients of the last step, and nobody seeds them: workers make
    // the updates. Where all are in step.
    bool hands_back_means;

    // Where workers are unsynchronised.
    uint32_t sync_every;           // steps that a push stands for; 0: 1
    uint32_t backup;               // ps-sync: workers whose gradients an update does not need
    bool keeps_marks;              // workers pull the parameters of every mark
    struct order order;            // ps-ssp and ps-async
    bool has_views;                // a seeded order is of views: see shard_views.h
    uint64_t seed;                 // of the order
    uint32_t gradients_per_update; // n-softsync (Gupta et al. 2016); 1 with a seeded order
    const struct remedy *remedy;   // NULL: none
    float remedy_lambda;

    struct shard_watch watch;
};

/* Floats of the shard. */
uint64_t shard_value_count(const struct shard_config *config);

/* Bytes that a seeded order needs for older versions, or for views. Capped. */
uint64_t shard_history_bytes(const struct shard_config *config);

/* Sends one message to a worker. Its values may change after the call, unless
 * shard_values_are_stable. */
typedef void shard_send_fn(void *context, uint32_t rank, const struct message *message);

/* Copies config. */
enum status shard_create(const struct shard_config *config, struct shard **ret_shard);
void shard_destroy(struct shard *shard); // NULL is fine

const struct shard_config *shard_config(const struct shard *shard); // borrowed

/* STATUS_OK, or what has failed on the shard's device: what it holds is not the parameters any
 * more.
 */
enum status shard_fault(const struct shard *shard);

/* What two workers of ps-sync have said of one step. */
struct shard_dispute {
    uint32_t rank, other; // who has said the value, and the other one
    uint64_t step;        // of the job
    struct optimizer_difference differs;
};

/* NULL: none. Where there is one, the shard has the fault STATUS_MISMATCH. Borrowed. */
const struct shard_dispute *shard_dispute(const struct shard *shard);

/* Copies values that the shard sends, and waits. */
void shard_copy(struct shard *shard, float *to, const float *from, uint64_t count);

/* Values that are sent lie in the shard's parameters. Unless workers are unsynchronised, they do
 * not change before their receiver has pushed the next step, so they need no copy. */
bool shard_values_are_stable(const struct shard *shard);

/* SEED, PUSH and PULL of a worker. Takes the envelope of a PUSH that it accepts. STATUS_MALFORMED
 * for what the protocol does not allow (wrong span, twice the same push, a step that is not due):
 * nothing has changed then. */
enum status shard_receive(struct shard *shard, const struct message *message,
                          struct envelope *envelope, shard_send_fn *send, void *context);

/* Whether workers wait for an answer that another one has to make possible: which, the one whose
 * gradients have not come, or rank 0 that has to seed. */
bool shard_awaits(const struct shard *shard, uint32_t *ret_rank);

/* Updates that were applied to the bucket that has had fewest. */
uint64_t shard_version(const struct shard *shard);

/* Of the gradients that were applied. Borrowed. */
const struct staleness *shard_staleness(const struct shard *shard);

/* Gradients that came after their step (--backup), or after the last update, and were dropped. */
uint64_t shard_late_count(const struct shard *shard);

/* This shard's part of a bucket; NULL if it is empty. Borrowed; for tests and checkpoints. */
const float *shard_params(const struct shard *shard, uint32_t bucket, struct span *ret_span);

#endif
