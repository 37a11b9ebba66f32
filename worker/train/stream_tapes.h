/* Records what the streams of a GPU do on tapes of their own, for a timeline. The thread that
 * computes writes them: it asks the device, after each step, what is over. */
#ifndef WORKER_TRAIN_STREAM_TAPES_H
#define WORKER_TRAIN_STREAM_TAPES_H

#include "common/trace/trace.h"
#include "worker/model/model.h"

/* Zeroed: records nothing. */
struct stream_tapes {
    struct trace_tape *tapes[DEVICE_STREAM_COUNT]; // borrowed; NULL, all: nothing is recorded
};

/* Opens no tapes where the device has no streams, or there is no timeline. Logs. */
enum status stream_tapes_open(struct stream_tapes *streams, struct trace *trace,
                              const struct model *model, uint32_t number,
                              const struct trace_window *window);

/* Around a step of the job. What streams do between two steps belongs to the first. */
void stream_tapes_begin_step(const struct stream_tapes *streams, struct model *model,
                             uint64_t step);
enum status stream_tapes_end_step(const struct stream_tapes *streams, struct model *model);

#endif
