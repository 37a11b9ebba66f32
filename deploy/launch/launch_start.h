/* The state of a running job, and the start of its processes. For files of this folder. */
#ifndef DEPLOY_LAUNCH_LAUNCH_START_H
#define DEPLOY_LAUNCH_LAUNCH_START_H

#include "common/base/attention.h"
#include "common/transport/transport.h"
#include "deploy/hosts/placement.h"
#include "deploy/launch/handover.h"
#include "deploy/launch/launch.h"
#include "deploy/launch/launch_mirror.h"
#include "deploy/launch/members.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A running job. Member 0 is the coordinator, then come the other servers, then the workers. */
struct launch {
    struct launcher *launcher;
    const struct launch_options *options;
    struct job job; // as it is tried this time
    struct placement placement;
    struct members members;
    struct handover handover;     // of keys
    bool is_private;              // nobody listens at a port
    char folder[LAUNCH_PATH_MAX]; // that the coordinator writes, on its host
    struct launch_mirror mirror;
    char **timelines; // (timeline_count), owned: where members of each host write their parts of a
                      // timeline, on that host; NULL: not known yet, or there is none
    size_t timeline_count; // hosts
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    uint64_t deadline_ms;                    // when all that still runs is killed; 0: not set
    uint64_t ending_ms;                      // since when the coordinator ends; 0: it does not
    unsigned interrupts;                     // that have been taken
    uint32_t restarts;                       // that were made
    uint32_t recent_restarts;                // of those, one soon after the other
    uint64_t restarted_ms;                   // when the last one was
    uint32_t replacements;                   // workers started for joins of --fault
    uint32_t attempts;                       // of the job as a whole, before this one
    uint32_t returns;                        // of its coordinator, in this one
    bool has_begun;                          // to train, in this one
    bool is_returning;                       // the coordinator: members come back to it
    bool is_ending;                          // the coordinator has said so: nobody can join it
    bool is_recorded;                        // and that its run folder is complete
    char restart_reason[OPTION_ERROR_BYTES]; // of the last of these
    char why_ended[64];                      // why the coordinator was killed here; "": it was not
    struct attention attention;              // to its signs of life
    uint64_t old_summary;                    // see last_summary_stamp

    uint32_t told; // lines that this coordinator was told: of ends, and of why the job ends

    // Why the job ends, as the coordinator was told. "": not known here.
    char cause[OPTION_ERROR_BYTES];
    bool is_certain;              // no later event can be a better reason
    const struct member *culprit; // the member that the cause is about; NULL: none
};

/* Whether the host is not the launcher's own. */
bool launch_is_remote(const struct launch *launch, size_t host);

/* Start a process. One that cannot be started is logged, and becomes the cause. */
enum status launch_start_coordinator(struct launch *launch);
enum status launch_start_server(struct launch *launch, uint32_t index);
enum status launch_start_worker(struct launch *launch, uint32_t rank);

#endif
