/* The largest frame that a shard takes from a worker.
 *
 * A stranger may send a frame of that size before the shard knows who has connected, keys or not:
 * the library reads a command of a handshake whole. So the limit has to be set before the shard
 * listens, which it does before it is told the layout: it follows from the job. */
#ifndef PS_SERVER_SHARD_FRAME_LIMIT_H
#define PS_SERVER_SHARD_FRAME_LIMIT_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "common/vector/layout.h"

#include <stdint.h>

/* Of a job whose size of buckets is small. */
#define FRAME_LIMIT_MIN (UINT64_C(16) << 20)

/* In bytes: more than any bucket takes, encoded or not, unless small ones would have been too many
 * for the model (see layout_split_buckets), by more than FRAME_LIMIT_MIN has room for. Pure. */
uint64_t frame_limit_of(const struct job *job);

/* Whether this shard's part of each bucket is within the limit: STATUS_INVALID otherwise. Logs
 * what to do. */
enum status frame_limit_check(const struct job *job, const struct layout *layout, uint32_t shard);

#endif
