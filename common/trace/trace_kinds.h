/* What a timeline can hold: a row for each kind of event. Pure. */
#ifndef COMMON_TRACE_TRACE_KINDS_H
#define COMMON_TRACE_TRACE_KINDS_H

#include <stdbool.h>

enum trace_kind {
    // The thread that computes.
    TRACE_STEP,
    TRACE_INPUT_WAIT, // for a batch
    TRACE_FORWARD,    // of a slice, to its loss
    TRACE_BACKWARD,   // of a bucket
    TRACE_LAYER_FORWARD,
    TRACE_LAYER_BACKWARD, // a layer's part of those
    TRACE_DELAY,          // of --straggler
    TRACE_READY,          // instant: a bucket's gradients are handed to the exchange
    TRACE_EXCHANGE,       // in the exchange: waits, and sums that this thread takes itself
    TRACE_OPTIMIZER,      // update of a bucket
    TRACE_AFTER_STEP,     // reports, and evaluation within
    TRACE_EVALUATION,     // of a slice's part of the test set
    // The thread that communicates.
    TRACE_POSTED,  // sends a bucket that is ready
    TRACE_SEND,    // a message
    TRACE_RECEIVE, // a message is handled
    // The thread that reads batches.
    TRACE_READ, // a batch
    // A shard.
    TRACE_SHARD_RECEIVE,  // a message is handled: held, summed, applied, answered
    TRACE_SUM,            // of a gradient into others, for an update that comes later
    TRACE_UPDATE,         // of parameters
    TRACE_SUM_AND_UPDATE, // of both at once, block by block
    // The coordinator.
    TRACE_CONTROL, // a message is handled
    // The streams of a GPU.
    TRACE_GPU_FORWARD,
    TRACE_GPU_BACKWARD, // of a bucket, or of all
    TRACE_GPU_UPDATE,
    TRACE_GPU_COPY, // between host and GPU
    TRACE_GPU_SUM,  // with other GPUs: waits, and sums
    // Numbers over time.
    TRACE_IMAGES_PER_SECOND,
    TRACE_STALENESS,
    TRACE_QUEUED,      // values that wait for their turn to be sent
    TRACE_THREAD_CPU,  // how long cores have worked for the thread
    TRACE_PROCESS_CPU, // and for all threads of its process
    TRACE_KIND_COUNT
};

struct trace_kind_row {
    const char *key;  // as the file has it, in the place of a category
    const char *name; // that people see
    const char *unit; // of a counter; NULL: it is none
};

extern const struct trace_kind_row trace_kinds[TRACE_KIND_COUNT];

/* False if no kind has that key. */
bool trace_kind_find(const char *key, enum trace_kind *ret_kind);

/* The threads of a process that record, and the streams of its GPU. */
enum trace_thread {
    TRACE_COMPUTE,
    TRACE_COMMUNICATION,
    TRACE_INPUT,
    TRACE_SHARD,
    TRACE_COORDINATOR,
    TRACE_GPU_COMPUTE,
    TRACE_GPU_BATCHES,
    TRACE_GPU_UP,
    TRACE_GPU_DOWN,
    TRACE_THREAD_COUNT
};

/* "compute", "communication", ... */
extern const char *const trace_threads[TRACE_THREAD_COUNT];
bool trace_thread_find(const char *name, enum trace_thread *ret_thread);

#endif
