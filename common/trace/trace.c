/* Keeps the lanes of a process, and records in them. */
#include "common/trace/trace.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/trace/trace_file.h"
#include "common/trace/trace_state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Of a message's number: the sender's part is above these bits.
#define FLOW_COUNTER_BITS 24

enum status trace_create(const char *folder, struct trace **ret_trace)
{
    struct trace *trace = calloc(1, sizeof(*trace));
    if (trace == NULL) {
        return STATUS_NO_MEMORY;
    }
    snprintf(trace->folder, sizeof(trace->folder), "%s", folder);
    pthread_mutex_init(&trace->mutex, NULL);
    *ret_trace = trace;
    return STATUS_OK;
}

static void destroy_lane(struct trace_lane *lane)
{
    memory_destroy_large(lane->events, TRACE_EVENTS_MAX * sizeof(*lane->events));
    free(lane->pings);
    free(lane);
}

void trace_destroy(struct trace *trace)
{
    if (trace == NULL) {
        return;
    }
    for (uint32_t i = 0; i < trace->lane_count; i++) {
        destroy_lane(trace->lanes[i]);
    }
    pthread_mutex_destroy(&trace->mutex);
    free(trace);
}

bool trace_has_folder(const struct trace *trace)
{
    return trace != NULL && trace->folder[0] != '\0';
}

void trace_describe(struct trace *trace, const struct trace_process *process)
{
    if (trace == NULL) {
        return;
    }
    pthread_mutex_lock(&trace->mutex);
    // A coordinator's process stays one when its shard describes itself.
    bool is_coordinator = trace->process.is_coordinator || process->is_coordinator;
    trace->process = *process;
    trace->process.is_coordinator = is_coordinator;
    snprintf(trace->role, sizeof(trace->role), "%s", process->role);
    snprintf(trace->host, sizeof(trace->host), "%s", process->host);
    trace->process.role = trace->role;
    trace->process.host = trace->host;
    pthread_mutex_unlock(&trace->mutex);
}

static struct trace_lane *create_lane(enum trace_thread thread, uint32_t number,
                                      const struct trace_window *window)
{
    struct trace_lane *lane = calloc(1, sizeof(*lane));
    if (lane == NULL) {
        return NULL;
    }
    lane->window = *window;
    lane->thread = thread;
    lane->number = number;
    lane->round_steps = 1;
    lane->flow_seed =
        random_mix(random_mix((uint64_t)getpid() << 32 | number) + thread + clock_now_ns())
        << FLOW_COUNTER_BITS;
    lane->events = memory_create_large(TRACE_EVENTS_MAX * sizeof(*lane->events));
    lane->pings = calloc(TRACE_PINGS_MAX, sizeof(*lane->pings));
    if (lane->events == NULL || lane->pings == NULL) {
        destroy_lane(lane);
        return NULL;
    }
    return lane;
}

static struct trace_lane *find_lane(const struct trace *trace, enum trace_thread thread,
                                    uint32_t number)
{
    for (uint32_t i = 0; i < trace->lane_count; i++) {
        if (trace->lanes[i]->thread == thread && trace->lanes[i]->number == number) {
            return trace->lanes[i];
        }
    }
    return NULL;
}

enum status trace_open_lane(struct trace *trace, enum trace_thread thread, uint32_t number,
                            const struct trace_window *window, struct trace_lane **ret_lane)
{
    struct trace_lane *lane = NULL;
    if (!trace_has_folder(trace)) {
        *ret_lane = NULL;
        return STATUS_OK;
    }
    pthread_mutex_lock(&trace->mutex);
    lane = find_lane(trace, thread, number);
    if (lane == NULL && trace->lane_count < TRACE_LANES_MAX) {
        lane = create_lane(thread, number, window);
        if (lane != NULL) {
            trace->lanes[trace->lane_count++] = lane;
        }
    }
    pthread_mutex_unlock(&trace->mutex);
    if (lane == NULL) {
        log_error(
            "no memory for the timeline of a thread: %zu MiB are needed; leave --timeline out",
            TRACE_EVENTS_MAX * sizeof(struct trace_event) >> 20);
        return STATUS_NO_MEMORY;
    }
    *ret_lane = lane;
    return STATUS_OK;
}

enum status trace_write(const struct trace *trace)
{
    return trace_has_folder(trace) && trace->lane_count > 0 ? trace_file_write(trace) : STATUS_OK;
}

void trace_begin_phase(struct trace_lane *lane, uint64_t step, uint32_t round_steps)
{
    if (lane != NULL) {
        lane->phase_step = step;
        lane->round_steps = round_steps > 0 ? round_steps : 1;
    }
}

static bool is_inside(const struct trace_lane *lane, uint64_t step)
{
    return step >= lane->window.first && step < lane->window.end;
}

void trace_record(struct trace_lane *lane, uint64_t begin_ns, uint64_t end_ns,
                  const struct trace_mark *mark)
{
    if (!is_inside(lane, mark->step)) {
        return;
    }
    if (lane->count == TRACE_EVENTS_MAX) {
        lane->dropped++;
        return;
    }
    lane->events[lane->count++] = (struct trace_event){begin_ns, end_ns, *mark};
}

uint64_t trace_next_flow(struct trace_lane *lane, uint64_t step)
{
    if (lane == NULL || !is_inside(lane, step)) {
        return 0;
    }
    return lane->flow_seed | (++lane->flows & ((UINT64_C(1) << FLOW_COUNTER_BITS) - 1));
}

void trace_add_ping(struct trace_lane *lane, const struct trace_ping *ping)
{
    if (lane != NULL && lane->ping_count < TRACE_PINGS_MAX) {
        lane->pings[lane->ping_count++] = *ping;
    }
}
