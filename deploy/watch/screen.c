/* Writes live states as text. */
#include "deploy/watch/screen.h"

#include "common/base/printable.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define LINE_BYTES   1024
#define CURVE_BYTES  (3 * SCREEN_COLUMNS_MAX + 1) // a column is a character of UTF-8
#define CURVE_LEVELS 8
#define TIME_MAX_MS  1e12 // of a part of a step; a longer one makes no sense

/* Text may come from another host. */
static void write_text(FILE *out, const char *text)
{
    char line[LINE_BYTES];
    snprintf(line, sizeof(line), "%s", text);
    printable_make(line, strlen(line));
    fputs(line, out);
}

static void format_duration(double seconds, char *ret_text, size_t size)
{
    unsigned long long whole =
        seconds > 0 && seconds < 1e15 ? (unsigned long long)(seconds + 0.5) : 0;
    if (whole >= 3600) {
        snprintf(ret_text, size, "%llu h %02llu min", whole / 3600, whole / 60 % 60);
    } else if (whole >= 60) {
        snprintf(ret_text, size, "%llu min %02llu s", whole / 60, whole % 60);
    } else {
        snprintf(ret_text, size, "%llu s", whole);
    }
}

static void write_bar(FILE *out, double share, uint32_t columns)
{
    uint32_t full = share > 0 ? (uint32_t)(fmin(share, 1) * columns + 0.5) : 0;
    fputc('[', out);
    for (uint32_t i = 0; i < columns; i++) {
        fputc(i < full ? '#' : '.', out);
    }
    fprintf(out, "] %3.0f %%\n", 100 * fmin(fmax(share, 0), 1));
}

/* The curve of the loss, as columns of eight heights. */
static void draw_curve(const struct live_curve *curve, uint32_t columns, char ret_text[CURVE_BYTES])
{
    static const char *const levels[CURVE_LEVELS] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                                     "\u2585", "\u2586", "\u2587", "\u2588"};
    double low = (double)INFINITY, high = -low;
    uint32_t count = curve->count < columns ? curve->count : columns;
    size_t used = 0;
    ret_text[0] = '\0';
    for (uint32_t i = 0; i < curve->count; i++) {
        low = fmin(low, curve->points[i].value[0]); // which leaves out what is no number
        high = fmax(high, curve->points[i].value[0]);
    }
    for (uint32_t i = 0; i < count; i++) {
        double value = curve->points[(uint64_t)i * curve->count / count].value[0];
        double level = high > low ? (value - low) / (high - low) * (CURVE_LEVELS - 1) : 0;
        const char *text = isfinite(level) ? levels[(uint32_t)level] : "!";
        memcpy(ret_text + used, text, strlen(text) + 1);
        used += strlen(text);
    }
}

/* Whether a rank has reported: without, a loss of 0 would be no loss. */
static bool has_measurements(const struct live_state *state)
{
    for (uint32_t i = 0; i < state->workers; i++) {
        if (state->ranks[i].steps > 0) {
            return true;
        }
    }
    return false;
}

static void write_head(const struct live_state *state, uint32_t columns, FILE *out)
{
    char spent[32], rest[32], step[LIVE_STEP_BYTES];
    double eta = live_eta(state);
    format_duration(state->seconds, spent, sizeof(spent));
    format_duration(eta, rest, sizeof(rest));
    write_text(out, state->mode);
    fprintf(out, ", %u worker%s: ", state->workers, state->workers == 1 ? "" : "s");
    write_text(out, state->model);
    fputs(" on ", out);
    write_text(out, state->dataset);
    fputs("   ", out);
    write_text(out, state->outcome);
    live_step_text(state->step, state->total_steps, " of ", step);
    fprintf(out, "\nepoch %llu, step %s, %s", (unsigned long long)state->epoch, step, spent);
    if (eta >= 0 && strcmp(state->outcome, "training") == 0) {
        fprintf(out, ", %s to go", rest);
    }
    fputc('\n', out);
    if (state->total_steps > 0) {
        write_bar(out, (double)state->step / (double)state->total_steps, columns - 8);
    }
}

static void write_values(const struct live_state *state, uint32_t columns, FILE *out)
{
    char curve[CURVE_BYTES];
    if (has_measurements(state)) {
        draw_curve(&state->progress, columns - 20, curve);
        fprintf(out, "\nloss %-10.4g %s\n", state->loss, curve);
        fprintf(out, "%.0f images/s", state->images_per_second);
    } else {
        fputs("\nno measurements", out);
    }
    if (state->has_accuracy) {
        fprintf(out, ", test accuracy %.2f %%", 100 * state->accuracy);
    }
    if (state->staleness.total > 0) {
        fprintf(out, ", mean staleness %.3g",
                state->staleness.sum / (double)state->staleness.total);
    }
    if (state->workers_lost > 0 || state->restarts > 0) {
        fprintf(out, ", %u workers lost, %u restarts", state->workers_lost, state->restarts);
    }
    fputc('\n', out);
}

/* A time that may come from another host; 0 for one that makes no sense. */
static double sane_ms(double ms)
{
    return ms > 0 && ms <= TIME_MAX_MS ? ms : 0;
}

static double total_ms(const struct live_rank *rank)
{
    return sane_ms(rank->compute_ms) + sane_ms(rank->exchange_wait_ms) +
           sane_ms(rank->input_wait_ms);
}

/* A bar of a rank's step: # compute, = exchange wait, + input wait. */
static void write_parts(const struct live_rank *rank, double longest_ms, uint32_t columns,
                        FILE *out)
{
    const double parts[] = {rank->compute_ms, rank->exchange_wait_ms, rank->input_wait_ms};
    double sum = 0;
    uint32_t drawn = 0;
    for (uint32_t i = 0; i < 3; i++) {
        sum += sane_ms(parts[i]);
        for (; drawn < (uint32_t)(sum / longest_ms * columns + 0.5); drawn++) {
            fputc("#=+"[i], out);
        }
    }
    fputc('\n', out);
}

static void write_ranks(const struct live_state *state, uint32_t columns, FILE *out)
{
    double longest_ms = 1e-9;
    uint32_t shown = state->workers < SCREEN_RANKS_MAX ? state->workers : SCREEN_RANKS_MAX;
    for (uint32_t i = 0; i < shown; i++) {
        longest_ms = fmax(longest_ms, total_ms(&state->ranks[i]));
    }
    fputs("\nrank       step  ms a step  # compute  = exchange wait  + input wait\n", out);
    for (uint32_t i = 0; i < shown; i++) {
        const struct live_rank *rank = &state->ranks[i];
        bool is_slow = i == state->slowest && state->workers > 1 && rank->steps > 0;
        fprintf(out, "%4u %10llu %10.4g %c ", i, (unsigned long long)rank->step, total_ms(rank),
                is_slow ? '<' : ' ');
        write_parts(rank, longest_ms, columns - 30, out);
    }
    if (state->workers > shown) {
        fprintf(out, "and %u more\n", state->workers - shown);
    }
    if (state->workers > 1 && has_measurements(state)) {
        fprintf(out, "slowest to compute: rank %u (%.4g ms)\n", state->slowest,
                state->ranks[state->slowest].compute_ms);
    }
}

static void write_events(const struct live_state *state, FILE *out)
{
    uint32_t shown =
        state->event_count < SCREEN_EVENTS_MAX ? state->event_count : SCREEN_EVENTS_MAX;
    if (shown > 0) {
        fputc('\n', out);
    }
    for (uint32_t i = state->event_count - shown; i < state->event_count; i++) {
        const struct live_event *event = &state->events[i];
        fprintf(out, "%7.1f s  step %llu  ", event->seconds, (unsigned long long)event->step);
        write_text(out, event->kind);
        fputs(": ", out);
        write_text(out, event->text);
        fputc('\n', out);
    }
}

void screen_write(const struct live_state *state, uint32_t columns, FILE *out)
{
    columns = columns < SCREEN_COLUMNS_MIN ? SCREEN_COLUMNS_MIN : columns;
    columns = columns > SCREEN_COLUMNS_MAX ? SCREEN_COLUMNS_MAX : columns;
    write_head(state, columns, out);
    write_values(state, columns, out);
    write_ranks(state, columns, out);
    write_events(state, out);
}

void screen_write_line(const struct live_state *state, FILE *out)
{
    bool is_measured = has_measurements(state);
    char step[LIVE_STEP_BYTES];
    live_step_text(state->step, state->total_steps, " of ", step);
    write_text(out, state->outcome);
    if (is_measured) {
        fprintf(out, ": epoch %llu, step %s, loss %.4g, %.0f images/s",
                (unsigned long long)state->epoch, step, state->loss, state->images_per_second);
    } else {
        fprintf(out, ": step %s, no measurements", step);
    }
    if (state->has_accuracy) {
        fprintf(out, ", test accuracy %.2f %%", 100 * state->accuracy);
    }
    if (is_measured && state->workers > 1) {
        fprintf(out, ", slowest rank %u (%.4g ms)", state->slowest,
                state->ranks[state->slowest].compute_ms);
    }
    if (state->reason[0] != '\0') {
        fputs(": ", out);
        write_text(out, state->reason);
    }
    fputc('\n', out);
}
