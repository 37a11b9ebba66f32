/* Connects a worker to its job by a communication thread, which owns every socket from joining to
 * the end.
 *
 * The trainer's thread meets it in few places. Handshake, in this order:
 *
 *     link_create     starts the thread, which joins the job
 *     link_welcome    waits until it is welcomed: which process it is, and the job
 *     link_prepare    says that the model is built; waits until everybody is ready
 *
 * Then the trainer uses link_exchange, and reports through the link. In between, the thread moves
 * data messages into the exchange and sends heartbeats. */
#ifndef WORKER_LINK_LINK_H
#define WORKER_LINK_LINK_H

#include "common/base/status.h"
#include "common/channel/wire.h"
#include "common/job/job.h"
#include "common/security/security.h"
#include "common/service/notify.h"
#include "common/trace/trace.h"
#include "common/vector/layout.h"
#include "worker/exchange/exchange.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct link;

struct link_options {
    const char *coordinator; // endpoint
    const char *address;     // to listen on for other workers; "": that towards the coordinator
    const char *port_range;  // to listen in; "": any port
    const struct security *security;
    bool has_rank;
    uint32_t rank;
    uint32_t launch; // which of a launcher's starts this process is (launch_number.h); 0: of none
    uint32_t join_timeout_ms;
    uint32_t outlast_ms;    // of a process that was in the job before: how long it waits if its
                            // coordinator is lost while it joins; 0: not
    uint64_t made_step;     // of such a process: link_steps at the end of the generation before
    uint32_t stall_warn_ms; // until there is a job, which has its own; 0: no warning
    struct notify *notify;  // is told of joining, and of the thread's going round; may be NULL
    const atomic_int *is_interrupted; // set by a signal: leave the job
    // Of a process that has no door (door.h): it listens at a Unix socket only if that has a name
    // that no other user finds.
    bool has_no_door;
};

/* What the worker has built. Borrowed until link_destroy. */
struct link_prepared {
    const struct layout *layout; // link_bucket_bytes says how its buckets are merged
    float *params, *grads;
    float *const *vectors;       // gradients of each rank that it carries, as exchange.h has it
    const struct region *region; // of all vectors, if neighbours of this host may map them; or NULL
    const struct sharing_device *device_memory; // has vectors and region; NULL: the host has
    const char *params_digest;                  // of the first parameters
    const char *device;
    uint64_t train_samples, test_samples;
    uint64_t data_digest;         // of some of the samples
    uint64_t parameters;          // of the model, as its authors count them
    const struct wire_nccl *nccl; // how others reach this one's GPU by NCCL; NULL: it is not used
    struct trace *trace;          // for a timeline; NULL: none
    const char *optimizer;        // of a program of its own, as job_text.h has it; NULL: the job's
    struct codec codec;           // that it says there; CODEC_NONE: the job's
    const struct optimizer_groups *groups; // likewise, of its parameters; borrowed; NULL: none
    uint64_t tensor_count;                 // of a program of its own; 0: not said
    const char *tensors;        // the first of them, as wire_parts.h has it; NULL: not said
    const struct span *watched; // (watched_count) of params, as exchange.h has it; borrowed
    uint32_t watched_count;
    uint64_t begin_step;  // steps made that a program of its own goes on from
    float *const *states; // (state_count) of the optimizer then, that rank 0 gives to servers
    uint32_t state_count; // 0: it begins
    const char *choices;  // of the device: how it computes; NULL: it has none
    const char *figures;  // M,M,M/D,D,D by which pixels are normalised; NULL or "": none
    const char *classes;  // names of the data's classes, a list in JSON; NULL: they have none
};

/* Borrows what options point to. */
enum status link_create(const struct link_options *options, struct link **ret_link);

/* Ends the thread after it has sent what is queued. NULL is fine. */
void link_destroy(struct link *link);

/* *ret_process: which of the job's worker processes this is (carriers.h). */
enum status link_welcome(struct link *link, struct job *ret_job, uint32_t *ret_process);

/* After that: of the job's processes, from 0. */
uint32_t link_generation(const struct link *link);

/* By which this process is known to the job, and joins later generations. */
uint32_t link_number(const struct link *link);

/* Between the two, where a device chooses how it computes. Rank 0 tells what its device has chosen,
 * before it is prepared; others may wait for that: "" if it has nothing to choose. Borrowed until
 * link_destroy. */
void link_tell_choices(struct link *link, const char *choices);
enum status link_await_choices(struct link *link, const char **ret_choices);

enum status link_prepare(struct link *link, const struct link_prepared *prepared);

/* Returns the exchange of the phase. It is valid after link_prepare, until link_pass or
 * link_destroy. */
struct exchange *link_exchange(struct link *link);

/* Returns the size to which the prepared layout's buckets are merged in the phase: see
 * layout_merge. Valid for as long as link_exchange. */
uint64_t link_bucket_bytes(const struct link *link);

/* What a worker has at the end of a phase. */
struct link_passed {
    float *const *states; // (state_count) of the optimizer, that rank 0 gives to servers; borrowed
                          // until link_pass returns
    uint32_t state_count;
    uint64_t step_ns; // what a step took; 0: not measured
};

/* Ends a phase: waits until all workers have, and servers and neighbours are ready for the next
 * one. */
enum status link_pass(struct link *link, const struct link_passed *passed);

/* Waits until it is known whether a job with a target accuracy continues. Call it after the report
 * that closed a period. */
enum status link_await_decision(struct link *link, uint64_t period, bool *ret_is_enough);

/* Adds up `values` over all ranks, in the order of ranks: (ranks that this process carries, count).
 * The sums replace the first rank's values, and are the same numbers on each worker. All workers
 * have to call it equally often. Waits. For workers that are in step. */
enum status link_sum(struct link *link, double *values, uint32_t count);

/* Bytes sent and received so far, with headers. */
void link_traffic(const struct link *link, uint64_t *ret_sent, uint64_t *ret_received);

/* A program can go on from what it has after so many steps. A sum has to follow: every worker waits
 * for it where it has committed. */
void link_commit(struct link *link, uint64_t step);

/* After STATUS_AGAIN: whether that is for the sake of newcomers, behind a commit of all. */
bool link_has_grown(struct link *link);

/* Sets the step that this worker's heartbeats say. */
void link_set_step(struct link *link, uint64_t step);
uint64_t link_steps(const struct link *link); // that was set last

/* Queue a message to the coordinator. Do not wait. A report is of one rank that is carried here. */
void link_report(struct link *link, uint32_t rank, uint64_t step, const struct wire_report *report);
void link_done(struct link *link, uint64_t step, const struct wire_report *report,
               const char *params_digest);
void link_leave(struct link *link, enum status reason, const char *text); // at link_set_step

/* After link_done: waits for the coordinator's verdict. */
enum status link_verdict(struct link *link);

/* Whether the job is over for this worker. */
bool link_is_over(struct link *link);

/* What the coordinator has said about the end of the job, once it is over for this worker; "" if it
 * has said nothing. Borrowed until link_destroy. */
const char *link_reason(struct link *link);

#endif
