/* How the processes of a job make a call together: in memory that they share, or by the
 * coordinator's sums where they do not. */
#ifndef WORKER_LIBRARY_TOGETHER_H
#define WORKER_LIBRARY_TOGETHER_H

#include "worker/collective/call.h"
#include "worker/library/handle.h"

/* Shares memory with the other processes at the first call, if they can: all are on this host, and
 * --transport allows it. ringside->team is NULL afterwards if they cannot. All processes call it.
 * Waits. */
enum status together_meet(struct ringside *ringside);

/* Ends a call that did not succeed: the sentence says why, and the job ends with it. Returns what
 * handle_exit is to be given. */
enum status together_fail(struct ringside *ringside, const struct call_options *call,
                          uint64_t bytes, enum status status, const struct team_fault *fault);

/* Says to the others, before this process waits for them in another way, where it is. */
void together_say(struct ringside *ringside, enum team_presence presence);
void together_say_steps(struct ringside *ringside, uint64_t given, uint64_t needed);

/* sums.c: calls of all processes by the coordinator. `all`: (size, own_bytes), of which each has
 * filled its own part. Bytes travel as sums, too: four of them are a number that a double holds
 * exactly, and all ranks but one give zeros. */
enum status sums_gather(struct ringside *ringside, void *all, size_t own_bytes);

/* Whether all make the same call: STATUS_MISMATCH, and *ret_fault says who does not. */
enum status sums_check(struct ringside *ringside, const struct call_options *call, uint64_t bytes,
                       struct team_fault *ret_fault);
enum status sums_broadcast(struct ringside *ringside, void *bytes, size_t size, uint32_t root);
enum status sums_all_reduce(struct ringside *ringside, const struct call_values *values);

#endif
