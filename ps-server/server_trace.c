/* The coordinator's part in a timeline: what its loop records, and its clock, which members ask
 * for. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/job/job_modes.h"
#include "ps-server/server_state.h"

#include <unistd.h>

enum status server_open_trace(struct server *server)
{
    const struct trace_window window = job_timeline(&server->job);
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    trace_describe(server->options->trace,
                   &(struct trace_process){
                       .role = "ps",
                       .host = host,
                       .host_id = transport_host_id(),
                       .is_coordinator = true,
                       .is_unsynchronised = job_is_unsynchronised(&server->job),
                   });
    return trace_open_tape(server->job.timeline ? server->options->trace : NULL, TRACE_COORDINATOR,
                           0, &window, &server->channel->trace);
}

void server_tell_clock(struct server *server, uint64_t peer, const struct message *message)
{
    const struct wire_clock clock = {message->clock->asked_ns, clock_now_ns()};
    const struct message answer = {.kind = MESSAGE_HEARTBEAT, .clock = &clock};
    if (server->channel->trace == NULL || message->job_id != server->channel->job_id) {
        return;
    }
    if (channel_send(server->channel, peer, &answer, NULL, NULL) != STATUS_OK) {
        log_debug("cannot send HEARTBEAT: the peer is gone");
    }
}
