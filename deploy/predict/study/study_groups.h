/* Links that are alike, as one group. Pure. */
#ifndef DEPLOY_PREDICT_STUDY_STUDY_GROUPS_H
#define DEPLOY_PREDICT_STUDY_STUDY_GROUPS_H

#include "deploy/predict/basis/network.h"

#include <stdbool.h>
#include <stdint.h>

/* What its links have in common: what of `link` has to do with bandwidth, and all that is below. */
struct study_group {
    const struct network_link *link;  // of the first; borrowed
    const char *name;                 // likewise, of its host or switch, or of itself
    uint32_t above, workers, servers; // as far as the caller tells links apart by them
    bool is_idle;                     // likewise
    uint32_t size;
};

/* Adds one to the group that it is like, of those from `begin` on, or to a new one behind the
 * *count that there are, for which there has to be room. Its index. */
uint32_t study_group_join(struct study_group *list, uint32_t begin, uint32_t *count,
                          const struct study_group *like);

#endif
