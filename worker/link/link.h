/* The worker's communication thread: owns every socket, from joining to the end.
 *
 * The trainer's thread meets it at few places. Handshake, in this order:
 *
 *     link_create     starts the thread, which joins the job
 *     link_welcome    waits until it is welcomed: rank and job
 *     link_prepare    says that the model is built; waits until everybody is ready
 *
 * Then the trainer uses link_exchange, and reports through the link. In between, the thread moves
 * data messages into the exchange and keeps up the signs of life. */
#ifndef WORKER_LINK_LINK_H
#define WORKER_LINK_LINK_H

#include "common/base/status.h"
#include "common/channel/wire.h"
#include "common/job/job.h"
#include "common/security/security.h"
#include "common/service/notify.h"
#include "common/vector/layout.h"
#include "worker/exchange/exchange.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct link;

struct link_options {
    const char *coordinator; // endpoint
    const char *address;     // to listen on for other workers; "": as the coordinator is reached
    const char *port_range;  // to listen in; "": any port
    const struct security *security;
    bool has_rank;
    uint32_t rank;
    uint32_t join_timeout_ms;
    struct notify *notify; // is told of joining, and of the thread's going round; may be NULL
    const atomic_int *is_interrupted; // set by a signal: leave the job
};

/* What the worker has built. Borrowed until link_destroy. */
struct link_prepared {
    const struct layout *layout; // whose buckets link_bucket_bytes may have joined
    float *params, *grads;
    const struct region *region; // of grads, if neighbours of this host may map them; or NULL
    const char *params_digest;   // of the first parameters
    const char *device;
    uint64_t train_samples, test_samples;
    uint64_t data_digest; // of some of the samples
    uint64_t parameters;  // of the model, as its authors count them
};

/* Borrows what options point to. */
enum status link_create(const struct link_options *options, struct link **ret_link);

/* Ends the thread, after what is queued has been sent. NULL is fine. */
void link_destroy(struct link *link);

enum status link_welcome(struct link *link, struct job *ret_job, uint32_t *ret_rank);
enum status link_prepare(struct link *link, const struct link_prepared *prepared);

/* Of the phase. Valid after link_prepare, until link_pass or link_destroy. */
struct exchange *link_exchange(struct link *link);

/* What the buckets of the layout that was prepared are merged to in the phase: see layout_merge.
 * Valid as link_exchange is. */
uint64_t link_bucket_bytes(const struct link *link);

/* What a worker has of a phase that ends. */
struct link_passed {
    float *const *states; // (state_count) of the optimizer, that rank 0 gives to servers; borrowed
                          // until link_pass returns
    uint32_t state_count;
    uint64_t step_ns; // what a step took; 0: not measured
};

/* Ends a phase: waits until all workers have, and servers and neighbours are ready for the next
 * one. */
enum status link_pass(struct link *link, const struct link_passed *passed);

/* After the report that closed a period of a job with a target: waits until it is known whether the
 * job goes on. */
enum status link_await_decision(struct link *link, uint64_t period, bool *ret_is_enough);

/* Adds up `values` over all workers, in place: the same numbers on each, which all have to call it
 * as often. Waits. Where workers are in step. */
enum status link_sum(struct link *link, double *values, uint32_t count);

/* Bytes sent and received so far, headers included. */
void link_traffic(const struct link *link, uint64_t *ret_sent, uint64_t *ret_received);

/* Where this worker is: goes into its heartbeats. */
void link_set_step(struct link *link, uint64_t step);

/* Queue a message to the coordinator. Do not wait. */
void link_report(struct link *link, uint64_t step, const struct wire_report *report);
void link_done(struct link *link, uint64_t step, const struct wire_report *report,
               const char *params_digest);
void link_leave(struct link *link, enum status reason, const char *text); // at link_set_step

/* After link_done: waits for the coordinator's verdict. */
enum status link_verdict(struct link *link);

#endif
