/* The state that the two sides of a link share: link.c (the trainer's thread) and
 * communication.c. */
#ifndef WORKER_LINK_LINK_STATE_H
#define WORKER_LINK_LINK_STATE_H

#include "common/channel/fetch.h"
#include "common/channel/member.h"
#include "common/channel/snapshot.h"
#include "common/job/phases.h"
#include "common/transport/endpoints.h"
#include "worker/link/absence.h"
#include "worker/link/group_memory.h"
#include "worker/link/link.h"
#include "worker/link/neighbours.h"
#include "worker/link/outbox.h"
#include "worker/link/probe.h"

#include <pthread.h>
#include <stdatomic.h>

enum link_phase {
    LINK_JOINING,  // the thread: waits for the welcome
    LINK_WELCOMED, // the trainer: builds its model
    LINK_PREPARED, // the thread: says ready, waits for the start
    LINK_RUNNING,  // both
    LINK_ENDED,    // the thread is over; `ending` says why
};

/* See link_checkpoint.h. */
struct link_checkpoint {
    _Atomic uint64_t announced; // the step that the coordinator has named
    struct snapshot *snapshot;  // offered, and the thread's; NULL: there is none
    bool is_fetching;           // the trainer waits for `fetch`, which is the thread's
    struct fetch fetch;
    enum status fetch_status; // how it has ended
};

struct link {
    struct link_options options;
    struct channel *channel;
    pthread_t thread;
    bool has_thread;

    // The thread's own.
    struct member member;
    char host[256];
    char place[ENDPOINTS_PLACE_BYTES];
    struct neighbours neighbours;
    struct departures *departures; // of those who connect to this worker; of the transport
    struct group_memory group_memory;
    struct probe probe;
    struct absence absence;  // of the coordinator
    struct wire_start start; // of the phase, or of the one that begins
    bool is_connecting;      // a phase begins: the coordinator's next word is awaited
    uint64_t running_ms;     // since when the generation trains; 0: it does not yet
    uint64_t resent_rounds;  // sums before this one were told again, to a new coordinator
    enum status map_refusal; // why the others' memory could not be mapped, if that was tried

    // Set by one side before the phase that lets the other read it.
    struct job job;
    uint32_t process; // this one, of the job's worker processes
    uint32_t number;  // that it has joined by, in later generations
    struct carriers carriers;
    struct rank_block ranks; // that it carries
    struct link_prepared prepared;
    char choices[WIRE_CHOICES_BYTES]; // of the device: the own ones on rank 0, else those of rank 0
    bool has_choices;                 // they have come
    struct phases phases;
    uint32_t phase_index; // the current phase of the job, or the next one
    float *const *states; // of the optimizer, for servers of that phase
    uint32_t state_count;
    struct exchange *exchange;
    struct wire_nccl nccl;       // what START says of where workers meet, if it does
    uint64_t bucket_bytes;       // of the phase
    const struct layout *layout; // the same; one of layouts
    struct layout layouts[2];    // the other one may belong to an exchange that still exists

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum link_phase phase;
    enum status ending;
    bool is_closing;                    // link_destroy: leave when the outbox is empty
    uint32_t ready[LAYOUT_BUCKETS_MAX]; // buckets, from ready_head, ready_count of them
    uint32_t ready_head, ready_count;
    struct outbox outbox;
    uint64_t decided_count; // periods for which the coordinator has said whether to continue
    bool is_enough;         // it has said that the job need not continue
    double *sum; // (sum_count) the sum that the trainer waits for; NULL: it waits for none
    uint32_t sum_count;
    uint64_t sum_round; // how many sums came before
    _Atomic uint64_t step;
    struct link_checkpoint checkpoint;
};

/* What JOIN says of this process. Borrows from the link. */
struct wire_member link_describe(const struct link *link);

/* The communication thread's function; data is the link. */
void *communication_run(void *data);

#endif
