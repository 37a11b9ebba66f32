/* The critical path of every recorded step: who held it up, and by how much. Pure.
 *
 * The path is walked back from the end of a step. Work counts as its thread's. Where a piece was
 * released by another thread, the walk goes on there, and the time between the two counts as the
 * link's, or as a wake-up. A step of workers that are in step with each other ends with the last
 * worker, and begins where the step before it ended; the steps of unsynchronised workers are walked
 * for each worker alone. */
#ifndef DEPLOY_TRACE_CRITICAL_PATH_H
#define DEPLOY_TRACE_CRITICAL_PATH_H

#include "deploy/trace/segments.h"

#define CRITICAL_SHARES_MAX 4096

enum critical_what {
    CRITICAL_FORWARD,
    CRITICAL_BACKWARD,
    CRITICAL_OPTIMIZER,
    CRITICAL_DELAY,    // of --straggler
    CRITICAL_EXCHANGE, // that its own thread takes: sums
    CRITICAL_INPUT,
    CRITICAL_MESSAGES, // packs, sends and takes them
    CRITICAL_UPDATE,   // of a shard
    CRITICAL_COPY,     // between host and GPU
    CRITICAL_OTHER,
    CRITICAL_LINK, // between two processes
    CRITICAL_WHAT_COUNT
};

struct critical_share {
    enum critical_what what;
    uint32_t who;           // thread of the timeline; of a link: the process that sends
    uint32_t to;            // of a link: the process that receives
    uint64_t ns;            // in all steps
    uint64_t led;           // steps of whose path this is the largest part
    uint64_t step_ns, step; // of the step that is walked
};

struct critical_path {
    struct critical_share shares[CRITICAL_SHARES_MAX]; // (share_count), the largest first
    size_t share_count;
    uint64_t step_count, total_ns; // of the paths
};

/* *ret_path is large: on the heap. */
enum status critical_path_find(const struct segments *segments, struct critical_path *ret_path);

/* "worker 2's backward", "the link worker 0 -> worker 1". */
void critical_name(const struct timeline *timeline, const struct critical_share *share,
                   char *ret_text, size_t text_size);

/* "worker 2", "shard 0", "worker 0 -> worker 1"; and "backward". */
void critical_name_who(const struct timeline *timeline, const struct critical_share *share,
                       char *ret_text, size_t text_size);
const char *critical_what_name(enum critical_what what);

/* What limits most steps, in a sentence. */
void critical_sentence(const struct timeline *timeline, const struct critical_path *path,
                       char *ret_text, size_t text_size);

#endif
