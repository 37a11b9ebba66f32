/* Launches that are the same in every step: captured once, and replayed from then on, as CUDA
 * graphs. Small kernels end sooner than the host launches the next one; a graph is one launch.
 *
 * A program runs in units: nodes between two points at which streams wait for each other. Where
 * parameters and gradients stay on the GPU, forward is one unit, and backward another. A unit may
 * branch off to another stream, if it waits for that before it ends. Each unit of each pass that
 * differs is
 *
 *     run the first time     launched as it comes: libraries load their code then, which no
 *                            capture allows
 *     the second time        captured and instantiated; the graph is launched
 *     from then on           its graph is launched
 *
 * Launches take what changes from step to step either from memory, which is written before, or from
 * the pass (struct cuda_pass), and nodes see nothing else. Another pass has graphs of its own, of a
 * few passes at most; others are launched as they come, and so are passes that wait in the middle,
 * units that go elsewhere than before, and those of so few launches that a graph saves none. A unit
 * that has gone elsewhere twice in a row (buckets have another size) has moved, and is captured
 * anew.
 *
 * Nothing depends on it. What cannot be captured, instantiated or launched is launched as it comes,
 * as is everything after it; the log says so once. A capture runs nothing, so nothing is run twice.
 *
 * Not done: to update graphs in place takes the launches that they are to save; values that change
 * could lie in memory, but are few. */
#ifndef WORKER_DEVICE_CUDA_REPLAY_H
#define WORKER_DEVICE_CUDA_REPLAY_H

#include "common/base/status.h"
#include "worker/device/cuda/context.h"

#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPLAY_PASSES_MAX \
    4 // training, and evaluation, each with a rest of the data or another scale
#define REPLAY_LAUNCHES_MIN 3 // a graph takes the host as long as one or two launches

/* What is run at once. */
struct replay_unit {
    uint32_t index;  // of those of a program
    uint32_t extent; // how far it goes, in units of the caller's own
};

struct replay_graph {
    enum { REPLAY_UNSEEN, REPLAY_SEEN, REPLAY_CAPTURED, REPLAY_TOO_SMALL } state;
    uint32_t extent;       // of the unit when it was seen
    uint32_t other_extent; // where else it went last, and how often in a row
    uint32_t other_count;
    size_t launch_count;   // captured
    cudaGraphExec_t graph; // owned
};

/* Zeroed: launches as they come. */
struct replay {
    cudaStream_t stream; // borrowed
    bool is_on;
    struct cuda_pass passes[REPLAY_PASSES_MAX];
    uint32_t pass_count;
    struct replay_graph *graphs;  // (REPLAY_PASSES_MAX, unit_count), owned
    struct replay_graph *current; // of the pass that runs; NULL: launches as they come
    uint32_t unit_count;
};

/* Borrows the stream until finish. */
enum status replay_init(struct replay *replay, cudaStream_t stream, uint32_t unit_count);
void replay_finish(struct replay *replay); // when the stream has ended; zeroed is fine

/* Units that run from here on are of this pass. */
void replay_begin_pass(struct replay *replay, const struct cuda_pass *pass);

/* Has a unit's launches in the stream, by queue(context) or by a graph of what that queued before:
 * launches and copies on the stream and its branches, and nothing else that is seen from outside.
 * Its status. */
enum status replay_run(struct replay *replay, struct replay_unit unit,
                       enum status (*queue)(void *context), void *context);

/* "61 launches in 7 CUDA graphs"; false if there are none. */
bool replay_describe(const struct replay *replay, char *ret_text, size_t text_size);

#endif
