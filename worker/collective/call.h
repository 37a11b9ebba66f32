/* Collectives of a team, or of some of its processes.
 *
 * Every process of a call first sends every other a header that says in words which call it makes,
 * and takes nothing of one that says something else. Then bytes go from process to process. An
 * all-reduce cuts a vector into a chunk for each process: each sends every other that one's chunk,
 * folds its own in the order of ranks, and sends the result to all. Long vectors go slab by slab,
 * so that what was sent is folded while it is in the cache. */
#ifndef WORKER_COLLECTIVE_CALL_H
#define WORKER_COLLECTIVE_CALL_H

#include "common/base/status.h"
#include "worker/collective/fold.h"
#include "worker/collective/team.h"

#include <stddef.h>
#include <stdint.h>

struct call_options {
    const uint32_t *ranks; // (count) ascending, this process's among them; borrowed
    uint32_t count;
    const char *label; // the call in words, of which TEAM_LABEL_BYTES - 1 count
};

/* The header that this process sends. `bytes`: what the call is about. */
void call_header(const struct call_options *options, uint64_t bytes,
                 struct team_header *ret_header);

/* What team_run returns, or STATUS_MISMATCH if a process makes another call; *ret_fault says more.
 * Waits. */
enum status call_barrier(struct team *team, const struct call_options *options,
                         struct team_fault *ret_fault);

/* The bytes of the process `root`, in place. */
enum status call_broadcast(struct team *team, const struct call_options *options, void *bytes,
                           size_t size, uint32_t root, struct team_fault *ret_fault);

/* all: (options->count, own_bytes); `own` may be its part of it. */
enum status call_all_gather(struct team *team, const struct call_options *options, const void *own,
                            size_t own_bytes, void *all, struct team_fault *ret_fault);

struct call_values {
    void *values; // (count)
    size_t count;
    enum fold_type type;
    enum fold_operation operation;
};

/* In place. */
enum status call_all_reduce(struct team *team, const struct call_options *options,
                            const struct call_values *values, struct team_fault *ret_fault);

#endif
