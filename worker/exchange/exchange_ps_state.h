/* The state that exchange_ps.c (pushes, pulls and answers) and ps_begin.c (what is before them)
 * share. */
#ifndef WORKER_EXCHANGE_EXCHANGE_PS_STATE_H
#define WORKER_EXCHANGE_EXCHANGE_PS_STATE_H

#include "common/channel/pacer.h"
#include "worker/exchange/delivered.h"
#include "worker/exchange/encoder.h"
#include "worker/exchange/strategies.h"

enum push_state { PUSH_WAITS, PUSH_TRAVELS, PUSH_TAKEN };

/* Pushes to one shard. */
struct ps_shard {
    bool is_far;
    uint64_t window, travelling; // in bytes; one push may exceed the window
    uint32_t waiting_count;      // buckets that are ready and not pushed
    unsigned char *states;       // (bucket_count) enum push_state, of this step; owned
    uint32_t *travellers;        // (bucket_count) pushes of a bucket that travels; owned
    bool *is_pulled;             // (bucket_count) asked for and not here yet; owned
    uint64_t params_version;     // of the parameters that came last; 0: it does not say
    bool is_late;                // it has dropped the last gradient
    uint64_t taken;              // PARAMS that have come from it
};

struct ps {
    struct exchange base;
    struct encoder *encoders; // (rank_count) of each rank that this process carries; owned
    uint32_t rank_count;
    struct pacer *pacer;     // of pushes over a network
    struct ps_shard *shards; // (shard_count), owned
    uint32_t shard_count;
    bool is_open;         // shards can be sent to: where a device has the vectors, they have to
                          // reach them first
    uint32_t ready_count; // buckets of this step that backward has completed, in their order
    struct delivered *delivered; // of what is watched; NULL: nothing; owned
    uint64_t *missing_counts;    // per bucket: floats of the next step's parameters still to come
    uint64_t *given;             // (shard_count) SEED, PUSH and PULL that went to each; owned
};

static inline struct ps *ps_of(struct exchange *exchange)
{
    return (struct ps *)exchange;
}

static inline uint64_t ps_bytes_of(struct span part)
{
    return part.count * sizeof(float);
}

static inline struct span ps_part_of(const struct exchange *exchange, uint32_t bucket,
                                     uint32_t shard)
{
    const struct exchange_options *options = &exchange->options;
    return span_part(options->layout->buckets[bucket], options->peer_count, shard);
}

/* The turn that comes behind the one of now: what is pulled is for that. The first one is that of
 * the options, mostly 0. */
static inline struct exchange_turn ps_next_turn(const struct exchange *exchange)
{
    return exchange_turn(exchange, exchange->step + 1);
}

/* Pushes of a bucket in a step of the exchange: of every rank, or of the one whose turn it is. */
static inline uint32_t ps_push_count(const struct exchange *exchange)
{
    return exchange->options.is_unsynchronised ? 1 : exchange->options.block.count;
}

/* ps_begin.c: slots of the strategy. Hellos and the first parameters go out at the start, or when
 * shards and worker reach each other's memory, where they have to. */
enum status ps_create(const struct exchange_options *options, struct exchange **ret_exchange);
enum status ps_start(struct exchange *exchange);
void ps_destroy(struct exchange *exchange);

/* ps_begin.c: begins to send if all shards can be reached now. */
enum status ps_open(struct exchange *exchange);

/* Sends on the bucket's lane, because a shard has to have the seed before the push. */
enum status ps_send_to_shard(struct exchange *exchange, uint32_t shard,
                             const struct message *message);

/* Asks all shards for everything. */
enum status ps_pull(struct exchange *exchange);

/* Pushes ready buckets to a shard, as far as its window allows. */
enum status ps_push_on(struct exchange *exchange, uint32_t shard);

#endif
