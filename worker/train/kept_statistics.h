/* Statistics of batch normalization that a worker process keeps from one generation of its job to
 * the next. A generation that begins in place (ps-server/coordinator/in_place.h) goes on with them;
 * for a rank that another process has carried there are those of the coordinator's last copy, or,
 * before the first one, those of this process's first rank. */
#ifndef WORKER_TRAIN_KEPT_STATISTICS_H
#define WORKER_TRAIN_KEPT_STATISTICS_H

#include "common/base/status.h"
#include "common/job/carriers.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: there are none. */
struct kept_statistics {
    struct rank_block ranks;
    uint64_t count; // floats of each
    float *values;  // (ranks, count) owned
};

/* Makes room for those of so many ranks. On failure there are none. */
enum status kept_statistics_create(struct kept_statistics *kept, struct rank_block ranks,
                                   uint64_t count);
void kept_statistics_finish(struct kept_statistics *kept);

/* Those of the index-th rank. (count) */
float *kept_statistics_at(struct kept_statistics *kept, uint32_t index);

/* Those of a rank, or of the first one if it was carried elsewhere; NULL: there are none of so many
 * floats. *ret_is_own: they are the rank's. */
const float *kept_statistics_find(const struct kept_statistics *kept, uint32_t rank, uint64_t count,
                                  bool *ret_is_own);

#endif
