/* Runs the recorded graph again with something changed: how long would it have taken? Pure.
 *
 * Every piece begins when its thread is free and its cause has come. What the graph does not show
 * stays as it was: the order in which a thread does things, and gaps that have no cause. */
#ifndef DEPLOY_TRACE_REPLAY_H
#define DEPLOY_TRACE_REPLAY_H

#include "deploy/trace/segments.h"

enum replay_change {
    REPLAY_AS_IT_WAS,
    REPLAY_LINKS,     // twice as fast
    REPLAY_STRAGGLER, // the slowest worker computes as the others do in the median
    REPLAY_INPUT,     // batches are read in no time
    REPLAY_SERVERS,   // shards are twice as fast
    REPLAY_CHANGE_COUNT
};

/* "links twice as fast" */
const char *replay_change_name(enum replay_change change);

/* Seconds from the first to the last recorded moment of the threads that compute. */
enum status replay_run(const struct segments *segments, enum replay_change change,
                       double *ret_seconds);

#endif
