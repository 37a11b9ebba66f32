/* How many steps each worker has made, and which number the slowest has. */
#ifndef DEPLOY_PREDICT_CLOCKS_H
#define DEPLOY_PREDICT_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

struct clocks {
    uint64_t *steps; // (count), owned
    uint32_t count, slowest_count;
    uint64_t slowest; // which so many workers have
};

/* All at 0. False if there is no memory. */
bool clocks_init(struct clocks *clocks, uint32_t count);
void clocks_finish(struct clocks *clocks); // zeros are fine

/* One more step of a worker. Whether the slowest is another now. */
bool clocks_advance(struct clocks *clocks, uint32_t worker);

#endif
