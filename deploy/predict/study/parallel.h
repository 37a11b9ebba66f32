/* Predictions that do not depend on each other, by several threads. */
#ifndef DEPLOY_PREDICT_STUDY_PARALLEL_H
#define DEPLOY_PREDICT_STUDY_PARALLEL_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define PARALLEL_THREADS_MAX 256

/* Makes all items, each by a call of `make` from any thread, in any order, with at most so many
 * threads; 0: one for each core. Where one fails, those that have not begun are left out, and its
 * status is returned. */
enum status parallel_run(size_t count, uint32_t threads,
                         enum status (*make)(void *context, size_t index), void *context);

#endif
