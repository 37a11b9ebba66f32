/* Streams, events and waits. */
#include "tests/worker/device/cuda_fake/stream.h"

#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct task {
    void (*run)(void *argument); // NULL: the stream ends
    void *argument;
    void *owned; // freed after it, or NULL
    struct task *next;
};

/* One thread queues, one runs. Tickets count tasks from 1. */
struct CUstream_st {
    pthread_t thread;
    sem_t allowed;            // posted once for each task that may run
    _Atomic uint64_t demands; // how often that was
    struct task *last;        // of the queue; of who queues
    uint64_t tickets;         // likewise
    struct task *done;        // the task before the next one; of the thread
    bool is_lazy;
};

/* What has been recorded is known to the host alone, what has been reached is under the mutex. */
struct CUevent_st {
    uint64_t recorded; // how often
    cudaStream_t stream;
    uint64_t ticket; // of the last record, in that stream
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t reached; // the latest record that its stream has come to
};

/* One record of an event, as whoever waits for it has found it. */
struct moment {
    cudaEvent_t event;
    uint64_t record;
    cudaStream_t stream;
    uint64_t ticket;
};

static struct task *create_task(void (*run)(void *), void *argument, void *owned)
{
    struct task *task = calloc(1, sizeof(*task));
    if (task == NULL) {
        abort();
    }
    task->run = run;
    task->argument = argument;
    task->owned = owned;
    return task;
}

static void *run_stream(void *context)
{
    cudaStream_t stream = context;
    for (;;) {
        while (sem_wait(&stream->allowed) != 0) {
        }
        struct task *task = stream->done->next;
        free(stream->done);
        stream->done = task;
        if (task->run == NULL) {
            free(task);
            return NULL;
        }
        task->run(task->argument);
        free(task->owned);
    }
}

/* Lets the stream run up to a ticket. */
static void demand(cudaStream_t stream, uint64_t ticket)
{
    uint64_t demands = atomic_load(&stream->demands);
    while (demands < ticket) {
        if (atomic_compare_exchange_weak(&stream->demands, &demands, demands + 1)) {
            sem_post(&stream->allowed);
        }
    }
}

static uint64_t queue(cudaStream_t stream, struct task *task)
{
    stream->last->next = task;
    stream->last = task;
    uint64_t ticket = ++stream->tickets;
    if (!stream->is_lazy) {
        demand(stream, ticket);
    }
    return ticket;
}

void fake_stream_queue(cudaStream_t stream, void (*run)(void *argument), void *argument)
{
    queue(stream, create_task(run, argument, NULL));
}

void fake_stream_queue_copy(cudaStream_t stream, void (*run)(void *argument), const void *argument,
                            size_t size)
{
    void *copy = malloc(size);
    if (copy == NULL) {
        abort();
    }
    memcpy(copy, argument, size);
    queue(stream, create_task(run, copy, copy));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret_stream, unsigned int flags)
{
    const char *mode = getenv("RINGSIDE_FAKE_CUDA");
    cudaStream_t stream = calloc(1, sizeof(*stream));
    assert(flags == cudaStreamNonBlocking && stream != NULL);
    stream->done = stream->last = create_task(NULL, NULL, NULL);
    stream->is_lazy = mode != NULL && strstr(mode, "lazy") != NULL;
    if (sem_init(&stream->allowed, 0, 0) != 0 ||
        pthread_create(&stream->thread, NULL, run_stream, stream) != 0) {
        abort();
    }
    *ret_stream = stream;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    uint64_t ticket = queue(stream, create_task(NULL, NULL, NULL));
    demand(stream, ticket);
    pthread_join(stream->thread, NULL);
    sem_destroy(&stream->allowed);
    free(stream);
    return cudaSuccess;
}

static void reach(void *context)
{
    const struct moment *moment = context;
    pthread_mutex_lock(&moment->event->mutex);
    moment->event->reached = moment->record;
    pthread_cond_broadcast(&moment->event->changed);
    pthread_mutex_unlock(&moment->event->mutex);
}

static void await(void *context)
{
    const struct moment *moment = context;
    demand(moment->stream, moment->ticket);
    pthread_mutex_lock(&moment->event->mutex);
    while (moment->event->reached < moment->record) {
        pthread_cond_wait(&moment->event->changed, &moment->event->mutex);
    }
    pthread_mutex_unlock(&moment->event->mutex);
}

static struct moment moment_of(cudaEvent_t event)
{
    return (struct moment){event, event->recorded, event->stream, event->ticket};
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret_event, unsigned int flags)
{
    cudaEvent_t event = calloc(1, sizeof(*event));
    assert((flags & cudaEventDisableTiming) != 0 && event != NULL);
    pthread_mutex_init(&event->mutex, NULL);
    pthread_cond_init(&event->changed, NULL);
    *ret_event = event;
    return cudaSuccess;
}

/* Its streams are done with it, or the sanitizers will tell. */
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    pthread_cond_destroy(&event->changed);
    pthread_mutex_destroy(&event->mutex);
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    event->recorded++;
    event->stream = stream;
    event->ticket = stream->tickets + 1;
    const struct moment moment = moment_of(event);
    fake_stream_queue_copy(stream, reach, &moment, sizeof(moment));
    return cudaSuccess;
}

/* Like CUDA's: an event that was never recorded keeps nobody waiting. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    const struct moment moment = moment_of(event);
    assert(flags == 0);
    if (moment.record > 0) {
        fake_stream_queue_copy(stream, await, &moment, sizeof(moment));
    }
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    struct moment moment = moment_of(event);
    if (moment.record > 0) {
        await(&moment);
    }
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    cudaEvent_t event;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaEventRecord(event, stream);
    cudaEventSynchronize(event);
    return cudaEventDestroy(event);
}
