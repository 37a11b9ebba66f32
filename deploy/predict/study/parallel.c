/* Shares out items among threads: each takes the next one that nobody has begun. */
#include "deploy/predict/study/parallel.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

struct parallel {
    pthread_mutex_t mutex;
    size_t next, count;                               // guarded by mutex
    enum status status;                               // likewise: of the first that failed
    enum status (*make)(void *context, size_t index); // these two stay as they are
    void *context;
};

static bool take(struct parallel *parallel, size_t *ret_index)
{
    pthread_mutex_lock(&parallel->mutex);
    bool is_there = parallel->next < parallel->count && parallel->status == STATUS_OK;
    *ret_index = parallel->next;
    parallel->next += is_there;
    pthread_mutex_unlock(&parallel->mutex);
    return is_there;
}

static void *work(void *argument)
{
    struct parallel *parallel = argument;
    for (size_t index; take(parallel, &index);) {
        enum status status = parallel->make(parallel->context, index);
        pthread_mutex_lock(&parallel->mutex);
        parallel->status = parallel->status == STATUS_OK ? status : parallel->status;
        pthread_mutex_unlock(&parallel->mutex);
    }
    return NULL;
}

enum status parallel_run(size_t count, uint32_t threads,
                         enum status (*make)(void *context, size_t index), void *context)
{
    pthread_t others[PARALLEL_THREADS_MAX];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = threads > 0 ? threads : cores > 0 ? (size_t)cores : 1, started = 0;
    struct parallel parallel = {.count = count, .make = make, .context = context};
    wanted = wanted < PARALLEL_THREADS_MAX ? wanted : PARALLEL_THREADS_MAX;
    wanted = wanted < count ? wanted : count;
    pthread_mutex_init(&parallel.mutex, NULL);
    // This thread is one of them. Where no other can be started, it does what they would have.
    while (started + 1 < wanted && pthread_create(&others[started], NULL, work, &parallel) == 0) {
        started++;
    }
    work(&parallel);
    for (size_t i = 0; i < started; i++) {
        pthread_join(others[i], NULL);
    }
    pthread_mutex_destroy(&parallel.mutex);
    return parallel.status;
}
