/* Estimates what a worker process will take. */
#include "worker/train/memory_use.h"

#include "common/job/carriers.h"
#include "common/job/job_modes.h"
#include "common/service/job_memory.h"
#include "common/transport/endpoints.h"

#include <stdbool.h>
#include <sys/resource.h>

// Connections and their threads, as measured.
#define LINK_BYTES (UINT64_C(8) << 20)

/* What compressed gradients take: each rank has errors that are left, and a code; and what has come
 * is decoded, from a code to values. */
static uint64_t code_bytes(const struct job *job, uint64_t value_bytes)
{
    uint64_t codes = carriers_most(job_carriers(job)) + 1;
    uint64_t of_each = value_bytes + value_bytes / sizeof(float) * CODEC_VALUE_BYTES_MAX;
    return job->compress.kind != CODEC_NONE ? codes * of_each : 0;
}

uint64_t memory_use_of_worker(const struct job *job, uint64_t value_bytes)
{
    struct rusage used;
    uint64_t bytes = getrusage(RUSAGE_SELF, &used) == 0 ? (uint64_t)used.ru_maxrss * 1024 : 0;
    if (bytes == 0) {
        return 0;
    }
    bytes += LINK_BYTES;
    if (job->mode.kind == MODE_LOCAL) {
        return bytes;
    }
    bool has_share = job_may_redeal(job) && job_has_mode(job, MODE_RING); // of a copy
    uint64_t share = job_memory_of_copy(job, value_bytes) / job_carriers(job).processes;
    uint64_t messages = endpoints_may_share(job->transport) ? 0 : value_bytes; // on their way
    return bytes + messages + code_bytes(job, value_bytes) + (has_share ? share : 0);
}
