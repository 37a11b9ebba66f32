/* Machines whose threads have a core each for a slice at a time (cores.h), for `cores`. */
#ifndef DEPLOY_PREDICT_ENGINE_CORE_SLICES_H
#define DEPLOY_PREDICT_ENGINE_CORE_SLICES_H

#include "common/base/status.h"
#include "deploy/predict/engine/cores.h"

#include <stdint.h>

struct machine;

/* Gives machines the list of who has each core, which `cores` frees. Not where a thread
 * that computes stands for several: these share cores evenly. */
enum status core_slices_allocate(struct cores *cores, uint32_t processes);

/* A runner that had nothing to do has got work: gives it a core, or lets it wait, once time is
 * about to go on. It keeps the core that it has until then if the work takes no time. */
void core_slices_begin(struct cores *cores, struct machine *machine, uint32_t index, double now);

/* Ends what ends next on a machine: the slice of a core's holder, or its work. */
struct cores_work core_slices_end_next(struct cores *cores, struct machine *machine, double now);

/* Time is about to go on. */
void core_slices_settle(struct cores *cores);

#endif
