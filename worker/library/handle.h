/* The handle of libringside, and how a public call begins and ends. */
#ifndef WORKER_LIBRARY_HANDLE_H
#define WORKER_LIBRARY_HANDLE_H

#include "common/job/job.h"
#include "common/job/job_text.h"
#include "common/optimizer/optimizer.h"
#include "common/security/security.h"
#include "common/vector/layout.h"
#include "worker/collective/team.h"
#include "worker/disturb/faulting.h"
#include "worker/disturb/straggling.h"
#include "worker/library/ringside.h"
#include "worker/library/timeline.h"
#include "worker/link/flat_vectors.h"
#include "worker/link/link.h"
#include "worker/link/rank.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define HANDLE_TENSORS_MAX (1 << 20)

/* Bits, so that a call can name all in which it may be made. */
enum handle_state {
    HANDLE_JOINED = 1,
    HANDLE_DESCRIBED = 2,
    HANDLE_BETWEEN = 4,    // two steps, or before the first
    HANDLE_FORWARD = 8,    // begin_step was
    HANDLE_GRADIENTS = 16, // begin_gradients was
    HANDLE_ENDED = 32,     // the job has had its steps
    HANDLE_BROKEN = 64,    // the job has failed for this process
};

struct handle_tensor {
    char *name; // owned
    struct span span;
    uint32_t bucket;
    uint64_t ready_step; // that it was ready in, from 1; 0: none yet
};

struct ringside {
    pthread_mutex_t turn; // of the call that is made
    enum handle_state state;
    enum ringside_status broken; // what every call returns once it is HANDLE_BROKEN

    struct security_options security_options;
    struct security security;
    char server[256], bind[128], port_range[64];
    struct link_options joins_by; // borrows from the handle
    struct link *link;
    struct timeline timeline;
    struct straggling straggling;
    struct faulting faulting;
    struct team *team;   // the processes, if they share memory; NULL: they do not, or have not met
    uint32_t *all_ranks; // (job.workers) owned; once they have met
    bool has_met;
    bool has_no_model;     // the program makes collectives alone
    uint64_t calls;        // collectives and messages before the start
    struct job job, asked; // with and without what the program says of its optimizer
    uint32_t rank;
    enum rank_launcher launcher; // whose variables count
    char mode[32];

    struct handle_tensor *tensors; // (tensor_count), owned
    struct span *spans;            // (tensor_count) theirs, owned
    uint32_t tensor_count;
    char tensor_list[WIRE_TENSORS_BYTES]; // the first of them, as the others hear of them
    struct layout layout;
    struct flat_vectors vectors;
    struct exchange *exchange;   // the link's
    struct optimizer *optimizer; // where the exchange delivers gradients; NULL elsewhere
    struct schedule schedule;
    char told[JOB_OPTIMIZER_TEXT_BYTES]; // what the others hear of the optimizer: see job_text.h
    char told_all[JOB_OPTIMIZER_TEXT_BYTES]; // and of compression
    struct codec codec;                      // by ringside_set_compression; CODEC_NONE: the job's
    double said_rate;                        // by ringside_set_optimizer; 0: none
    struct handle_groups *groups;            // owned; see groups.h
    bool makes_updates;                      // the program does: ringside_keep_gradients
    bool keeps_vectors;                      // they outlive the handle

    uint64_t begin_step;  // that this generation of the job's processes began with
    uint64_t commit_step; // steps that were made when the program last committed
    // (value_count) states of the job's optimizer then, and for the commit that is under way: see
    // committed.h. Owned; NULL: none.
    float *kept[OPTIMIZER_STATES_MAX], *drawn[OPTIMIZER_STATES_MAX];
    bool has_drawn;
    uint64_t step;                          // that is made, or comes next
    bool is_pending;                        // the last step's parameters may still be on their way
    uint64_t update_step;                   // the step whose update is made
    double update_rate;                     // its learning rate
    double first_rate;                      // that of its first group
    uint32_t waits_for[LAYOUT_BUCKETS_MAX]; // tensors of each bucket that are not ready
    uint32_t next_bucket;                   // that goes next: they go in their order

    uint64_t began_ns, step_began_ns, wait_ns, wire_ns;
    uint64_t step_wait_ns; // of wait_ns, in this step
    double staleness, staleness_sum;
    struct wire_report interval, period;   // since the last interval, and the last evaluation
    struct wire_report kept_period;        // the latter at the last commit
    uint64_t images, total_ns;             // of all periods
    uint64_t sent_before, received_before; // the interval
};

/* Begins a call: waits for its turn. If the handle is in none of `states`, says so and returns why;
 * then the call is over. */
enum ringside_status handle_enter(struct ringside *ringside, unsigned states, const char *call);

/* Ends it with the status of the job, which breaks the handle unless it is STATUS_OK. */
enum ringside_status handle_exit(struct ringside *ringside, enum status status);

/* Ends it with a refusal that leaves the handle as it was. */
__attribute__((format(printf, 3, 4))) enum ringside_status
handle_refuse(struct ringside *ringside, enum ringside_status status, const char *format, ...);

/* What the sentence of the next failure is, if nothing is logged. */
__attribute__((format(printf, 1, 2))) void handle_say(const char *format, ...);

/* The sentence is what the coordinator has said about the end of the job, or what was logged, or
 * the status's own text. `link` may be NULL: there is no job. */
enum ringside_status handle_fail(struct link *link, enum status status);

/* From here on hears what is logged, and forgets what was before. `log_level` as in
 * ringside_options. */
void handle_listen(uint32_t log_level);

/* Joins the job, or its next generation, by ringside->joins_by: the handle has the job and the
 * rank. Logs. */
enum status handle_join(struct ringside *ringside);

/* One handle at a time: false if there is one. */
bool handle_claim(void);
void handle_unclaim(void);

/* Whether servers make the updates: the exchange delivers parameters. */
bool handle_servers_update(const struct ringside *ringside);

/* Before the start: chooses which optimizer the others hear of, where the program has not said.
 * Logs, and leaves the job, if the job's options allow none. */
enum status handle_choose_optimizer(struct ringside *ringside);

/* Waits for what is left of the last step: its parameters, which may still be on their way. */
enum status handle_settle(struct ringside *ringside);

/* The same before a call that all make, where other processes may never come to that step. */
enum status handle_settle_together(struct ringside *ringside);

/* At a commit: reports the steps before it, and ends an evaluation. */
void handle_report_commit(struct ringside *ringside);

/* Before the gradients of a step: reports the steps before it, if it is time, or if one of them was
 * followed by an evaluation. Nothing more is reported of the last one. */
void handle_report_step(struct ringside *ringside);

#endif
