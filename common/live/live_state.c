/* Keeps what is known of a job. */
#include "common/live/live_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const uint32_t live_bin_limits[LIVE_BINS - 1] = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

enum status live_state_init(struct live_state *state, uint32_t workers)
{
    assert(workers > 0 && workers <= LIVE_RANKS_MAX);
    *state = (struct live_state){.workers = workers, .outcome = "waiting"};
    state->ranks = calloc(workers, sizeof(*state->ranks));
    return state->ranks != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

void live_state_finish(struct live_state *state)
{
    free(state->ranks);
    state->ranks = NULL;
}

void live_state_copy(struct live_state *to, const struct live_state *from)
{
    assert(to->workers == from->workers);
    struct live_rank *ranks = to->ranks;
    memcpy(ranks, from->ranks, from->workers * sizeof(*ranks));
    *to = *from;
    to->ranks = ranks;
}

/* Keeps every other point, so that there is room for as many. */
static void thin(struct live_curve *curve)
{
    for (uint32_t i = 0; i < curve->count / 2; i++) {
        curve->points[i] = curve->points[2 * i + 1];
    }
    curve->count /= 2;
    curve->stride *= 2;
}

void live_add_point(struct live_curve *curve, const struct live_point *point)
{
    curve->stride = curve->stride > 0 ? curve->stride : 1;
    curve->skipped++;
    if (curve->skipped < curve->stride) {
        return;
    }
    if (curve->count == LIVE_POINTS_MAX) {
        thin(curve);
        return; // the point after this one is on the coarser grid
    }
    curve->skipped = 0;
    curve->points[curve->count++] = *point;
}

void live_cut_curve(struct live_curve *curve, uint64_t step)
{
    while (curve->count > 0 && curve->points[curve->count - 1].step > step) {
        curve->count--;
    }
}

void live_add_event(struct live_state *state, const char *kind, const char *format, ...)
{
    if (state->event_count == LIVE_EVENTS_MAX) {
        memmove(&state->events[0], &state->events[1],
                (LIVE_EVENTS_MAX - 1) * sizeof(state->events[0]));
        state->event_count--;
        state->events_left_out++;
    }
    struct live_event *event = &state->events[state->event_count++];
    *event = (struct live_event){.seconds = state->seconds, .step = state->step};
    snprintf(event->kind, sizeof(event->kind), "%s", kind);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(event->text, sizeof(event->text), format, arguments);
    va_end(arguments);
}

void live_add_staleness(struct live_histogram *histogram, double value, uint64_t count)
{
    uint32_t bin = 0;
    while (bin < LIVE_BINS - 1 && value > (double)live_bin_limits[bin]) {
        bin++;
    }
    histogram->counts[bin] += count;
    histogram->total += count;
    histogram->sum += value * (double)count;
}

bool live_is_over(const struct live_state *state)
{
    return strcmp(state->outcome, "completed") == 0 || strcmp(state->outcome, "failed") == 0;
}

uint64_t live_step_of_all(const struct live_state *state, bool is_unsynchronised)
{
    if (state->workers == 0) {
        return 0;
    }
    uint64_t least = UINT64_MAX, mean = 0, rest = 0; // a sum might not fit: files may say anything
    for (uint32_t i = 0; i < state->workers; i++) {
        uint64_t step = state->ranks[i].step;
        least = step < least ? step : least;
        mean += step / state->workers;
        rest += step % state->workers;
    }
    return is_unsynchronised ? mean + rest / state->workers : least;
}

double live_eta(const struct live_state *state)
{
    if (state->step == 0 || state->total_steps < state->step || state->seconds <= 0) {
        return -1;
    }
    return state->seconds / (double)state->step * (double)(state->total_steps - state->step);
}

void live_step_text(uint64_t step, uint64_t total, const char *between,
                    char ret_text[LIVE_STEP_BYTES])
{
    int used = snprintf(ret_text, LIVE_STEP_BYTES, "%" PRIu64, step);
    if (total > 0 && used > 0) {
        snprintf(ret_text + used, LIVE_STEP_BYTES - (size_t)used, "%s%" PRIu64, between, total);
    }
}
