/* Rounds: a round is what one exchange is for. It is one step, or --sync-every steps of local SGD.
 *
 * A round may end before its parameters have arrived: it is then *pending*, and the next forward
 * pass awaits each bucket when an operation is about to read it. */
#ifndef WORKER_TRAIN_ROUND_H
#define WORKER_TRAIN_ROUND_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct trainer;

/* Waits until parameters are there, where a round begins and none is pending. */
enum status round_settle(struct trainer *trainer);

/* Parameters that forward is about to read, of a pending round; for program_input, whose context is
 * the trainer. */
enum status round_await_params(void *context, uint64_t offset, uint64_t count);

/* Ends the pending round, and begins the next where one begins: gradients may be overwritten. */
enum status round_pass(struct trainer *trainer);

/* The gradients of `count` buckets from `first` on are there: updates the worker's own parameters
 * with local SGD, and hands the buckets to the exchange if the round ends with this step. */
void round_buckets_ready(struct trainer *trainer, uint32_t first, uint32_t count, uint64_t step);

/* Between buckets of a step that has all of its backward queued on a device which makes updates:
 * gives it the means that have come by now. Does not wait. */
enum status round_take_ready(struct trainer *trainer, uint64_t step);

/* The gradients of all buckets are there. Ends the round, if it ends with this step, but for what
 * of it the next forward pass can await. */
enum status round_step_done(struct trainer *trainer, uint64_t step);

/* Waits for the parameters of the last step, if they may still be on their way. */
enum status round_end_pending(struct trainer *trainer);

#endif
