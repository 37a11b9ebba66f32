/* What the two sides of a link share: link.c (the trainer's thread) and communication.c. */
#ifndef WORKER_LINK_LINK_STATE_H
#define WORKER_LINK_LINK_STATE_H

#include "common/channel/member.h"
#include "common/job/phases.h"
#include "common/transport/endpoints.h"
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
    struct group_memory group_memory;
    struct probe probe;
    enum status map_refusal; // why the memory of others cannot be mapped, if it was tried

    // Set by one side before the phase that lets the other read it.
    struct job job;
    uint32_t rank;
    struct link_prepared prepared;
    struct phases phases;
    uint32_t phase_index; // of the job's phases: the one that is, or comes next
    float *const *states; // of the optimizer, for servers of that phase
    uint32_t state_count;
    struct exchange *exchange;
    uint64_t bucket_bytes;       // of the phase
    const struct layout *layout; // the same; one of layouts
    struct layout layouts[2];    // the other one may be of an exchange that is still there

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum link_phase phase;
    enum status ending;
    bool is_closing;                    // link_destroy: leave when the outbox is empty
    uint32_t ready[LAYOUT_BUCKETS_MAX]; // buckets, from ready_head, ready_count of them
    uint32_t ready_head, ready_count;
    struct outbox outbox;
    uint64_t decided_count; // periods of which the coordinator has said whether to go on
    bool is_enough;         // it has said no
    double *sum;            // (sum_count) that the trainer waits for; NULL: it does not
    uint32_t sum_count;
    uint64_t sum_round; // how many were before
    _Atomic uint64_t step;
};

/* The communication thread; data is the link. */
void *communication_run(void *data);

#endif
