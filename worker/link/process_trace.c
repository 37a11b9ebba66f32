/* Describes a worker process for its part of a timeline. */
#include "worker/link/process_trace.h"

#include "common/base/log.h"
#include "common/job/job_modes.h"
#include "common/transport/transport.h"

#include <unistd.h>

void process_trace_describe(struct trace *trace, const struct job *job, uint32_t number,
                            const char *place)
{
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    if (job->timeline && !trace_has_folder(trace)) {
        log_warn("the job has a timeline, and this process has no part of it: %s says where that "
                 "would go",
                 place);
    }
    trace_describe(trace, &(struct trace_process){.role = "worker",
                                                  .number = number,
                                                  .host = host,
                                                  .host_id = transport_host_id(),
                                                  .is_unsynchronised = job_is_unsynchronised(job)});
}
