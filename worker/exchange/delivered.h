/* Notices when a program writes parameters that servers deliver. It can, as they are in its memory,
 * but the next delivery goes over what it has written. So before that each part is compared, by a
 * sum, with what was delivered there the last time.
 *
 * The communication thread's, from creation on. */
#ifndef WORKER_EXCHANGE_DELIVERED_H
#define WORKER_EXCHANGE_DELIVERED_H

#include "common/vector/layout.h"

#define DELIVERED_SAME UINT32_MAX

struct delivered;

/* With `params` as they are now, (layout->value_count), which `shard_count` shards deliver in parts
 * of buckets. `watched` are told apart: spans one behind the other that cover the vector. */
enum status delivered_create(const struct layout *layout, uint32_t shard_count,
                             const struct span *watched, uint32_t watched_count,
                             const float *params, struct delivered **ret_delivered);
void delivered_destroy(struct delivered *delivered); // NULL is fine

/* Before a part is delivered: which of the watched spans has another value in it than it had after
 * the last delivery, the first of them; DELIVERED_SAME if none has. */
uint32_t delivered_find_written(const struct delivered *delivered, const float *params,
                                struct span part);

/* The part was delivered. */
void delivered_note(struct delivered *delivered, const float *params, struct span part);

/* Does both, and copies the part's values between them: in one pass over memory, which is what all
 * of this costs. Returns what delivered_find_written would. */
uint32_t delivered_take(struct delivered *delivered, float *params, struct span part,
                        const float *values);

#endif
