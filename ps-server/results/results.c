/* Adds up the reports of workers and servers. */
#include "ps-server/results/results.h"

#include "common/job/phases.h"

#include <stdlib.h>
#include <string.h>

// Workers are in step, so a report closes a period at most this far ahead of the known ones.
#define PERIOD_LEAD_MAX 1

enum status results_init(struct results *results, uint32_t worker_count, uint32_t shard_count)
{
    *results = (struct results){.worker_count = worker_count, .shard_count = shard_count};
    results->ranks = calloc(worker_count, sizeof(*results->ranks));
    results->shards = calloc((size_t)shard_count + 1, sizeof(*results->shards));
    return results->ranks != NULL && results->shards != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

void results_finish(struct results *results)
{
    free(results->ranks);
    free(results->shards);
    free(results->periods);
    free(results->committed);
    *results = (struct results){0};
}

void results_go_on(struct results *results, struct results *from)
{
    free(results->ranks);
    free(results->periods);
    results->ranks = from->ranks;
    results->periods = from->periods;
    results->period_count = from->period_count;
    results->period_capacity = from->period_capacity;
    results->staleness = from->staleness;
    results->late_count = from->late_count;
    if (from->shard_count > 0 && results->shard_count > 0 &&
        from->shard_count != results->shard_count) {
        staleness_scale(&results->staleness, results->shard_count, from->shard_count);
        results->late_count = results->late_count * results->shard_count / from->shard_count;
    }
    from->ranks = NULL;
    from->periods = NULL;
    results_finish(from); // what it has besides is of its own servers
    for (uint32_t i = 0; i < results->worker_count; i++) {
        struct results_rank *rank = &results->ranks[i];
        double used = (double)rank->images - rank->images_dropped;
        rank->warm_images = rank->warm_ns = 0; // of this process's time
        rank->past_images = used > 0 ? (uint64_t)used : 0;
        rank->past_ns = rank->total_ns;
    }
}

void results_rank_share(struct results_rank *rank, uint64_t steps, uint64_t images)
{
    rank->loss_sum *= rank->images > 0 ? (double)images / (double)rank->images : 0;
    rank->step = rank->steps = steps;
    rank->images = images;
    rank->images_dropped = 0;
}

static enum status grow(struct results *results)
{
    if (results->period_count < results->period_capacity) {
        return STATUS_OK;
    }
    uint32_t capacity = results->period_capacity == 0 ? 16 : 2 * results->period_capacity;
    struct results_period *periods = realloc(results->periods, capacity * sizeof(*periods));
    if (periods == NULL) {
        return STATUS_NO_MEMORY;
    }
    results->periods = periods;
    results->period_capacity = capacity;
    return STATUS_OK;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t results_most_steps(const struct results *results, uint64_t least)
{
    for (uint32_t i = 0; i < results->worker_count; i++) {
        least = max_u64(least, results->ranks[i].step);
    }
    return least;
}

/* Begins a period, unless it has begun. */
static enum status open_period(struct results *results, uint64_t index)
{
    if (index >= (uint64_t)results->period_count + PERIOD_LEAD_MAX) {
        return STATUS_MALFORMED;
    }
    if (index == results->period_count) {
        enum status status = grow(results);
        if (status != STATUS_OK) {
            return status;
        }
        results->periods[results->period_count++] = (struct results_period){0};
    }
    return STATUS_OK;
}

static void add_to_period(struct results_period *period, const struct wire_report *report)
{
    period->report_count++;
    period->repeated_count += report->is_repeated;
    period->images += report->images;
    period->images_dropped += report->images_dropped;
    period->steps_max = max_u64(period->steps_max, report->steps);
    period->total_ns_max = max_u64(period->total_ns_max, report->total_ns);
    period->loss_sum += report->loss_sum;
    period->test_images += report->test_images;
    period->test_correct += report->test_correct;
    period->test_loss_sum += report->test_loss_sum;
}

static enum status add_period(struct results *results, const struct wire_report *report)
{
    enum status status = open_period(results, report->period);
    if (status == STATUS_OK) {
        add_to_period(&results->periods[report->period], report);
    }
    return status;
}

double results_images_used(const struct wire_report *report)
{
    double used = (double)report->images - report->images_dropped;
    return used > 0 ? used : 0;
}

static void add_interval(struct results_rank *rank, const struct message *message)
{
    const struct wire_report *report = message->report;
    rank->step = message->step;
    rank->epoch = report->epoch;
    rank->is_idle = report->steps > 0 ? report->images == 0 : rank->is_idle;
    if (report->images > 0) {
        rank->loss = report->loss_sum / (double)report->images;
    }
    if (report->total_ns > 0 && report->steps > 0) {
        rank->images_per_second = results_images_used(report) * 1e9 / (double)report->total_ns;
        rank->compute_ms = (double)report->compute_ns / 1e6 / (double)report->steps;
    }
    rank->steps += report->steps;
    rank->images += report->images;
    rank->images_dropped += report->images_dropped;
    rank->transports = report->transports;
    rank->loader_threads = report->loader_threads;
    rank->loss_sum += report->loss_sum;
    rank->compute_ns += report->compute_ns;
    rank->exchange_wait_ns += report->exchange_wait_ns;
    rank->input_wait_ns += report->input_wait_ns;
    rank->total_ns += report->total_ns;
    rank->copy_ns += report->copy_ns;
    rank->wire_ns += report->wire_ns;
    rank->bytes_sent += report->bytes_sent;
    rank->bytes_received += report->bytes_received;
}

enum status results_add(struct results *results, uint32_t rank, const struct message *message)
{
    if (message->report->closes_period) {
        return add_period(results, message->report);
    }
    add_interval(&results->ranks[rank], message);
    return STATUS_OK;
}

enum status results_add_evaluation(struct results *results, uint32_t rank,
                                   const struct message *message)
{
    struct results_rank *of = &results->ranks[rank];
    struct results_period *period = &of->rest;
    if (message->report->test_images > 0) {
        enum status status = open_period(results, of->evaluations);
        if (status != STATUS_OK) {
            return status;
        }
        period = &results->periods[of->evaluations++];
    }
    add_to_period(period, message->report);
    period->step = max_u64(period->step, message->step);
    return STATUS_OK;
}

/* Whether every worker is done, and has evaluated as often as the job has. */
static bool all_have_evaluated(const struct results *results)
{
    for (uint32_t i = 0; i < results->worker_count; i++) {
        const struct results_rank *rank = &results->ranks[i];
        if (!rank->is_done || rank->evaluations != results->period_count) {
            return false;
        }
    }
    return true;
}

enum status results_add_rest(struct results *results)
{
    struct results_period rest = {0};
    for (uint32_t i = 0; i < results->worker_count; i++) {
        const struct results_period *of = &results->ranks[i].rest;
        rest.report_count += of->report_count;
        rest.step = max_u64(rest.step, of->step);
        rest.images += of->images;
        rest.images_dropped += of->images_dropped;
        rest.steps_max = max_u64(rest.steps_max, of->steps_max);
        rest.total_ns_max = max_u64(rest.total_ns_max, of->total_ns_max);
        rest.loss_sum += of->loss_sum;
    }
    if (rest.report_count == 0 || !all_have_evaluated(results)) {
        return STATUS_OK;
    }
    enum status status = open_period(results, results->period_count);
    if (status == STATUS_OK) {
        results->periods[results->period_count - 1] = rest;
    }
    return status;
}

/* A worker whose steps have gone past an evaluation of the others takes no part in it. */
static bool is_over(const struct results *results, uint32_t period)
{
    for (uint32_t i = 0; i < results->worker_count; i++) {
        const struct results_rank *of = &results->ranks[i];
        if (of->evaluations <= period && !of->is_done &&
            of->step <= results->periods[period].step) {
            return false;
        }
    }
    return true;
}

bool results_tell_next(struct results *results, uint32_t *ret_period)
{
    if (results->told_count == results->period_count || !is_over(results, results->told_count)) {
        return false;
    }
    *ret_period = results->told_count++;
    return true;
}

bool results_was_told(const struct results *results, uint32_t period)
{
    const struct results_period *of = &results->periods[period];
    return of->repeated_count > 0 && of->repeated_count == of->report_count;
}

void results_note_commit(struct results *results)
{
    size_t bytes = results->worker_count * sizeof(*results->committed);
    results->committed_count = results->period_count;
    if (results->committed == NULL) {
        results->committed = malloc(bytes);
    }
    if (results->committed != NULL) { // else sums are of later steps alone
        memcpy(results->committed, results->ranks, bytes);
    }
}

static void add_rank(struct results_rank *rank, const struct results_rank *other)
{
    rank->steps += other->steps;
    rank->images += other->images;
    rank->images_dropped += other->images_dropped;
    rank->transports_before |= other->transports | other->transports_before;
    rank->loss_sum += other->loss_sum;
    rank->compute_ns += other->compute_ns;
    rank->exchange_wait_ns += other->exchange_wait_ns;
    rank->input_wait_ns += other->input_wait_ns;
    rank->total_ns += other->total_ns;
    rank->copy_ns += other->copy_ns;
    rank->wire_ns += other->wire_ns;
    rank->bytes_sent += other->bytes_sent;
    rank->bytes_received += other->bytes_received;
}

/* There are so many evaluations, which all workers have made. */
static void set_count(struct results *results, uint32_t count)
{
    results->period_count = results->told_count = results->committed_count = count;
    for (uint32_t i = 0; i < results->worker_count; i++) {
        results->ranks[i].evaluations = count;
        results->ranks[i].rest = (struct results_period){0};
    }
}

void results_keep_committed(struct results *results, struct results *from)
{
    free(results->periods);
    results->periods = from->periods;
    results->period_capacity = from->period_capacity;
    for (uint32_t i = 0; from->committed != NULL && i < from->worker_count; i++) {
        add_rank(&results->ranks[i % results->worker_count], &from->committed[i]);
    }
    results->period_count = from->committed_count;
    results_note_commit(results);
    set_count(results, from->committed_count);
    from->periods = NULL;
    from->period_count = from->period_capacity = from->committed_count = 0;
}

void results_cut(struct results *results, uint64_t step)
{
    uint32_t count = 0;
    while (count < results->period_count && results->periods[count].step <= step) {
        count++;
    }
    set_count(results, count);
}

uint64_t results_period_end(const struct results *results, const struct job *job,
                            uint64_t train_samples, uint32_t period)
{
    return job_is_external(job) ? results->periods[period].step
                                : phases_period_end(job, train_samples, period);
}

double results_period_rate(const struct results *results, uint32_t period)
{
    const struct results_period *of = &results->periods[period];
    double images = (double)of->images - of->images_dropped;
    double of_all = (double)results->worker_count / (of->report_count > 0 ? of->report_count : 1);
    return of->total_ns_max > 0 ? images * of_all * 1e9 / (double)of->total_ns_max : 0;
}

bool results_best(const struct results *results, uint64_t least_images, uint32_t *ret_period)
{
    bool is_known = false;
    for (uint32_t i = 0; i < results->period_count; i++) {
        bool is_better =
            !is_known || results_accuracy(results, i) > results_accuracy(results, *ret_period);
        if (results->periods[i].test_images >= least_images && is_better) {
            *ret_period = i;
            is_known = true;
        }
    }
    return is_known;
}

void results_close_worker(struct results *results, uint32_t rank, const struct wire_report *report)
{
    results->ranks[rank].warm_images = report->warm_images;
    results->ranks[rank].warm_ns = report->warm_ns;
    results->ranks[rank].made = report->steps;
    results->ranks[rank].is_done = true;
}

void results_close_server(struct results *results, uint32_t shard, const struct wire_report *report)
{
    results->shards[shard] = (struct results_shard){
        .bytes_sent = report->bytes_sent,
        .bytes_received = report->bytes_received,
        .busy_ns = report->compute_ns,
        .total_ns = report->total_ns,
        .backlog = report->backlog,
    };
    results->server_bytes_sent += report->bytes_sent;
    results->server_bytes_received += report->bytes_received;
    results->late_count += report->late;
    staleness_add_counts(&results->staleness, report->staleness, report->staleness_bins,
                         report->staleness_sum, report->staleness_max);
}

uint64_t results_steps_made(const struct results *results)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < results->worker_count; i++) {
        sum += results->ranks[i].made;
    }
    return results->worker_count > 0 ? sum / results->worker_count : 0;
}

void results_end_phase(struct results *results)
{
    for (uint32_t i = 0; i < results->worker_count; i++) {
        results->ranks[i].transports_before |= results->ranks[i].transports;
    }
}

uint32_t results_transports(const struct results *results)
{
    uint32_t transports = 0;
    for (uint32_t i = 0; i < results->worker_count; i++) {
        transports |= results->ranks[i].transports | results->ranks[i].transports_before;
    }
    return transports;
}

double results_images_dropped(const struct results *results)
{
    double dropped = 0;
    for (uint32_t i = 0; i < results->worker_count; i++) {
        dropped += results->ranks[i].images_dropped;
    }
    return dropped;
}

double results_images(const struct results *results)
{
    double images = -results_images_dropped(results);
    for (uint32_t i = 0; i < results->worker_count; i++) {
        images += (double)results->ranks[i].images;
    }
    return images > 0 ? images : 0;
}

bool results_period_is_complete(const struct results *results, uint32_t period)
{
    return period < results->period_count &&
           results->periods[period].report_count >= results->worker_count;
}

double results_accuracy(const struct results *results, uint32_t period)
{
    const struct results_period *at = &results->periods[period];
    return at->test_images > 0 ? (double)at->test_correct / (double)at->test_images : 0;
}

double results_seconds_until(const struct results *results, uint32_t period)
{
    double seconds = 0;
    for (uint32_t i = 0; i <= period && i < results->period_count; i++) {
        seconds += (double)results->periods[i].total_ns_max / 1e9;
    }
    return seconds;
}

/* Of a job that has failed before any worker could say what came behind its warm-up. */
static double rate_with_warm_up(const struct results *results)
{
    uint64_t ns = 0;
    for (uint32_t i = 0; i < results->worker_count; i++) {
        ns = max_u64(ns, results->ranks[i].total_ns);
    }
    return ns > 0 ? results_images(results) * 1e9 / (double)ns : 0;
}

double results_images_per_second(const struct results *results)
{
    uint64_t images = 0, warm_ns = 0, past_ns = 0;
    bool is_done = false;
    for (uint32_t i = 0; i < results->worker_count; i++) {
        const struct results_rank *rank = &results->ranks[i];
        images += rank->past_images + rank->warm_images;
        warm_ns = max_u64(warm_ns, rank->warm_ns);
        past_ns = max_u64(past_ns, rank->past_ns);
        is_done = is_done || rank->is_done;
    }
    if (!is_done) {
        return rate_with_warm_up(results);
    }
    uint64_t ns = past_ns + warm_ns; // ranks may have been with other processes until then
    return ns > 0 ? (double)images * 1e9 / (double)ns : 0;
}

double results_current_rate(const struct results *results)
{
    double rate = 0;
    for (uint32_t i = 0; i < results->worker_count; i++) {
        rate += results->ranks[i].images_per_second;
    }
    return rate;
}

double results_current_loss(const struct results *results)
{
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < results->worker_count; i++) {
        if (results->ranks[i].steps > 0 && !results->ranks[i].is_idle) {
            sum += results->ranks[i].loss;
            count++;
        }
    }
    return count > 0 ? sum / count : 0;
}

uint32_t results_slowest_rank(const struct results *results)
{
    uint32_t slowest = 0;
    for (uint32_t i = 1; i < results->worker_count; i++) {
        if (results->ranks[i].compute_ms > results->ranks[slowest].compute_ms) {
            slowest = i;
        }
    }
    return slowest;
}
