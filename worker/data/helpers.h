/* Work that several threads share: each takes the next part until there is none. */
#ifndef WORKER_DATA_HELPERS_H
#define WORKER_DATA_HELPERS_H

#include <stdint.h>

#define HELPERS_MAX 64

/* Calls work(context) in this thread and in others, as many as `wanted` says altogether, but no
 * more than HELPERS_MAX besides this one, and returns when all have. Where a thread cannot be
 * started there are fewer. Signals stay with the threads of the program. */
void helpers_run(void *(*work)(void *context), void *context, uint64_t wanted);

#endif
