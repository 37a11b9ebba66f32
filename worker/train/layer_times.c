/* Watches the operations of a program, and writes their layers on a tape. */
#include "worker/train/layer_times.h"

#define NAME_BYTES 64 // as a timeline's texts have

void layer_times_open(struct layer_times *times, struct trace *trace, struct trace_tape *tape,
                      const struct model *model)
{
    char text[NAME_BYTES];
    *times = (struct layer_times){.tape = trace_is_recording(tape) ? tape : NULL};
    for (uint32_t i = 0; times->tape != NULL && i < model_op_count(model); i++) {
        model_name_layer(model, i, text, sizeof(text));
        times->names[i] = trace_keep(trace, text);
    }
}

/* Records the layer that ran last. A pass that failed within it has no end of it. */
static void close_layer(struct layer_times *times)
{
    if (times->layer != NULL && times->ended_ns > times->begin_ns) {
        times->pass.layers = times->layer;
        trace_record(times->tape, times->begin_ns, times->ended_ns, &times->pass);
    }
    times->layer = NULL;
}

/* Operations of one layer follow each other, and have the same text. */
static void note(void *context, uint32_t op, bool is_begin)
{
    struct layer_times *times = context;
    uint64_t now_ns = clock_now_ns();
    if (!is_begin) {
        times->ended_ns = now_ns;
    } else if (times->names[op] != times->layer) {
        close_layer(times);
        times->layer = times->names[op];
        times->begin_ns = now_ns;
    }
}

void layer_times_begin(struct layer_times *times, struct model *model, enum trace_kind kind,
                       uint32_t bucket, uint64_t step)
{
    if (!trace_records_step(times->tape, step)) {
        return;
    }
    times->pass = (struct trace_tag){.kind = kind, .bucket = bucket, .step = step};
    times->watch = (struct op_watch){.note = note, .context = times};
    model_watch(model, &times->watch);
}

void layer_times_end(struct layer_times *times, struct model *model)
{
    if (times->tape != NULL) {
        close_layer(times);
        model_watch(model, NULL);
    }
}
