/* What exchange.c chooses from: a strategy for each mode, and a driver for each thread. */
#ifndef WORKER_EXCHANGE_STRATEGIES_H
#define WORKER_EXCHANGE_STRATEGIES_H

#include "worker/exchange/exchange.h"

struct exchange_strategy {
    struct exchange_ops ops;

    /* Returns the strategy's own zeroed struct with what it needs of the options. */
    enum status (*create)(const struct exchange_options *options, struct exchange **ret_exchange);
};

/* Whose thread does the work: how the trainer's calls are answered, see exchange.h. */
struct exchange_driver {
    enum status (*begin_step)(struct exchange *exchange, uint64_t step);
    void (*bucket_ready)(struct exchange *exchange, uint32_t bucket);
    enum status (*await_bucket)(struct exchange *exchange, uint32_t bucket,
                                enum status (*apply)(void *context, uint32_t bucket),
                                void *context); // NULL: nothing is won by it
    enum status (*end_step)(struct exchange *exchange,
                            enum status (*apply)(void *context, uint32_t bucket), void *context);
    enum status (*settle)(struct exchange *exchange);
};

extern const struct exchange_driver exchange_threaded; // the communication thread
extern const struct exchange_driver exchange_inline;   // the trainer's own

extern const struct exchange_strategy exchange_local;
extern const struct exchange_strategy exchange_chunks, exchange_shared;
extern const struct exchange_strategy exchange_ps;

#endif
