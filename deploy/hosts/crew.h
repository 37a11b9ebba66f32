/* Keeps the agents of a job's hosts, and waits for all of them at once. */
#ifndef DEPLOY_HOSTS_CREW_H
#define DEPLOY_HOSTS_CREW_H

#include "common/base/status.h"
#include "deploy/hosts/host_link.h"
#include "deploy/hosts/hosts.h"

#include <stddef.h>
#include <stdint.h>

struct crew {
    struct host_link *links; // (count), owned
    size_t count;
    int signal_fd;
    unsigned interrupts; // how many signals of process_ending_signals have come
    int last_signal;     // of them
    uint32_t next_id;    // for processes: it tells which one a late message is about
    struct poll_list polls;

    /* Handles what the agents say, within crew_step. */
    void (*handle)(void *context, size_t host, const struct agent_message *message);
    void *context;
};

/* Starts an agent on every host, and waits until each has said hello or is lost. Call
 * launch_block_signals first. Borrows options. STATUS_INTERRUPTED after a signal. Logs. */
enum status crew_open(struct crew *crew, const struct hosts *hosts,
                      const struct host_link_options *options);

/* Starts lost agents again, and waits for them. */
enum status crew_reopen(struct crew *crew);

/* Ends the agents, with all that they have started. A zeroed crew has none. */
void crew_close(struct crew *crew);

/* Chooses who handles what the agents say from now on. */
void crew_listen(struct crew *crew,
                 void (*handle)(void *context, size_t host, const struct agent_message *message),
                 void *context);

/* Reserves `count` ids that no process has had, and returns the first. */
uint32_t crew_take_ids(struct crew *crew, size_t count);

void crew_say(struct crew *crew, size_t host, const struct agent_message *message);

/* Waits until something happens, or until deadline_ms on this host's clock (UINT64_MAX: no
 * deadline). */
void crew_step(struct crew *crew, uint64_t deadline_ms);

#endif
