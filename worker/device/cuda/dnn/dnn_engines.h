/* Engines of the library: which it proposes for a convolution, and the plan of one. Tests have
 * engines of their own in the place of dnn_engines.c. */
#ifndef WORKER_DEVICE_CUDA_DNN_DNN_ENGINES_H
#define WORKER_DEVICE_CUDA_DNN_DNN_ENGINES_H

#include "worker/device/cuda/dnn/dnn.h"

#include <stdbool.h>
#include <stdint.h>

#define DNN_ENGINE_BYTES  256
#define DNN_PROPOSALS_MAX 128
#define DNN_FAILURE_BYTES 256

/* An engine and its settings, as text: its number, and each knob's type and value ("47 2=1 5=0").
 */
struct dnn_engine {
    char text[DNN_ENGINE_BYTES];
};

/* Which of the library's lists. */
enum dnn_lists {
    DNN_LIST_BEST,      // what it expects to be fast, by its first heuristics
    DNN_LISTS_BEST,     // by both of its heuristics, in turn
    DNN_LIST_FALLBACKS, // what runs
};

/* What became of the library's proposals. */
struct dnn_proposals {
    struct dnn_engine list[DNN_PROPOSALS_MAX]; // the best first, none twice
    uint32_t count;
    int64_t proposed, refused;       // by the library; by us, for their numerical notes
    char failure[DNN_FAILURE_BYTES]; // the first that the library met, here or in a plan; "": none
};

/* In the place of the list those that keep to the target; what was counted before stays. */
void dnn_propose(const struct dnn_target *target, const struct dnn_conv *conv, enum dnn_pass pass,
                 enum dnn_lists lists, struct dnn_proposals *proposals);

/* The plan of an engine, which may have been kept. False if the library does not make it, and why,
 * unless `failure` has something already. */
bool dnn_plan_engine(const struct dnn_target *target, const struct dnn_conv *conv,
                     enum dnn_pass pass, const struct dnn_engine *engine, struct dnn_plan *ret_plan,
                     char failure[DNN_FAILURE_BYTES]);

/* Keeps a plan that was chosen, for dnn_plan_engine in later jobs. */
void dnn_keep_plan(const struct dnn_target *target, const struct dnn_conv *conv, enum dnn_pass pass,
                   const struct dnn_engine *engine, const struct dnn_plan *plan);

#endif
