/* Estimates what a worker process will take. */
#include "worker/train/memory_use.h"

#include "common/job/carriers.h"
#include "common/job/job_modes.h"
#include "common/optimizer/optimizer.h"
#include "common/transport/endpoints.h"

#include <stdbool.h>
#include <sys/resource.h>

uint64_t memory_use_of_copy(const struct job *job, uint64_t value_bytes)
{
    return value_bytes * (1 + optimizer_states_of(job->optimizer));
}

uint64_t memory_use_of_worker(const struct job *job, uint64_t value_bytes)
{
    struct rusage used;
    uint64_t bytes = getrusage(RUSAGE_SELF, &used) == 0 ? (uint64_t)used.ru_maxrss * 1024 : 0;
    if (job->mode.kind == MODE_LOCAL || bytes == 0) {
        return bytes;
    }
    bool has_share = job_may_redeal(job) && job_has_mode(job, MODE_RING); // of a copy
    uint64_t share = memory_use_of_copy(job, value_bytes) / job_carriers(job).processes;
    uint64_t messages = endpoints_may_share(job->transport) ? 0 : value_bytes; // on their way
    return bytes + messages + (has_share ? share : 0);
}
