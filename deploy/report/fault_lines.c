/* Reads the rates of a run from metrics.jsonl, and finds those around its faults. */
#include "deploy/report/fault_lines.h"

#include "deploy/report/metrics_file.h"

#include <stdlib.h>

#define LINES_MAX 20000

bool fault_lines_read(const struct run_folder *run, struct fault_lines *ret_lines)
{
    struct metrics_file metrics;
    json_int_t rank = -1;
    struct fault_lines lines = {calloc(LINES_MAX, sizeof(*lines.list)), 0};
    if (lines.list == NULL) {
        return false;
    }
    metrics_file_open(run, &metrics);
    for (json_t *entry; lines.count < LINES_MAX && (entry = metrics_file_next(&metrics)) != NULL;) {
        const json_t *of = json_object_get(entry, "rank");
        rank = rank < 0 && json_is_integer(of) ? json_integer_value(of) : rank;
        if (json_is_integer(of) && json_integer_value(of) == rank) {
            lines.list[lines.count++] = (struct fault_line){
                (uint64_t)json_integer_value(json_object_get(entry, "step")),
                json_number_value(json_object_get(entry, "seconds")),
            };
        }
        json_decref(entry);
    }
    metrics_file_close(&metrics);
    if (lines.count == 0) {
        free(lines.list);
        return false;
    }
    *ret_lines = lines;
    return true;
}

void fault_lines_finish(struct fault_lines *lines)
{
    free(lines->list);
    *lines = (struct fault_lines){0};
}

static double rate_between(const struct fault_line *from, const struct fault_line *to)
{
    double seconds = to->seconds - from->seconds;
    return to->step > from->step && seconds > 0 ? (double)(to->step - from->step) / seconds : 0;
}

double fault_lines_rate(const struct fault_lines *lines, size_t index)
{
    const struct fault_line none = {0, 0};
    return rate_between(index > 0 ? &lines->list[index - 1] : &none, &lines->list[index]);
}

struct fault_rates fault_lines_rates(const struct fault_lines *lines, struct fault_window window)
{
    const struct fault_line *list = lines->list, none = {0, 0};
    size_t before = 0, after = lines->count; // lines before the window; the first one behind it
    while (before < lines->count && list[before].step < window.first) {
        before++;
    }
    while (after > 0 && list[after - 1].step >= window.last) {
        after--;
    }
    struct fault_rates rates = {0, 0, 0};
    const struct fault_line *start = before > 0 ? &list[before - 1] : &none;
    if (before > 1) {
        rates.before = rate_between(&list[0], start);
    }
    if (after < lines->count) {
        rates.during = rate_between(start, &list[after]);
        rates.after = rate_between(&list[after], &list[lines->count - 1]);
    }
    return rates;
}
