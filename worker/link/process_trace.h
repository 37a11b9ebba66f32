/* What a worker process says of itself in its part of a timeline. */
#ifndef WORKER_LINK_PROCESS_TRACE_H
#define WORKER_LINK_PROCESS_TRACE_H

#include "common/job/job.h"
#include "common/trace/trace.h"

#include <stdint.h>

/* `number` is link_number. If the job has a timeline and the trace has no folder for its part,
 * warns, and says that `place` names one: an option, or a variable of the environment. */
void process_trace_describe(struct trace *trace, const struct job *job, uint32_t number,
                            const char *place);

#endif
