/* Links that are alike, as one group. Pure. */
#ifndef DEPLOY_PREDICT_STUDY_STUDY_GROUPS_H
#define DEPLOY_PREDICT_STUDY_STUDY_GROUPS_H

#include "deploy/predict/basis/network.h"

#include <stdbool.h>
#include <stdint.h>

/* Links are alike if these are the same: bandwidth, background and loss of `link`, and all fields
 * from `above` to `is_idle`. */
struct study_group {
    const struct network_link *link;  // of the first; borrowed
    const char *name;                 // likewise, of its host or switch, or of itself
    uint32_t above, workers, servers; // 0 where the caller does not tell links apart by them
    bool is_idle;                     // likewise, false
    uint32_t size;                    // links
};

/* Adds a link to the group that it is like, of those from `begin` on. If there is none, adds a
 * group behind the *count that there are: the list has room for it. Returns the group's index. */
uint32_t study_group_join(struct study_group *list, uint32_t begin, uint32_t *count,
                          const struct study_group *like);

#endif
