/* Adds up slices of the exchange. */
#include "deploy/calibrate/observed_exchange.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct steps {
    uint64_t first, end;
    uint64_t *least_ns; // (end - first) of the workers so far; UINT64_MAX: none
    uint64_t *own_ns;   // (end - first) of one worker
};

static bool is_message(const struct timeline_event *event, const char *name)
{
    return event->kind == TRACE_RECEIVE && event->message != NULL &&
           strcmp(event->message, name) == 0;
}

static void take_message(const struct timeline_event *event, double own_s,
                         struct observed_exchange *exchange)
{
    if (event->kind == TRACE_POSTED || is_message(event, "TAKEN")) {
        exchange->post_s += own_s;
    } else if (is_message(event, "PARAMS")) {
        exchange->params_s += own_s;
    }
}

/* A thread that computes: how long it was in the exchange, step by step. */
static void take_worker(const struct timeline *timeline, const struct timeline_thread *thread,
                        const uint64_t *own_ns, const struct steps *steps)
{
    uint64_t count = steps->end - steps->first;
    memset(steps->own_ns, 0, count * sizeof(*steps->own_ns));
    for (size_t i = thread->first; i < thread->first + thread->count; i++) {
        const struct timeline_event *event = &timeline->events[i];
        if (event->kind == TRACE_EXCHANGE && event->step >= steps->first &&
            event->step < steps->end) {
            steps->own_ns[event->step - steps->first] += own_ns[i];
        }
    }
    for (uint64_t step = 0; step < count; step++) {
        uint64_t own = steps->own_ns[step];
        steps->least_ns[step] = own < steps->least_ns[step] ? own : steps->least_ns[step];
    }
}

/* Whether any bucket is posted. */
static bool take_messages(const struct timeline *timeline, const uint64_t *own_ns,
                          const struct steps *steps, struct observed_exchange *exchange)
{
    bool posts = false;
    for (size_t i = 0; i < timeline->event_count; i++) {
        const struct timeline_event *event = &timeline->events[i];
        posts = posts || event->kind == TRACE_POSTED;
        if (event->step >= steps->first && event->step < steps->end) {
            take_message(event, 1e-9 * (double)own_ns[i], exchange);
        }
    }
    return posts;
}

static void take_all(const struct timeline *timeline, const uint64_t *own_ns,
                     const struct steps *steps, struct observed_exchange *exchange)
{
    uint64_t workers = 0, count = steps->end - steps->first;
    for (size_t i = 0; i < timeline->thread_count; i++) {
        if (timeline->threads[i].thread == TRACE_COMPUTE) {
            take_worker(timeline, &timeline->threads[i], own_ns, steps);
            workers++;
        }
    }
    exchange->worker_steps = workers * count;
    if (take_messages(timeline, own_ns, steps, exchange) || workers < 2) {
        return;
    }
    exchange->group_steps = count;
    for (uint64_t step = 0; step < count; step++) {
        exchange->group_s += 1e-9 * (double)steps->least_ns[step];
    }
}

enum status observed_exchange_make(const struct timeline *timeline, const uint64_t *own_ns,
                                   uint64_t first, uint64_t end,
                                   struct observed_exchange *ret_exchange)
{
    *ret_exchange = (struct observed_exchange){.group_s = 0};
    if (end <= first) {
        return STATUS_OK;
    }
    struct steps steps = {first, end, calloc(end - first, sizeof(uint64_t)),
                          calloc(end - first, sizeof(uint64_t))};
    bool is_there = steps.least_ns != NULL && steps.own_ns != NULL;
    if (is_there) {
        memset(steps.least_ns, 0xFF, (end - first) * sizeof(uint64_t));
        take_all(timeline, own_ns, &steps, ret_exchange);
    }
    free(steps.least_ns);
    free(steps.own_ns);
    return is_there ? STATUS_OK : STATUS_NO_MEMORY;
}
