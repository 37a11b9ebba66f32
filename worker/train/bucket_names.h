/* What the buckets of a model are called in a timeline. */
#ifndef WORKER_TRAIN_BUCKET_NAMES_H
#define WORKER_TRAIN_BUCKET_NAMES_H

#include "common/trace/trace.h"
#include "worker/model/model.h"

struct bucket_names {
    const char *layers[LAYOUT_BUCKETS_MAX]; // of the trace; NULL: nothing is recorded
};

/* Joins the model's buckets (model_merge_buckets), and names them anew. */
void bucket_names_cut(struct bucket_names *names, struct trace *trace, struct model *model,
                      uint64_t bucket_bytes);

#endif
