/* Names the kinds of events, and the threads that they are of. */
#include "common/trace/trace_kinds.h"

#include <string.h>

const struct trace_kind_row trace_kinds[TRACE_KIND_COUNT] = {
    [TRACE_STEP] = {"step", "step", NULL},
    [TRACE_INPUT_WAIT] = {"input-wait", "wait for a batch", NULL},
    [TRACE_FORWARD] = {"forward", "forward", NULL},
    [TRACE_BACKWARD] = {"backward", "backward", NULL},
    [TRACE_LAYER_FORWARD] = {"layer-forward", "layer", NULL},
    [TRACE_LAYER_BACKWARD] = {"layer-backward", "layer", NULL},
    [TRACE_DELAY] = {"delay", "delay (--straggler)", NULL},
    [TRACE_READY] = {"ready", "ready", NULL},
    [TRACE_EXCHANGE] = {"exchange", "exchange", NULL},
    [TRACE_OPTIMIZER] = {"optimizer", "optimizer", NULL},
    [TRACE_AFTER_STEP] = {"after-step", "after the step", NULL},
    [TRACE_EVALUATION] = {"evaluation", "evaluation", NULL},
    [TRACE_POSTED] = {"posted", "post", NULL},
    [TRACE_SEND] = {"send", "send", NULL},
    [TRACE_RECEIVE] = {"receive", "receive", NULL},
    [TRACE_READ] = {"read", "read a batch", NULL},
    [TRACE_SHARD_RECEIVE] = {"shard", "receive", NULL},
    [TRACE_SUM] = {"sum", "sum", NULL},
    [TRACE_UPDATE] = {"update", "update", NULL},
    [TRACE_SUM_AND_UPDATE] = {"sum-and-update", "sum and update", NULL},
    [TRACE_CONTROL] = {"control", "receive", NULL},
    [TRACE_GPU_FORWARD] = {"gpu-forward", "forward", NULL},
    [TRACE_GPU_BACKWARD] = {"gpu-backward", "backward", NULL},
    [TRACE_GPU_UPDATE] = {"gpu-update", "update", NULL},
    [TRACE_GPU_COPY] = {"gpu-copy", "copy", NULL},
    [TRACE_GPU_SUM] = {"gpu-sum", "sum with other GPUs", NULL},
    [TRACE_IMAGES_PER_SECOND] = {"images-per-second", "images per second", "images/s"},
    [TRACE_STALENESS] = {"staleness", "staleness", "updates"},
    [TRACE_QUEUED] = {"queued", "queued bytes", "bytes"},
    [TRACE_THREAD_CPU] = {"thread-cpu", "CPU time of the thread", "s"},
    [TRACE_PROCESS_CPU] = {"process-cpu", "CPU time of the process", "s"},
};

const char *const trace_threads[TRACE_THREAD_COUNT] = {
    [TRACE_COMPUTE] = "compute",
    [TRACE_COMMUNICATION] = "communication",
    [TRACE_INPUT] = "input",
    [TRACE_SHARD] = "shard",
    [TRACE_COORDINATOR] = "coordinator",
    [TRACE_GPU_COMPUTE] = "GPU computing",
    [TRACE_GPU_BATCHES] = "GPU batches in",
    [TRACE_GPU_UP] = "GPU values in",
    [TRACE_GPU_DOWN] = "GPU gradients out",
};

bool trace_kind_find(const char *key, enum trace_kind *ret_kind)
{
    for (unsigned i = 0; i < TRACE_KIND_COUNT; i++) {
        if (strcmp(trace_kinds[i].key, key) == 0) {
            *ret_kind = (enum trace_kind)i;
            return true;
        }
    }
    return false;
}

bool trace_thread_find(const char *name, enum trace_thread *ret_thread)
{
    for (unsigned i = 0; i < TRACE_THREAD_COUNT; i++) {
        if (strcmp(trace_threads[i], name) == 0) {
            *ret_thread = (enum trace_thread)i;
            return true;
        }
    }
    return false;
}
