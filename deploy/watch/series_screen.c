/* Writes the runs of a sweep or a comparison as text. */
#include "deploy/watch/series_screen.h"

#include "common/base/printable.h"

#include <string.h>

#define LINE_BYTES  512
#define ROWS_MIN    8
#define COLUMNS_MIN 40

static void write_duration(double seconds, FILE *out)
{
    unsigned long long whole =
        seconds > 0 && seconds < 1e9 ? (unsigned long long)(seconds + 0.5) : 0;
    if (whole >= 3600) {
        fprintf(out, "%llu h %02llu min", whole / 3600, whole / 60 % 60);
    } else if (whole >= 60) {
        fprintf(out, "%llu min %02llu s", whole / 60, whole % 60);
    } else {
        fprintf(out, "%llu s", whole);
    }
}

void series_screen_write_line(const struct series *series, FILE *out)
{
    double eta = series_eta(series);
    const char *separator = ": ";
    fprintf(out, "%zu run%s%s", series->count, series->count == 1 ? "" : "s",
            series->has_plan || !series->is_running ? "" : " so far");
    for (unsigned state = 0; state < SERIES_STATE_COUNT; state++) {
        size_t count = series_count(series, (enum series_state)state);
        if (count > 0) {
            fprintf(out, "%s%zu %s", separator, count, series_states[state]);
            separator = ", ";
        }
    }
    if (!series->is_running) {
        fputs("; nothing runs", out);
    } else if (series->has_plan && eta >= 0) {
        fputs("; about ", out);
        write_duration(eta, out);
        fputs(" to go", out);
    }
    fputc('\n', out);
}

/* What there is to say of a run besides its state. */
static void format_result(const struct series_run *run, char *ret_text, size_t size)
{
    char accuracy[32] = "", step[LIVE_STEP_BYTES];
    if (run->has_accuracy) {
        snprintf(accuracy, sizeof(accuracy), "%.2f %%, ", 100 * run->accuracy);
    }
    switch (run->state) {
    case SERIES_RUNNING:
        live_step_text(run->step, run->total_steps, " of ", step);
        snprintf(ret_text, size, "step %s, loss %.4g, %.0f images/s", step, run->loss,
                 run->images_per_second);
        return;
    case SERIES_COMPLETED:
        snprintf(ret_text, size, "%s%.1f s, %.0f images/s", accuracy, run->seconds,
                 run->images_per_second);
        return;
    case SERIES_DIVERGED:
        snprintf(ret_text, size, "at step %llu", (unsigned long long)run->step);
        return;
    case SERIES_WAITING:
    case SERIES_FAILED:
    case SERIES_STATE_COUNT:
        break;
    }
    ret_text[0] = '\0';
}

static void write_run(const struct series_run *run, uint32_t columns, FILE *out)
{
    char line[LINE_BYTES], result[128];
    format_result(run, result, sizeof(result));
    snprintf(line, sizeof(line), "%-9s  %.200s  %s", series_states[run->state], run->label, result);
    printable_make(line, strlen(line));
    fprintf(out, "%.*s\n", (int)columns, line);
}

/* The first run that is shown: those around the one that runs, or the last ones. */
static size_t first_shown(const struct series *series, size_t room)
{
    size_t at = series->count;
    for (size_t i = 0; i < series->count; i++) {
        if (series->runs[i].state == SERIES_RUNNING) {
            at = i + 1 + room / 3;
            break;
        }
    }
    at = at > series->count ? series->count : at;
    return at > room ? at - room : 0;
}

void series_screen_write(const struct series *series, uint32_t rows, uint32_t columns, FILE *out)
{
    size_t room = (rows < ROWS_MIN ? ROWS_MIN : rows) - 4;
    size_t first = first_shown(series, room);
    columns = columns < COLUMNS_MIN ? COLUMNS_MIN : columns;
    series_screen_write_line(series, out);
    if (first > 0) {
        fprintf(out, "%zu before\n", first);
    }
    for (size_t i = first; i < series->count && i < first + room; i++) {
        write_run(&series->runs[i], columns - 1, out);
    }
    if (first + room < series->count) {
        fprintf(out, "and %zu more\n", series->count - first - room);
    }
}
