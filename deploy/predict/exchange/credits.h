/* Which pushes a server tells their workers of, as credits.h of servers has it: where an update
 * waits for all workers, none gets ahead of the one that has pushed least. */
#ifndef DEPLOY_PREDICT_EXCHANGE_CREDITS_H
#define DEPLOY_PREDICT_EXCHANGE_CREDITS_H

#include <stdbool.h>
#include <stdint.h>

/* Of a server and a worker. */
struct credit_line {
    double pushed, told;   // bytes of values
    uint32_t first, count; // of the pushes that nobody was told of
};

struct credits_seen {
    struct credit_line *lines; // (workers), owned
    uint32_t *waiting;         // (workers, buckets) of each worker's, in a circle; owned
    uint32_t workers, buckets;
    double least;        // that a worker has pushed,
    uint32_t least_many; // and how many have pushed no more
    uint32_t next, end;  // workers that may be told something
};

bool credits_seen_init(struct credits_seen *credits, uint32_t workers, uint32_t buckets);
void credits_seen_finish(struct credits_seen *credits); // zeroed is fine

/* A push has come, of so many bytes. */
void credits_seen_add(struct credits_seen *credits, uint32_t worker, uint32_t bucket, double bytes);

/* The next push that its worker is told of; false if there is none. `bytes` are those of a bucket's
 * push. */
bool credits_seen_take(struct credits_seen *credits, const double *bytes, uint32_t *ret_worker,
                       uint32_t *ret_bucket);

#endif
