/* Holds the launcher's side of one agent: behind ssh or srun, or on this host. */
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
    HOST_LINK_CONNECTING, // no hello yet
    HOST_LINK_UP,
    HOST_LINK_LOST, // why and advice are set
};

struct host_link_options {
    const char *ssh;                     // command
    const struct allocation *allocation; // whose nodes srun reaches; NULL: ssh reaches hosts
    const char *place; // path of ringside on other hosts; "": see ssh_agent_script
    const char *lock;  // lock file of the folder that is written here; "": none
    double timeout;    // seconds without a sign of life until the link is lost
};

/* What an agent has said about its host. */
struct host_facts {
    char version[32], host[65], host_id[20];
    uint32_t cores;
    char peer[64], own[64]; // addresses of the connection that ssh or srun used; "": none
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
    struct host_facts facts;       // valid while the link is up
    bool has_clock;                // the two below are known
    int64_t clock_ahead_us;        // the host's clock minus this host's
    uint64_t round_us;             // round trip of the message that measured it
    char said[OPTION_ERROR_BYTES]; // last line on standard error
    char why[OPTION_ERROR_BYTES], advice[OPTION_ERROR_BYTES];
};

/* Whether the name is that of the launcher's own host, which needs neither ssh nor srun. The
 * allocation is NULL if ssh reaches the other hosts. */
bool host_link_is_here(const char *name, const struct allocation *allocation);

/* Starts ssh, srun, or the agent. If that fails, the link is lost. */
void host_link_open(struct host_link *link, const char *name,
                    const struct host_link_options *options);

/* Ends the agent's input, which ends it. */
void host_link_hang_up(struct host_link *link);

/* Ends the agent with all that it has started. Waits for that, but not for long. */
void host_link_close(struct host_link *link);

/* Queues the message. A lost link drops it. */
void host_link_say(struct host_link *link, const struct agent_message *message);

void host_link_add_polls(const struct host_link *link, struct poll_list *polls);

/* Reads, writes, pings. Passes the agent's answers to `handle`, with `host`. */
void host_link_step(struct host_link *link, size_t host,
                    void (*handle)(void *context, size_t host, const struct agent_message *message),
                    void *context);

/* Returns when host_link_step has something to do even if nothing comes. */
uint64_t host_link_deadline_ms(const struct host_link *link);

#endif
