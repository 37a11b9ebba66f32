/* Records when the layers of a pass ran, for a timeline, within the pass's own slice: of devices
 * that compute on this thread. Operations without parameters belong to the layer before them; what
 * comes before the first layer belongs to that. */
#ifndef WORKER_TRAIN_LAYER_TIMES_H
#define WORKER_TRAIN_LAYER_TIMES_H

#include "common/trace/trace.h"
#include "worker/model/model.h"

/* Zeroed: records nothing. Stays where it is while a pass goes on. */
struct layer_times {
    struct trace_tape *tape;           // borrowed; NULL: nothing is recorded
    const char *names[DEVICE_OPS_MAX]; // of each operation's layer, texts of the trace
    struct op_watch watch;
    struct trace_tag pass;       // what goes on
    const char *layer;           // that runs, or ran last; NULL: none yet
    uint64_t begin_ns, ended_ns; // of it
};

/* Names the layers. `tape` is that of the thread that computes; NULL is fine. */
void layer_times_open(struct layer_times *times, struct trace *trace, struct trace_tape *tape,
                      const struct model *model);

/* Around a pass: TRACE_LAYER_FORWARD, or TRACE_LAYER_BACKWARD of a bucket. One branch each where
 * nothing is recorded. */
void layer_times_begin(struct layer_times *times, struct model *model, enum trace_kind kind,
                       uint32_t bucket, uint64_t step);
void layer_times_end(struct layer_times *times, struct model *model);

#endif
