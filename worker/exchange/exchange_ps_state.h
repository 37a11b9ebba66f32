/* The state that exchange_ps.c (requests and pushes) and ps_answers.c (answers) share. */
#ifndef WORKER_EXCHANGE_EXCHANGE_PS_STATE_H
#define WORKER_EXCHANGE_EXCHANGE_PS_STATE_H

#include "common/channel/pacer.h"
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
};

struct ps {
    struct exchange base;
    struct encoder *encoders; // (rank_count) of each rank that this process carries; owned
    uint32_t rank_count;
    struct pacer *pacer;     // of pushes over a network
    struct ps_shard *shards; // (shard_count), owned
    uint32_t shard_count;
    bool is_open;             // shards can be sent to: where a device has the vectors, they have to
                              // reach them first
    uint32_t ready_count;     // buckets of this step that backward has completed, in their order
    uint64_t answer_count;    // with parameters, that have come
    uint64_t *missing_counts; // per bucket: floats of the next step's parameters still to come
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

/* Asks a shard for all its parameters: of this version or a later one; 0: of any. */
enum status ps_pull_shard(struct exchange *exchange, uint32_t shard, uint64_t version);

/* Pushes ready buckets to a shard, as far as its window allows. */
enum status ps_push_on(struct exchange *exchange, uint32_t shard);

/* ps_answers.c: a shard has taken a push, so there is room for another. */
enum status ps_take_credit(struct exchange *exchange, const struct message *message,
                           uint32_t shard);

/* The first shard that has not answered, if all buckets of the step were pushed. */
bool ps_awaits(const struct exchange *exchange, struct wire_wait *ret_wait);

/* Whether these parameters were requested and have not come yet; and takes them. */
bool ps_expects(const struct exchange *exchange, const struct message *message, uint32_t shard);
enum status ps_take_params(struct exchange *exchange, const struct message *message,
                           uint32_t shard);

#endif
