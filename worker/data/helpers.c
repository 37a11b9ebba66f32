/* Starts threads, does a share itself, and waits for them. */
#include "worker/data/helpers.h"

#include <signal.h>

bool helpers_start(pthread_t *ret_thread, void *(*work)(void *context), void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(ret_thread, NULL, work, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0;
}

void helpers_run(void *(*work)(void *context), void *context, uint64_t wanted)
{
    pthread_t helpers[HELPERS_MAX];
    uint32_t started = 0;
    while (started + 1 < wanted && started < HELPERS_MAX &&
           helpers_start(&helpers[started], work, context)) {
        started++;
    }
    work(context);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(helpers[i], NULL);
    }
}
