/* A job whose gradients race goes on in place after a loss: its servers keep what they have, and
 * nobody goes back to a copy. Pure; time is an argument.
 *
 * Where no order says which gradient comes when, the parameters are those of no step, and any
 * moment is as good as that of a copy. So if all servers are still there when the next generation
 * is due (a worker was lost, one has come, a connection was closed), the coordinator, which is
 * RENEWING, asks each of them to keep its shard as it is (SNAPSHOT with the reason AGAIN). Each
 * answers how many gradients it has had. The next generation begins at the step S whose N S
 * gradients of N ranks all of them have; WELCOME says so, and that it begins in place. A shard that
 * has more passes over as many of the next ones. So each shard has as many as in an undisturbed
 * job, each applied once, and comes to the end of an epoch with the same pushes as the others.
 *
 * Of what a worker alone has, the statistics of batch normalization stay with the process that has
 * carried the rank (worker/train/kept_statistics.h); a process that is new to a rank gets those of
 * the last copy. Errors of compressed gradients would be added twice or never, so jobs with
 * --compress go on from a copy.
 *
 * Each worker reports each period, with the result of its part of the test set. Nobody has the
 * parameters of that mark any more. So a period that some workers have not reported is closed with
 * what the others have reported, and its evaluation is one of fewer images. It is made again
 * instead, and the generation begins a step before its end, if that end is the step S, if nobody
 * has reported the period, or if its evaluation decides whether the target accuracy was reached. */
#ifndef PS_SERVER_COORDINATOR_IN_PLACE_H
#define PS_SERVER_COORDINATOR_IN_PLACE_H

#include "common/channel/wire.h"

#include <stdbool.h>
#include <stdint.h>

struct coordinator;
struct sender;

/* What servers have answered. Zeroed: they were not asked. */
struct in_place {
    bool is_asked;
    uint64_t asked_ms;
    uint32_t unanswered;      // servers
    uint64_t least_gradients; // since the job began; 0: a server has kept nothing
};

/* While the coordinator is RENEWING, before it calls members back: asks all servers, once. */
void in_place_ask(struct coordinator *coordinator, uint64_t now_ms);

/* Whether an answer is still to be waited for. */
bool in_place_awaits(const struct coordinator *coordinator, uint64_t now_ms);

/* SNAPSHOT with the reason AGAIN of a server. */
void in_place_take(struct coordinator *coordinator, const struct sender *from,
                   const struct message *message);

/* The step at which the next generation begins in place; 0: it begins at a copy, and why is said.
 */
uint64_t in_place_step(const struct coordinator *coordinator);

/* Closes periods that some workers have not reported, and tells of them (port.period_closed); then
 * fills checkpointing.collected and counted as a checkpoint of that step would have them. The
 * coordinator's generation is over. */
void in_place_describe(struct coordinator *coordinator, uint64_t step);

#endif
