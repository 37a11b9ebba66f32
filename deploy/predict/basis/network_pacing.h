/* Which messages congestion control spreads over time, so that links let none of them pass at once.
 *
 * BBR sends as fast as it has seen a path deliver. What that is depends on who shares the path, so
 * it differs by the part that a connection has in the exchange: among workers, to servers, and back
 * from these, where CUBIC replaces BBR if it may (common/transport/congestion.h). */
#ifndef DEPLOY_PREDICT_BASIS_NETWORK_PACING_H
#define DEPLOY_PREDICT_BASIS_NETWORK_PACING_H

#include "common/base/status.h"
#include "deploy/predict/basis/fields.h"

#include <jansson.h>

#include <stdbool.h>

enum network_way {
    NETWORK_WAY_RING,    // from worker to worker, of any all-reduce
    NETWORK_WAY_PUSHES,  // from workers to servers
    NETWORK_WAY_ANSWERS, // from servers to workers
    NETWORK_WAY_COUNT,
};

extern const char *const network_way_names[NETWORK_WAY_COUNT];

struct network_pacing {
    bool is_paced[NETWORK_WAY_COUNT];
};

/* Reads "paced": a list of names of ways, or true, which is all but answers, or false. As it was if
 * it is not there. */
enum status network_pacing_read(const struct fields *fields, struct network_pacing *ret_pacing);

bool network_pacing_is_any(const struct network_pacing *pacing);

/* What network_pacing_read reads the same from; NULL if there is no memory. */
json_t *network_pacing_json(const struct network_pacing *pacing);

#endif
