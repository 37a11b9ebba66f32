/* Runs the coordinator's process: the loop of control messages around `struct coordinator`, the run
 * folder, the progress on standard output, and shard 0 in a thread of its own. */
#ifndef PS_SERVER_SERVER_H
#define PS_SERVER_SERVER_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "common/security/security.h"
#include "common/service/health.h"
#include "common/service/notify.h"
#include "common/trace/trace.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct server_options {
    struct job *job;                 // resolved
    bool is_local;                   // listens on an ipc endpoint; otherwise by tcp:
    const char *address;             // to listen on
    uint32_t port;                   // 0: any free one
    const char *port_range;          // of all sockets; "": any
    struct trace *trace;             // borrowed; of the process, for a timeline; NULL: none
    const struct security *security; // borrowed
    const char *keys;                // file of its keys; "": none
    const char *folder;              // run folder; "" for none
    const char *resume;              // folder with the checkpoint to go on from; "": none
    bool goes_on;                    // from the run folder's newest checkpoint, if it has one
    const char *mirror;              // folder of its mirror; NULL or "": none
    const char *run;                 // number of the run, for that, by a launcher; NULL or "": none
    const char *restarted;           // why a launcher has started the job again; "": it has not
    const char *given_fault;         // if so: --fault with what has struck; NULL or "": as it is
    const char *program;             // command line of a program of its own; "": not known
    const char *listen_at;           // a Unix socket's endpoint; NULL or "": where it chooses
    int listen_fd;                   // that listens there already; -1: none
    int announce_fd;                 // where to write the endpoint; -1: nowhere
    int launcher_fd;                 // pipe from the launcher: see launcher_news.h; -1: none
    bool shows_progress;
    bool has_tensorboard;  // writes event files of TensorBoard's to the run folder
    struct health *health; // that serves measurements of the job; may be NULL
    const char *dashboard; // where the live page is served; "": nowhere
    bool shows_ranks;      // on a terminal, a line for each rank
    struct notify *notify; // is told that the server listens and its loop goes round; may be NULL
    const atomic_int *is_interrupted; // set by a signal
};

/* Returns when the job is over: STATUS_OK if it was completed, STATUS_INTERRUPTED after a signal.
 * Logs. */
enum status server_run(const struct server_options *options);

#endif
