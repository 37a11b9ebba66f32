/* Which engine a device takes for each convolution, and who has chosen it: the first that says.
 *
 *     given     somebody else's choices: those of the job's rank 0, so that all compute alike
 *     kept      of an earlier job on this GPU: see plan_cache.h
 *     timed     the fastest of the engines that the library puts first, if that was asked for
 *     proposed  the engine that the library puts first
 *
 * Choices are text, a line each: a question (a convolution's pass and its shapes, but not how many
 * samples), " = ", and an engine of the library with its settings, or "none". What is asked again
 * on the device, if for another number of samples, gets the answer of before.
 *
 * Times differ from run to run, and so may the choice, and with it the bits: nothing is timed where
 * nothing can be kept. */
#ifndef WORKER_DEVICE_CUDA_DNN_DNN_CHOICES_H
#define WORKER_DEVICE_CUDA_DNN_DNN_CHOICES_H

#include "worker/device/cuda/dnn/dnn_engines.h"

#include <stdbool.h>
#include <stdint.h>

struct dnn_choices {
    uint64_t timing_ms_max; // in all; then what is proposed is taken. 0: nothing is timed
    char *given;            // lines; owned; NULL: nobody has given any
    char *made;             // (DEVICE_CHOICES_BYTES) lines; owned; NULL: none yet
    bool is_overfull;       // there were more
    uint64_t spent_ms;      // on timing
    uint64_t told_ms;       // of those, when the last line was written about it
    uint32_t timed_count;
    uint32_t missed_count;   // given ones that were not to be had
    uint32_t compiled_count; // plans that the library has compiled
};

/* What was chosen on the device so far; "" if that is nothing, or more than there is room for. */
const char *dnn_choices_text(const struct dnn_choices *choices);

/* Takes up the choices of somebody else, for what is asked from here on. Copies. */
enum status dnn_choices_give(struct dnn_choices *choices, const char *text);

/* The `turn`-th choice for a question, own ones first; false if there are not so many. An engine's
 * text is "" for none. */
bool dnn_choices_find(const struct dnn_choices *choices, const char *question, uint32_t turn,
                      struct dnn_engine *ret_engine);

/* Notes an own choice, unless the question has that one already. NULL: none. */
void dnn_choices_note(struct dnn_choices *choices, const char *question,
                      const struct dnn_engine *engine);

void dnn_choices_finish(struct dnn_choices *choices);

#endif
