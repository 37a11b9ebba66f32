/* Prints the progress of a job on standard output. */
#include "ps-server/record/progress.h"

#include "common/base/number.h"
#include "common/job/job_modes.h"
#include "common/live/live_state.h"
#include "ps-server/coordinator/generation.h"
#include "ps-server/record/period_line.h"
#include "ps-server/record/progress_carriers.h"
#include "ps-server/record/summary.h"
#include "ps-server/record/unmet.h"
#include "ps-server/shard/shard.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TERMINAL_EVERY_MS 100
#define PLAIN_EVERY_MS    5000

#define LINES_LEFT 4 // of a terminal, beside those of the ranks

/* By the rules of the C library: the first of these that is set counts. */
static bool has_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0') {
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
        }
    }
    return false;
}

void progress_init(struct progress *progress, bool is_on, bool has_ranks)
{
    *progress = (struct progress){.is_on = is_on,
                                  .is_terminal = isatty(STDOUT_FILENO) != 0,
                                  .has_ranks = has_ranks,
                                  .has_blocks = has_utf8()};
}

void progress_break(struct progress *progress)
{
    if (progress->has_line) {
        printf("\n");
        fflush(stdout);
        progress->has_line = false;
        progress->rank_lines = 0;
    }
}

/* Removes the lines that are rewritten, so that others can take their place. */
static void erase_lines(struct progress *progress)
{
    if (progress->has_line && progress->rank_lines > 0) {
        printf("\033[%uA", progress->rank_lines);
    }
    if (progress->is_terminal) {
        printf("\r\033[J");
    }
    progress->has_line = false;
    progress->rank_lines = 0;
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
        .has_views = job->delay_model == DELAY_MODEL_PER_WORKER,
    };
    char why[128];
    if (order_parse(job->order, &config.order, why, sizeof(why)) == STATUS_OK &&
        shard_history_bytes(&config) > 0) {
        char size[NUMBER_SIZE_BYTES];
        number_describe_size(shard_history_bytes(&config), size);
        printf("--order %s: the servers keep %s of %s\n", job->order, size,
               config.has_views ? "views and changes" : "older versions");
    }
}

static void print_batches(const struct job *job)
{
    uint32_t least = job->global_batch / job->workers;
    printf("global batch %u (%u", job->global_batch, job->batch);
    if (least != job->batch) {
        printf(" or %u", least);
    }
    printf(" per worker), ");
}

/* The end of a noun behind a number. */
static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* "236 steps (2 epochs of 118)", "50 steps (0.42 of an epoch of 118)" */
static void print_length(const struct job *job, uint64_t samples)
{
    if (job_is_open(job)) {
        printf("as many steps as its program makes, ");
        return;
    }
    uint64_t per_epoch = job_steps_per_epoch(job, samples), total = job_total_steps(job, samples);
    if (job_is_external(job)) {
        printf("%llu step%s, ", (unsigned long long)total, plural(total));
        return;
    }
    double epochs = (double)total / (double)(per_epoch > 0 ? per_epoch : 1);
    const char *unit = epochs > 1 ? "epochs" : total == per_epoch ? "epoch" : "of an epoch";
    printf("%llu step%s (%.4g %s of %llu), ", (unsigned long long)total, plural(total), epochs,
           unit, (unsigned long long)per_epoch);
}

/* The learning rate that was asked for, and the one that results. */
static void print_rate(const struct job *job, uint64_t samples)
{
    const struct schedule schedule = job_schedule(job, samples);
    if (job->optimizer == OPTIMIZER_AUTO) { // the program makes the updates, at any rate it likes
        printf(JOB_OPTIMIZER_OF_PROGRAM " optimizer, seed %llu\n", (unsigned long long)job->seed);
        return;
    }
    printf("%s, lr %g (effective %g", job_optimizer_text(job), job->lr, schedule.base_rate);
    if (job->lr_scale != LR_SCALE_NONE) {
        printf(": %s, %u workers", lr_scale_choices[job->lr_scale].name, job->lr_workers);
    }
    printf(")");
    if (schedule.warmup_steps > 0) {
        printf(", warm-up from %g over %llu step%s", schedule.start_rate,
               (unsigned long long)schedule.warmup_steps, plural(schedule.warmup_steps));
    }
    if (schedule.kind != SCHEDULE_CONSTANT) {
        printf(", then %s", lr_schedule_choices[job->lr_schedule].name);
    }
    printf(", seed %llu\n", (unsigned long long)job->seed);
}

/* How many images of an epoch fill no global batch, in jobs of at least one epoch. */
static void print_left_out(const struct job *job, uint64_t samples)
{
    uint64_t left_out = samples % job->global_batch;
    if (left_out > 0 && job_total_steps(job, samples) >= job_steps_per_epoch(job, samples)) {
        printf("an epoch leaves out %llu of the %llu training images, which fill no global batch; "
               "which ones depends on the epoch\n",
               (unsigned long long)left_out, (unsigned long long)samples);
    }
}

/* Of a program's own data nobody knows how many there are. */
static void print_model(const struct coordinator *coordinator)
{
    const struct job *job = coordinator->job;
    printf(": %s", job->model);
    if (coordinator->parameters > 0) { // a program of one's own may have no model
        printf(" (%llu parameters)", (unsigned long long)coordinator->parameters);
    }
    if (!job_is_external(job)) {
        unsigned long long train = coordinator->train_samples, test = coordinator->test_samples;
        printf(" on %s, %llu training and %llu test images", job->data, train, test);
    }
    printf("\n");
}

/* In processes before this one. */
static bool has_trained(const struct coordinator *coordinator)
{
    const struct generation *generation = coordinator->generation;
    return coordinator->restarts_before > 0 ||
           (generation != NULL && generation->seconds_before > 0);
}

static void print_resumed(const struct coordinator_resume *resume)
{
    printf("the job goes on from the checkpoint of step %llu", (unsigned long long)resume->step);
    if (resume->passed_over > 0) {
        printf("; %u newer %s passed over, as the log of ps says", resume->passed_over,
               resume->passed_over == 1 ? "one was" : "ones were");
    }
    printf("\n");
}

static void print_unmet(void *context, const char *sentence)
{
    (void)context;
    printf("%s\n", sentence);
}

void progress_started(struct progress *progress, const struct coordinator *coordinator,
                      const struct job *asked)
{
    if (!progress->is_on) {
        return;
    }
    const struct job *job = coordinator->job;
    printf("%s, %u worker%s", mode_text(job->mode).text, job->workers, plural(job->workers));
    if (job->servers > 0) {
        printf(", %u server%s", job->servers, plural(job->servers));
    }
    print_model(coordinator);
    progress_say_carriers(coordinator);
    progress_say_bound(job);
    print_batches(job);
    print_length(job, coordinator->train_samples);
    print_rate(job, coordinator->train_samples);
    unmet_tell_optimizer(coordinator, asked, print_unmet, NULL);
    print_left_out(job, coordinator->train_samples);
    char all_reduce[128];
    if (coordinator_all_reduce(coordinator, all_reduce, sizeof(all_reduce))) {
        printf("all-reduce: %s%s\n", all_reduce,
               job_has_nccl(job) ? ", in its own order of summation: the bits are NCCL's. Its "
                                   "connections have no keys"
                                 : "");
    }
    char buckets[256];
    if (tuning_describe_news(&coordinator->tuning, 0, buckets, sizeof(buckets))) {
        printf("%s\n", buckets);
    }
    print_history(coordinator);
    if (coordinator->resume != NULL) {
        print_resumed(coordinator->resume);
    } else if (has_trained(coordinator)) {
        printf("the job begins again: there is no checkpoint to go on from\n");
    }
    fflush(stdout);
}

void progress_nothing_left(struct progress *progress, const char *folder, bool may_go_on)
{
    if (progress->is_on) {
        printf("the job in %s is complete: nothing is left to do (%sanother --out begins anew)\n",
               folder, may_go_on ? "more --epochs go on with it, " : "");
        fflush(stdout);
    }
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
    if (index >= phases.count) {
        return; // which workers have counted to, and the job has not
    }
    const struct phase *phase = &phases.list[index];
    if (index > phases.trial_count) {
        printf("step %llu: on in %s\n", (unsigned long long)phase->marks.first,
               mode_text(phase->mode).text);
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
    return job_is_unsynchronised(coordinator->job) ? sum / results->worker_count : step;
}

void progress_gone_on(struct progress *progress, const struct coordinator *coordinator)
{
    progress_break(progress);
    if (!progress->is_on) {
        return;
    }
    const struct generation *generation = coordinator->generation;
    const struct recovery *last = &generation->recoveries[generation->recovery_count - 1];
    printf("the job goes on from step %llu%s, %.1f s after it: %s\n",
           (unsigned long long)last->begin_step,
           last->is_in_place ? ", in place (servers keep what they have)" : "", last->seconds,
           last->reason);
    progress_say_carriers(coordinator);
    fflush(stdout);
}

/* A line that stays one: what would wrap could not be taken back. */
static void print_rank_line(struct progress *progress, unsigned columns, const char *text)
{
    // The last column stays free, as live_line_format has it.
    printf("%.*s\n", columns > 0 ? (int)columns - 1 : INT_MAX, text);
    progress->rank_lines++;
}

/* A line for each rank, as far as the terminal has room beside the other lines. */
static void print_ranks(struct progress *progress, const struct results *results,
                        const struct winsize *size)
{
    char line[128];
    unsigned rows = size->ws_row;
    uint32_t count = results->worker_count;
    uint32_t most = rows > LINES_LEFT ? rows - LINES_LEFT : 1;
    for (uint32_t i = 0; i < count && i < most; i++) {
        const struct results_rank *rank = &results->ranks[i];
        snprintf(line, sizeof(line),
                 "  rank %-3u  step %-6llu  loss %.4f  %6.0f images/s  computing %.1f ms", i,
                 (unsigned long long)rank->step, rank->loss, rank->images_per_second,
                 rank->compute_ms);
        print_rank_line(progress, size->ws_col, line);
    }
    if (count > most) {
        snprintf(line, sizeof(line), "  and %u rank%s more, which the terminal has no lines for",
                 count - most, plural(count - most));
        print_rank_line(progress, size->ws_col, line);
    }
}

static void print_live(struct progress *progress, const struct results *results,
                       struct live_line *line)
{
    char text[LIVE_LINE_BYTES];
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) {
        size = (struct winsize){0}; // not known
    }
    line->columns = size.ws_col;
    line->has_blocks = progress->has_blocks;
    line->curve = &progress->curve;
    live_line_format(line, text);
    erase_lines(progress);
    if (progress->has_ranks) {
        print_ranks(progress, results, &size);
    }
    printf("%s", text);
    progress->has_line = true;
}

/* "  ETA 3 min"; "" if nobody knows the job's length. */
static void format_eta(double elapsed_s, uint64_t step, uint64_t total, char *ret_text, size_t size)
{
    char rest[64];
    ret_text[0] = '\0';
    if (total > 0) {
        format_duration(elapsed_s / (double)step * (double)(total > step ? total - step : 0), rest,
                        sizeof(rest));
        snprintf(ret_text, size, "  ETA %s", rest);
    }
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
    uint64_t total = job_known_steps(coordinator->job, coordinator->train_samples);
    char eta[96], slowest[64] = "", of_all[LIVE_STEP_BYTES];
    format_eta(generation_seconds(coordinator, now_ms), step, total, eta, sizeof(eta));
    live_step_text(step, total, "/", of_all);
    if (coordinator->carriers.processes > 1) {
        uint32_t rank = results_slowest_rank(results);
        snprintf(slowest, sizeof(slowest), "  slowest worker %u (%.1f ms)",
                 carriers_process(coordinator->carriers, rank), results->ranks[rank].compute_ms);
    }
    char facts[128], rest[192];
    snprintf(facts, sizeof(facts), "epoch %llu  step %s  loss %.4f",
             (unsigned long long)results->ranks[0].epoch + 1, of_all,
             results_current_loss(results));
    snprintf(rest, sizeof(rest), "  %.0f images/s%s%s", results_current_rate(results), eta,
             slowest);
    live_line_add_loss(&progress->curve, step, total, results_current_loss(results));
    if (progress->is_terminal) {
        struct live_line line = {.step = step, .total = total, .facts = facts, .rest = rest};
        print_live(progress, results, &line);
    } else {
        printf("%s%s\n", facts, rest);
    }
    fflush(stdout);
}

void progress_period(struct progress *progress, const struct coordinator *coordinator,
                     uint32_t epoch)
{
    char line[PERIOD_LINE_BYTES];
    if (!progress->is_on) {
        return;
    }
    if (progress->has_line) {
        erase_lines(progress);
    }
    period_line_format(coordinator, epoch, line);
    printf("%s\n", line);
    fflush(stdout);
}

/* A job goes on without its checkpoints, and must not end without a word of that. */
static void print_failed_checkpoint(const struct checkpointing *checkpointing)
{
    if (!checkpointing->has_failed) {
        return;
    }
    printf(
        "the newest checkpoint could not be written (the coordinator's log, ps-0.log, says why); ");
    if (checkpointing->written > 0) {
        printf("the last good one is of step %llu\n", (unsigned long long)checkpointing->written);
    } else {
        printf("there is none\n");
    }
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
    if (generation_started_ms(coordinator) == 0) {
        printf("%s before training %s: %s\n", outcome,
               coordinator->resume != NULL ? "went on" : "began", coordinator->reason);
        fflush(stdout);
        return;
    }
    double dropped = results_images_dropped(&coordinator->results);
    char seconds[64];
    format_duration(generation_seconds(coordinator, coordinator->ended_ms), seconds,
                    sizeof(seconds)); // also below coordinators before this one
    if (coordinator->results.has_reached_target) {
        printf("reached a test accuracy of %g after %.1f s of training\n",
               coordinator->job->target_accuracy,
               results_seconds_until(&coordinator->results, coordinator->results.target_period));
    }
    print_failed_checkpoint(&coordinator->checkpointing);
    unmet_tell(coordinator, print_unmet, NULL);
    double images = results_images(&coordinator->results);
    bool has_images =
        images > 0 || !job_is_external(coordinator->job); // some programs tell of none
    uint64_t steps = summary_steps(coordinator);
    printf("%s: %llu step%s", outcome, (unsigned long long)steps, plural(steps));
    if (has_images) {
        printf(", %.0f images", images);
    }
    printf(" in %s", seconds);
    if (dropped > 0) {
        printf(" (%.0f more came too late for an update, and were dropped)", dropped);
    }
    if (is_completed && has_images) {
        printf(", %.0f images/s", results_images_per_second(&coordinator->results));
    }
    printf(is_completed ? ", parameters %.12s...\n" : ": %s\n",
           is_completed ? coordinator->params_digest : coordinator->reason);
    fflush(stdout);
}
