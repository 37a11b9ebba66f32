/* Runs one shard: joins the job as a server, listens for workers, feeds the shard.
 *
 * Every shard is a member like a worker is, the one inside the coordinator's process too; it has a
 * thread (or, beyond shard 0, a process) of its own, so that control messages never wait for sums.
 */
#ifndef PS_SERVER_SHARD_SHARD_SERVICE_H
#define PS_SERVER_SHARD_SHARD_SERVICE_H

#include "common/base/status.h"
#include "common/security/security.h"
#include "common/service/notify.h"
#include "common/trace/trace.h"
#include "ps-server/shard/kept_shard.h"

#include <stdatomic.h>
#include <stdint.h>

struct shard_service_options {
    const char *coordinator;         // endpoint
    const char *address;             // to listen on
    const char *port_range;          // "": any port
    const struct security *security; // borrowed
    uint32_t number; // by which it joins: of its shard, as long as the job has lost no server
    uint32_t launch; // which of a launcher's starts its process is (launch_number.h); 0: of none
    uint32_t join_timeout_ms;
    uint32_t outlast_ms; // of one that was in the job before: how long it waits if the coordinator
                         // is lost while it joins; 0: not
    uint32_t stall_warn_ms; // until there is a job; 0: no warning
    struct trace *trace;    // borrowed; of the process, for a timeline; NULL: none
    struct notify *notify;  // is told of joining, and of the loop's going round; may be NULL
    const atomic_int *is_interrupted; // set by a signal: leave
    struct kept_shard *kept; // of its shards, from one generation to the next: set by this module
};

/* Until the job is over. STATUS_OK if it was completed. Logs. */
enum status shard_service_run(const struct shard_service_options *options);

#endif
