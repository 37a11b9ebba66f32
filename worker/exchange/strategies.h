/* Lists what exchange.c chooses from: a strategy for each mode, and a driver for each thread. */
#ifndef WORKER_EXCHANGE_STRATEGIES_H
#define WORKER_EXCHANGE_STRATEGIES_H

#include "worker/exchange/exchange.h"

struct exchange_strategy {
    struct exchange_ops ops;

    /* Returns the strategy's own zeroed struct with what it needs of the options. */
    enum status (*create)(const struct exchange_options *options, struct exchange **ret_exchange);
};

extern const struct exchange_driver exchange_threaded; // the communication thread
extern const struct exchange_driver exchange_inline;   // the trainer's own

extern const struct exchange_strategy exchange_local;
extern const struct exchange_strategy exchange_chunks, exchange_shared, exchange_devices;
extern const struct exchange_strategy exchange_ps, exchange_ps_means;

#endif
