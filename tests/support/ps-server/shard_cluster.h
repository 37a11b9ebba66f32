/* Shards and their workers in memory, where workers are unsynchronised: for properties over
 * thousands of interleavings.
 *
 * Workers behave as the trainer does, and a random number says which message is delivered next: of
 * each worker, those to one shard in their order.
 * Every gradient is 1 everywhere and the optimizer takes it as it is, so a parameter says how many
 * updates it has had: -version, in every element of one answer. */
#ifndef TESTS_SUPPORT_PS_SERVER_SHARD_CLUSTER_H
#define TESTS_SUPPORT_PS_SERVER_SHARD_CLUSTER_H

#include "common/job/carriers.h"
#include "ps-server/shard/kept_shard.h"
#include "ps-server/shard/shard.h"

#include <stdbool.h>
#include <stdint.h>

#define CLUSTER_VALUES      23
#define CLUSTER_BUCKETS     3
#define CLUSTER_WORKERS_MAX 6
#define CLUSTER_SHARDS_MAX  3
#define CLUSTER_QUEUE_MAX   32

struct delivery {
    enum message_kind kind;
    uint32_t rank;
    uint64_t step, mark, params_version;
    uint32_t bucket;
};

/* In flight from a worker to a shard, in order. */
struct deliveries {
    struct delivery items[CLUSTER_QUEUE_MAX];
    uint32_t head, count;
};

enum activity { PULLS_FIRST, STEPS, PULLS_MARK, PULLS_NEXT, PULLS_LAST, DONE };

/* A process, which carries some ranks. */
struct worker {
    struct rank_block ranks;
    enum activity activity;
    struct deliveries queues[CLUSTER_SHARDS_MAX];
    uint64_t params_versions[CLUSTER_SHARDS_MAX]; // of the answer that is coming
    uint64_t turn;                                // steps of all of its ranks
    uint64_t marks_closed, marks_passed;
    float params[CLUSTER_VALUES];
    uint32_t params_count; // of the answer that is coming
    uint64_t read_version; // of the last answer to go on with
    bool has_notice;       // that answer was given beyond the bound, to say that a mark was passed
};

struct cluster {
    uint64_t seed;
    struct shard_config config;
    struct shard *shards[CLUSTER_SHARDS_MAX];   // (config.shard_count)
    uint32_t shard_now;                         // the one that has a message at the moment
    struct worker workers[CLUSTER_WORKERS_MAX]; // (worker_count)
    uint32_t worker_count;
    uint64_t applied[CLUSTER_WORKERS_MAX]; // steps of each rank, as far as they were pushed whole
    uint64_t staleness_counts[STALENESS_BINS]; // what the histogram must be
    uint64_t whole_pushes[CLUSTER_SHARDS_MAX];
    bool has_sums; // versions are not gradients: nothing is expected of them
    bool is_apart; // shards race, each with updates of its own: an answer of several is of none

    // Instead of the checks for gradients that are applied one by one: called for every whole
    // answer, which lies in the worker's params. Or NULL.
    void (*check)(const struct cluster *cluster, uint32_t rank, uint64_t step);
};

/* Of one shard; more of them only with backup workers, or where they are apart. Fails the test if
 * there is no such mode or order. */
struct shard_config cluster_config(const char *mode, const char *order, uint32_t workers);

/* Marks of the phase. */
uint64_t cluster_mark_count(const struct cluster *cluster);

/* Gradients of a phase that begins at step 0. */
uint64_t cluster_gradient_total(const struct shard_config *config);

void cluster_open(struct cluster *cluster, const struct shard_config *config, uint64_t seed);
void cluster_close(struct cluster *cluster);

/* The same with shards that go on from what others have kept, and are apart. (shard_count) */
void cluster_open_in_place(struct cluster *cluster, const struct shard_config *config,
                           uint64_t seed, struct kept_shard *kept);

/* Delivers the next message of the worker with this index, a process, to a shard. */
void cluster_deliver(struct cluster *cluster, uint32_t index, uint32_t shard);

/* Delivers so many messages, or fewer if everybody is done before that. */
void cluster_run_for(struct cluster *cluster, uint64_t count);

/* Delivers until everybody is done. Fails if nothing is in flight before. */
void cluster_run(struct cluster *cluster);

#endif
