/* The launcher's side of one agent: behind ssh or srun, or on this host. */
#ifndef DEPLOY_HOSTS_HOST_LINK_H
#define DEPLOY_HOSTS_HOST_LINK_H

#include "common/base/attention.h"
#include "common/base/status.h"
#include "common/options/options.h"
#include "deploy/agent/agent_message.h"
#include "deploy/hosts/allocation.h"
#include "deploy/hosts/hosts.h"
#include "deploy/system/interfaces.h"
#include "deploy/system/line_stream.h"
#include "deploy/system/poll_list.h"
#include "deploy/system/programs.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum host_link_state {
    HOST_LINK_CONNECTING, // no hello, yet
    HOST_LINK_UP,
    HOST_LINK_LOST, // why and advice are set
};

struct host_link_options {
    const char *ssh;                     // command
    const struct allocation *allocation; // whose nodes srun reaches; NULL: ssh reaches hosts
    const char *place;                   // of ringside on other hosts; "": see ssh_agent_script
    const char *lock;                    // of the folder that is written here; "": none
    double timeout;                      // seconds without a sign of life until the link is lost
};

/* What an agent has said of its host. */
struct host_facts {
    char version[32], host[65], host_id[20];
    uint32_t cores;
    char peer[64], own[64]; // of the connection that ssh or srun came over; "": none
    struct programs programs;
    struct interfaces interfaces;
};

struct host_link {
    char name[HOST_NAME_BYTES];
    const struct host_link_options *options; // borrowed
    bool is_local;
    enum host_link_state state;
    pid_t pid; // of ssh, srun, or the agent; 0: none
    struct line_reader reader, errors;
    struct line_writer writer;
    uint64_t opened_ms, heard_ms, pinged_ms, stepped_ms;
    struct attention attention;
    struct host_facts facts;       // where it is up
    bool has_clock;                // the two below are known
    int64_t clock_ahead_us;        // of the host against ours
    uint64_t round_us;             // of the message that measured it
    char said[OPTION_ERROR_BYTES]; // last line on standard error
    char why[OPTION_ERROR_BYTES], advice[OPTION_ERROR_BYTES];
};

/* A name of the host that we run on: neither ssh nor srun is needed. The allocation is NULL where
 * ssh reaches the others. */
bool host_link_is_here(const char *name, const struct allocation *allocation);

/* Starts ssh, srun, or the agent. What does not come about is a lost link. */
void host_link_open(struct host_link *link, const char *name,
                    const struct host_link_options *options);

/* Ends the agent's input, which ends it. */
void host_link_hang_up(struct host_link *link);

/* Ends the agent, and with it all that it has started; waits for that, but not for long. */
void host_link_close(struct host_link *link);

/* Queues. A lost link takes nothing. */
void host_link_say(struct host_link *link, const struct agent_message *message);

void host_link_add_polls(const struct host_link *link, struct poll_list *polls);

/* Reads, writes, pings. Answers are handed over; they are of `host`. */
void host_link_step(struct host_link *link, size_t host,
                    void (*handle)(void *context, size_t host, const struct agent_message *message),
                    void *context);

/* When host_link_step has something to do even if nothing comes. */
uint64_t host_link_deadline_ms(const struct host_link *link);

#endif
