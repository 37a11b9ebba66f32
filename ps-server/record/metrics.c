/* Adds up the reports of each rank until a line of metrics.jsonl is due. */
#include "ps-server/record/metrics.h"

#include "common/channel/report_sum.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Lines of a rank after so many reports, if its first `first` lines have one report each. */
static uint64_t lines_of(uint64_t first, uint64_t reports)
{
    uint64_t lines = reports < first ? reports : first;
    for (uint64_t reach = first; reach < reports && reach <= UINT64_MAX / 2; reach *= 2) {
        lines += first / 2; // the job doubles, and so do the reports per line
    }
    return lines;
}

enum status metrics_init(struct metrics *metrics, uint32_t worker_count, uint64_t report_every,
                         uint64_t total_steps)
{
    assert(worker_count > 0 && report_every > 0);
    uint64_t share = METRICS_LINES_MAX / worker_count;
    uint64_t most = share > METRICS_RANK_LINES_MIN ? share : METRICS_RANK_LINES_MIN;
    uint64_t whole = total_steps / report_every, first = most;
    uint64_t reports = whole + (total_steps % report_every > 0);
    while (first > 2 && lines_of(first, reports) > most) {
        first = first * 3 / 4;
    }
    *metrics = (struct metrics){.lines = calloc(worker_count, sizeof(*metrics->lines)),
                                .worker_count = worker_count,
                                .report_every = report_every,
                                .first_lines = first};
    return metrics->lines != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

void metrics_finish(struct metrics *metrics)
{
    free(metrics->lines);
    *metrics = (struct metrics){0};
}

void metrics_forget(struct metrics *metrics)
{
    for (uint32_t i = 0; i < metrics->worker_count; i++) {
        metrics->lines[i] = (struct metrics_line){0};
    }
}

uint64_t metrics_interval(const struct metrics *metrics, uint64_t step)
{
    uint64_t interval = metrics->report_every;
    while (interval <= UINT64_MAX / 2 && step / interval >= metrics->first_lines) {
        interval *= 2;
    }
    return interval;
}

bool metrics_add(struct metrics *metrics, uint32_t rank, const struct message *message,
                 double seconds)
{
    struct metrics_line *line = &metrics->lines[rank];
    report_sum_add(&line->report, message->report);
    line->step = message->step;
    line->epoch = message->report->epoch;
    line->seconds = seconds;
    line->is_restored = line->is_restored || message->report->is_repeated;
    uint64_t interval = metrics_interval(metrics, message->step);
    return message->step / interval > line->written_step / interval;
}

static uint64_t part_of(uint64_t sum, double part)
{
    double value = (double)sum * part;
    return value < (double)UINT64_MAX ? (uint64_t)value : UINT64_MAX;
}

void metrics_prepend(struct wire_report *report, const struct wire_report *before)
{
    const struct wire_report last = *report;
    report_sum_add(report, before);
    report->rate = last.rate;
    report->loader_threads = last.loader_threads;
    report->is_repeated = last.is_repeated || before->is_repeated;
}

struct wire_report metrics_copied(const struct results_rank *rank)
{
    return (struct wire_report){.steps = rank->steps,
                                .images = rank->images,
                                .images_dropped = rank->images_dropped,
                                .loss_sum = rank->loss_sum,
                                .compute_ns = rank->compute_ns,
                                .exchange_wait_ns = rank->exchange_wait_ns,
                                .input_wait_ns = rank->input_wait_ns,
                                .total_ns = rank->total_ns,
                                .copy_ns = rank->copy_ns,
                                .wire_ns = rank->wire_ns,
                                .bytes_sent = rank->bytes_sent,
                                .bytes_received = rank->bytes_received,
                                .epoch = rank->epoch,
                                .rate = (double)NAN,
                                .staleness_sum = (double)NAN,
                                .is_repeated = true};
}

bool metrics_rest(const struct wire_report *report, uint64_t steps, double loss_steps,
                  struct wire_report *ret_rest)
{
    if (report->steps <= steps) {
        return false;
    }
    struct wire_report rest = *report;
    double part = (double)(report->steps - steps) / (double)report->steps;
    uint64_t *const sums[] = {&rest.compute_ns, &rest.exchange_wait_ns, &rest.input_wait_ns,
                              &rest.total_ns,   &rest.copy_ns,          &rest.wire_ns,
                              &rest.bytes_sent, &rest.bytes_received};
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
        *sums[i] = part_of(*sums[i], part);
    }
    rest.steps = report->steps - steps;
    rest.images = part_of(report->images, part);
    rest.loss_sum -= loss_steps * (double)report->images / (double)report->steps;
    rest.images_dropped *= part;
    rest.staleness_sum *= part;
    *ret_rest = rest;
    return true;
}

bool metrics_take(struct metrics *metrics, uint32_t rank, struct metrics_line *ret_line)
{
    struct metrics_line *line = &metrics->lines[rank];
    if (line->report.steps == 0) {
        return false;
    }
    *ret_line = *line;
    *line = (struct metrics_line){.written_step = line->step};
    return true;
}

void metrics_put_back(struct metrics *metrics, uint32_t rank, const struct metrics_line *line)
{
    metrics->lines[rank] = *line;
}
