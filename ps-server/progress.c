/* Progress of a job on standard output. */
#include "ps-server/progress.h"

#include "ps-server/shard.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TERMINAL_EVERY_MS 100
#define PLAIN_EVERY_MS    5000

void progress_init(struct progress *progress, bool is_on)
{
    *progress = (struct progress){.is_on = is_on, .is_terminal = isatty(STDOUT_FILENO) != 0};
}

void progress_break(struct progress *progress)
{
    if (progress->has_line) {
        printf("\n");
        fflush(stdout);
        progress->has_line = false;
    }
}

static void format_duration(double seconds, char *ret_text, size_t text_size)
{
    unsigned long long whole = seconds > 0 ? (unsigned long long)(seconds + 0.5) : 0;
    if (whole >= 3600) {
        snprintf(ret_text, text_size, "%llu h %02llu min", whole / 3600, whole / 60 % 60);
    } else if (whole >= 60) {
        snprintf(ret_text, text_size, "%llu min %02llu s", whole / 60, whole % 60);
    } else if (seconds >= 9.95) {
        snprintf(ret_text, text_size, "%llu s", whole);
    } else {
        snprintf(ret_text, text_size, "%.1f s", seconds > 0 ? seconds : 0);
    }
}

/* What the servers keep for a seeded order: much, where the staleness is. */
static void print_history(const struct coordinator *coordinator)
{
    const struct job *job = coordinator->job;
    struct shard_config config = {
        .shard_count = 1,
        .workers = job->workers,
        .layout = coordinator->layout,
        .consistency = {.update = UPDATE_ON_PUSH},
        .has_views = strcmp(job->delay_model, "per-worker") == 0,
    };
    char why[128];
    if (order_parse(job->order, &config.order, why, sizeof(why)) == STATUS_OK &&
        shard_history_bytes(&config) > 0) {
        printf("--order %s: the servers keep %.1f MiB of %s\n", job->order,
               (double)shard_history_bytes(&config) / (1 << 20),
               config.has_views ? "views and changes" : "older versions");
    }
}

void progress_started(struct progress *progress, const struct coordinator *coordinator)
{
    if (!progress->is_on) {
        return;
    }
    const struct job *job = coordinator->job;
    printf("%s, %u worker%s", job->mode, job->workers, job->workers == 1 ? "" : "s");
    if (job->servers > 0) {
        printf(", %u server%s", job->servers, job->servers == 1 ? "" : "s");
    }
    printf(": %s (%llu parameters) on %s, %llu training and %llu test images\n", job->model,
           (unsigned long long)coordinator->parameters, job->data,
           (unsigned long long)coordinator->train_samples,
           (unsigned long long)coordinator->test_samples);
    uint64_t per_epoch = job_steps_per_epoch(job, coordinator->train_samples);
    printf("global batch %u (%u per worker), %llu steps of %llu an epoch, %s, lr %g, seed %llu\n",
           job->global_batch, job->batch,
           (unsigned long long)job_total_steps(job, coordinator->train_samples),
           (unsigned long long)per_epoch, job->optimizer, job->lr, (unsigned long long)job->seed);
    char all_reduce[128];
    if (coordinator_all_reduce(coordinator, all_reduce, sizeof(all_reduce))) {
        printf("all-reduce: %s\n", all_reduce);
    }
    char buckets[256];
    if (tuning_describe_news(&coordinator->tuning, 0, buckets, sizeof(buckets))) {
        printf("%s\n", buckets);
    }
    print_history(coordinator);
    fflush(stdout);
}

void progress_switched(struct progress *progress, const struct coordinator *coordinator)
{
    struct phases phases;
    char why[OPTION_ERROR_BYTES], buckets[256];
    progress_break(progress);
    if (!progress->is_on || phases_of(coordinator->job, coordinator->train_samples, &phases, why,
                                      sizeof(why)) != STATUS_OK) {
        return;
    }
    uint32_t index = coordinator->phase_index;
    const struct phase *phase = &phases.list[index];
    if (index > phases.trial_count) {
        printf("step %llu: on in %s\n", (unsigned long long)phase->marks.first, phase->mode);
    } else if (tuning_describe_news(&coordinator->tuning, index, buckets, sizeof(buckets))) {
        printf("%s\n", buckets);
    }
    fflush(stdout);
}

/* The step that every worker has reported; where each goes its own way, the average worker. */
static uint64_t step_of_all(const struct coordinator *coordinator)
{
    const struct results *results = &coordinator->results;
    assert(results->worker_count > 0);
    uint64_t step = results->ranks[0].step, sum = step;
    for (uint32_t i = 1; i < results->worker_count; i++) {
        step = results->ranks[i].step < step ? results->ranks[i].step : step;
        sum += results->ranks[i].step;
    }
    return job_is_free(coordinator->job) ? sum / results->worker_count : step;
}

void progress_reported(struct progress *progress, const struct coordinator *coordinator,
                       uint64_t now_ms)
{
    uint64_t every_ms = progress->is_terminal ? TERMINAL_EVERY_MS : PLAIN_EVERY_MS;
    const struct results *results = &coordinator->results;
    uint64_t step = step_of_all(coordinator);
    if (!progress->is_on || step == 0 || now_ms - progress->shown_ms < every_ms) {
        return;
    }
    bool is_first_plain = !progress->is_terminal && progress->shown_ms == 0;
    progress->shown_ms = now_ms;
    if (is_first_plain) {
        return; // its rate is that of the warm-up
    }
    uint64_t total = job_total_steps(coordinator->job, coordinator->train_samples);
    double elapsed_s = (double)(now_ms - coordinator->started_ms) / 1000;
    char eta[64], slowest[64] = "";
    format_duration(elapsed_s / (double)step * (double)(total > step ? total - step : 0), eta,
                    sizeof(eta));
    if (results->worker_count > 1) {
        uint32_t rank = results_slowest_rank(results);
        snprintf(slowest, sizeof(slowest), "  slowest worker %u (%.1f ms)", rank,
                 results->ranks[rank].compute_ms);
    }
    printf("%sepoch %llu  step %llu/%llu  loss %.4f  %.0f images/s  ETA %s%s%s",
           progress->is_terminal ? "\r\033[K" : "", (unsigned long long)results->ranks[0].epoch + 1,
           (unsigned long long)step, (unsigned long long)total, results_current_loss(results),
           results_current_rate(results), eta, slowest, progress->is_terminal ? "" : "\n");
    progress->has_line = progress->is_terminal;
    fflush(stdout);
}

void progress_epoch(struct progress *progress, const struct coordinator *coordinator,
                    uint32_t epoch)
{
    if (!progress->is_on) {
        return;
    }
    const struct results_epoch *result = &coordinator->results.epochs[epoch];
    double seconds = (double)result->total_ns_max / 1e9;
    if (progress->has_line) {
        printf("\r\033[K");
        progress->has_line = false;
    }
    if (coordinator->job->eval_every > 0) {
        printf("step %llu", (unsigned long long)phases_period_end(
                                coordinator->job, coordinator->train_samples, epoch));
    } else {
        printf("epoch %u", epoch + 1);
    }
    printf(": train loss %.4f", result->images > 0 ? result->loss_sum / (double)result->images : 0);
    if (result->test_images > 0) {
        double tested = (double)result->test_images;
        printf(", test loss %.4f, test accuracy %.2f %%", result->test_loss_sum / tested,
               100 * (double)result->test_correct / tested);
    }
    printf(", %.0f images/s, %.1f s\n", seconds > 0 ? (double)result->images / seconds : 0,
           seconds);
    fflush(stdout);
}

void progress_closing(struct progress *progress, const struct coordinator *coordinator)
{
    progress_break(progress);
    if (!progress->is_on) {
        return;
    }
    bool is_completed = coordinator->verdict == STATUS_OK;
    const char *outcome = is_completed                                 ? "completed"
                          : coordinator->verdict == STATUS_INTERRUPTED ? "interrupted"
                                                                       : "failed";
    if (coordinator->started_ms == 0) {
        printf("%s before training began: %s\n", outcome, coordinator->reason);
        fflush(stdout);
        return;
    }
    uint64_t images = 0;
    for (uint32_t i = 0; i < coordinator->results.worker_count; i++) {
        images += coordinator->results.ranks[i].images;
    }
    char seconds[64];
    format_duration((double)(coordinator->ended_ms - coordinator->started_ms) / 1000, seconds,
                    sizeof(seconds));
    if (coordinator->results.has_reached_target) {
        printf("reached a test accuracy of %g after %.1f s of training\n",
               coordinator->job->target_accuracy,
               results_seconds_until(&coordinator->results, coordinator->results.target_epoch));
    }
    printf("%s: %llu steps, %llu images in %s", outcome,
           (unsigned long long)step_of_all(coordinator), (unsigned long long)images, seconds);
    if (is_completed) {
        printf(", %.0f images/s, parameters %.12s...\n",
               results_images_per_second(&coordinator->results), coordinator->params_digest);
    } else {
        printf(": %s\n", coordinator->reason);
    }
    fflush(stdout);
}
