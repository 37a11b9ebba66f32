/* Streams, events and waits. */
#include "tests/worker/device/cuda_fake/stream.h"

#include "tests/worker/device/cuda_fake/capture.h"
#include "tests/worker/device/cuda_fake/runtime.h"

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
    void *argument;              // owned
    uint64_t cost_ns;
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
    uint64_t clock_ns;        // likewise
    _Atomic uint64_t ended;   // tasks; read by who asks whether all are
    bool is_lazy, is_idle;
    uint64_t launches_left; // until one fails, from which on every wait does; 0: none will
    bool has_failed;
    struct fake_capture *capture; // borrowed; of who queues
};

/* What has been recorded is known to the host alone, what has been reached is under the mutex. */
struct CUevent_st {
    uint64_t recorded; // how often
    cudaStream_t stream;
    uint64_t ticket;       // of the last record, in that stream
    struct fake_mark mark; // where that was
    bool has_time;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t reached;  // the latest record that its stream has come to
    uint64_t clock_ns; // that the stream had there
};

/* One record of an event, as whoever waits for it has found it. */
struct moment {
    cudaEvent_t event;
    uint64_t record;
    cudaStream_t stream;
    uint64_t ticket;
    cudaStream_t waiter; // NULL: the host
};

static struct task *create_task(const struct fake_task *from)
{
    struct task *task = calloc(1, sizeof(*task));
    void *argument = malloc(from->argument_bytes + 1);
    if (task == NULL || argument == NULL) {
        abort();
    }
    memcpy(argument, from->argument, from->argument_bytes);
    task->run = from->run;
    task->argument = argument;
    task->cost_ns = from->cost_ns;
    return task;
}

/* Runs nothing. */
static struct task *create_end(void)
{
    return create_task(&(struct fake_task){.argument = ""});
}

static void destroy_task(struct task *task)
{
    free(task->argument);
    free(task);
}

static void *run_stream(void *context)
{
    cudaStream_t stream = context;
    for (;;) {
        while (sem_wait(&stream->allowed) != 0) {
        }
        struct task *task = stream->done->next;
        destroy_task(stream->done);
        stream->done = task;
        if (task->run == NULL) {
            destroy_task(task);
            return NULL;
        }
        stream->clock_ns += task->cost_ns;
        task->run(task->argument);
        atomic_fetch_add(&stream->ended, 1);
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

static _Atomic uint64_t queued, handed_over; // of all streams

uint64_t fake_stream_queued(void)
{
    return atomic_load(&queued);
}

uint64_t fake_stream_handed_over(void)
{
    return atomic_load(&handed_over);
}

void fake_stream_hand_over(void)
{
    atomic_fetch_add(&handed_over, 1);
}

void fake_stream_replay(cudaStream_t stream, const struct fake_task *task)
{
    atomic_fetch_add(&queued, 1);
    if (!stream->is_idle) {
        queue(stream, create_task(task));
    }
}

cudaError_t fake_stream_queue(cudaStream_t stream, const struct fake_task *task)
{
    if (stream->capture != NULL) {
        return fake_capture_add(stream, task);
    }
    fake_stream_hand_over();
    fake_stream_replay(stream, task);
    return cudaSuccess;
}

cudaError_t fake_stream_launch_task(cudaStream_t stream, const struct fake_task *task)
{
    if (stream->launches_left > 0 && --stream->launches_left == 0) {
        stream->has_failed = true;
    }
    return fake_stream_queue(stream, task);
}

cudaError_t fake_stream_launch(cudaStream_t stream, void (*run)(void *argument),
                               const void *argument, size_t argument_bytes)
{
    const struct fake_task task = {run, argument, argument_bytes, FAKE_LAUNCH_NS};
    return fake_stream_launch_task(stream, &task);
}

struct fake_capture *fake_stream_capture(cudaStream_t stream)
{
    return stream->capture;
}

void fake_stream_set_capture(cudaStream_t stream, struct fake_capture *capture)
{
    stream->capture = capture;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret_stream, unsigned int flags)
{
    const char *mode = getenv("FAKE_CUDA");
    cudaStream_t stream = calloc(1, sizeof(*stream));
    assert(flags == cudaStreamNonBlocking && stream != NULL);
    stream->done = stream->last = create_end();
    stream->is_idle = mode != NULL && strstr(mode, "idle") != NULL;
    const char *faulty = mode != NULL ? strstr(mode, "faulty=") : NULL;
    stream->launches_left = faulty != NULL ? strtoul(faulty + strlen("faulty="), NULL, 10) : 0;
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
    fake_capture_leave(stream);
    uint64_t ticket = queue(stream, create_end());
    demand(stream, ticket);
    pthread_join(stream->thread, NULL);
    sem_destroy(&stream->allowed);
    if (stream->has_failed) {
        (void)cudaGetLastError(); // the fault goes with it: the next test has a sound device
    }
    free(stream);
    return cudaSuccess;
}

static void reach(void *context)
{
    const struct moment *moment = context;
    pthread_mutex_lock(&moment->event->mutex);
    moment->event->reached = moment->record;
    moment->event->clock_ns = moment->stream->clock_ns;
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
    uint64_t clock_ns = moment->event->clock_ns;
    pthread_mutex_unlock(&moment->event->mutex);
    if (moment->waiter != NULL && moment->waiter->clock_ns < clock_ns) {
        moment->waiter->clock_ns = clock_ns;
    }
}

/* On the thread that queues. */
static void queue_moment(cudaStream_t stream, void (*run)(void *context), cudaEvent_t event)
{
    const struct moment moment = {event, event->recorded, event->stream, event->ticket, stream};
    queue(stream, create_task(&(struct fake_task){run, &moment, sizeof(moment), 0}));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret_event, unsigned int flags)
{
    cudaEvent_t event = calloc(1, sizeof(*event));
    assert(event != NULL);
    event->has_time = (flags & cudaEventDisableTiming) == 0;
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
    event->mark = fake_capture_record(stream);
    if (event->mark.capture > 0) {
        return cudaSuccess;
    }
    event->recorded++;
    event->stream = stream;
    event->ticket = stream->tickets + 1;
    queue_moment(stream, reach, event);
    return cudaSuccess;
}

/* Like CUDA's: an event that was never recorded keeps nobody waiting. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    assert(flags == 0);
    if (stream->capture != NULL || event->mark.capture > 0) {
        return fake_capture_wait(stream, event->mark);
    }
    if (event->recorded > 0) {
        queue_moment(stream, await, event);
    }
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    cudaError_t error = fake_capture_forbid();
    if (error == cudaSuccess && event->recorded > 0) {
        struct moment moment = {event, event->recorded, event->stream, event->ticket, NULL};
        await(&moment);
        error = event->stream->has_failed ? fake_fail(cudaErrorIllegalAddress) : cudaSuccess;
    }
    return error;
}

static bool is_reached(cudaEvent_t event, uint64_t *ret_clock_ns)
{
    pthread_mutex_lock(&event->mutex);
    bool is_reached = event->reached == event->recorded;
    *ret_clock_ns = event->clock_ns;
    pthread_mutex_unlock(&event->mutex);
    return is_reached;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    uint64_t clock_ns;
    cudaError_t error = fake_capture_forbid();
    if (error != cudaSuccess) {
        return error;
    }
    return is_reached(event, &clock_ns) ? cudaSuccess : fake_fail(cudaErrorNotReady);
}

cudaError_t cudaEventElapsedTime(float *ret_ms, cudaEvent_t begin, cudaEvent_t end)
{
    uint64_t begin_ns, end_ns;
    cudaError_t error = fake_capture_forbid();
    if (error != cudaSuccess) {
        return error;
    }
    if (!begin->has_time || !end->has_time || begin->recorded == 0 || end->recorded == 0) {
        return fake_fail(cudaErrorInvalidResourceHandle);
    }
    if (!is_reached(begin, &begin_ns) || !is_reached(end, &end_ns)) {
        return fake_fail(cudaErrorNotReady);
    }
    *ret_ms = (float)(((double)end_ns - (double)begin_ns) / 1e6); // an end may be earlier
    return cudaSuccess;
}

/* Whoever asks will ask again: a lazy stream goes on. */
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    cudaError_t error = fake_capture_forbid();
    if (error != cudaSuccess) {
        return error;
    }
    demand(stream, stream->tickets);
    if (atomic_load(&stream->ended) < stream->tickets) {
        return fake_fail(cudaErrorNotReady);
    }
    return stream->has_failed ? fake_fail(cudaErrorIllegalAddress) : cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    cudaEvent_t event;
    cudaError_t error = fake_capture_forbid();
    if (error != cudaSuccess) {
        return error;
    }
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaEventRecord(event, stream);
    cudaEventSynchronize(event);
    cudaEventDestroy(event);
    return stream->has_failed ? fake_fail(cudaErrorIllegalAddress) : cudaSuccess;
}
