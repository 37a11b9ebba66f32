/* Starts threads, does a share itself, and waits for them. */
#include "worker/data/helpers.h"

#include <pthread.h>
#include <signal.h>

void helpers_run(void *(*work)(void *context), void *context, uint64_t wanted)
{
    pthread_t helpers[HELPERS_MAX];
    uint32_t started = 0;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started + 1 < wanted && started < HELPERS_MAX &&
           pthread_create(&helpers[started], NULL, work, context) == 0) {
        started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    work(context);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(helpers[i], NULL);
    }
}
