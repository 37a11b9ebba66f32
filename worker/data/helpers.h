/* Work that several threads share: each takes the next part until there is none. */
#ifndef WORKER_DATA_HELPERS_H
#define WORKER_DATA_HELPERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define HELPERS_MAX 64

/* Starts a thread, which the caller joins. Signals stay with the threads of the program. False: it
 * cannot be started. */
bool helpers_start(pthread_t *ret_thread, void *(*work)(void *context), void *context);

/* Calls work(context) in this thread and in others, as many as `wanted` says altogether, but no
 * more than HELPERS_MAX besides this one, and returns when all have. Where a thread cannot be
 * started there are fewer. */
void helpers_run(void *(*work)(void *context), void *context, uint64_t wanted);

#endif
