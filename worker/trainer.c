/* One training step, and the loop around it. */
#include "worker/trainer.h"

#include "common/clock.h"
#include "common/digest.h"
#include "common/endpoints.h"
#include "common/log.h"
#include "common/optimizer.h"
#include "common/schedule.h"
#include "worker/data/batcher.h"
#include "worker/evaluator.h"
#include "worker/model/model.h"
#include "worker/straggling.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Batches that the loader is ahead.
#define READ_AHEAD 4

// Steps that the job's speed leaves out: at most so many, at most a fifth of all.
#define WARMUP_STEPS_MAX 10

struct trainer {
    const struct job *job;
    uint32_t rank;
    struct model *model;
    struct batcher *batcher;
    struct evaluator *evaluator;
    struct optimizer *optimizer; // NULL where the exchange delivers parameters
    struct exchange *exchange;   // of the link; borrowed for the run
    struct schedule schedule;
    uint64_t steps_per_epoch, step_count, warmup_steps;
    uint64_t train_samples, test_samples, data_digest;
    bool is_free;           // every push is an update: the servers say when an epoch has ended
    uint64_t epochs_closed; // is_free only
    struct straggling straggling;
    char digest[DIGEST_TEXT_BYTES];
    char device[32];

    // Of the step that ends: its number, and the time that its updates took.
    uint64_t step, apply_ns;

    // What has not been reported yet: of the interval, and of the epoch.
    struct wire_report interval, epoch;
    uint64_t warm_images, warm_ns;
    uint64_t sent_before, received_before;
};

/* Where the time of one step went. */
struct step_times {
    uint64_t input_ns, compute_ns, exchange_ns;
};

static uint64_t lap(uint64_t *since_ns)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t passed_ns = now_ns - *since_ns;
    *since_ns = now_ns;
    return passed_ns;
}

static enum status backward_and_send(struct trainer *trainer)
{
    // Each bucket travels while the next one is computed.
    uint32_t bucket_count = model_layout(trainer->model)->bucket_count;
    for (uint32_t bucket = 0; bucket < bucket_count; bucket++) {
        enum status status = model_backward(trainer->model, bucket);
        if (status != STATUS_OK) {
            return status;
        }
        exchange_bucket_ready(trainer->exchange, bucket);
    }
    return STATUS_OK;
}

/* One optimizer update of one bucket, from its mean gradient: where the exchange delivers that. */
static void apply_gradients(void *context, uint32_t bucket)
{
    struct trainer *trainer = context;
    uint64_t clock_ns = clock_now_ns();
    struct span span = model_layout(trainer->model)->buckets[bucket];
    optimizer_apply(trainer->optimizer, span, model_params(trainer->model) + span.offset,
                    model_grads(trainer->model) + span.offset, trainer->step + 1,
                    schedule_rate(&trainer->schedule, trainer->step));
    trainer->apply_ns += lap(&clock_ns);
}

/* Every rank's gradient is scaled so that their mean is that of the global batch, also where the
 * slices differ by a sample. Where each is an update of its own, it is the mean of its slice. */
static float gradient_scale(const struct trainer *trainer, const struct batch *batch)
{
    if (trainer->is_free) {
        return 1.0f / (float)batch->count;
    }
    return (float)trainer->job->workers / (float)trainer->job->global_batch;
}

static enum status trainer_step(struct trainer *trainer, uint64_t step, double *ret_loss_sum,
                                struct step_times *ret_times)
{
    uint64_t clock_ns = clock_now_ns();
    struct batch batch;
    enum status status = batcher_next(trainer->batcher, &batch);
    if (status != STATUS_OK) {
        return status;
    }
    ret_times->input_ns = lap(&clock_ns);

    status = exchange_begin_step(trainer->exchange, step);
    if (status != STATUS_OK) {
        return status;
    }
    ret_times->exchange_ns = lap(&clock_ns);
    straggling_wait(&trainer->straggling, trainer->exchange, step);

    struct program_input input = {
        .pixels = batch.pixels,
        .labels = batch.labels,
        .sample_keys = batch.sample_keys,
        .count = batch.count,
        .gradient_scale = gradient_scale(trainer, &batch),
        .is_training = true,
    };
    struct program_result result;
    status = model_forward(trainer->model, &input, &result);
    if (status != STATUS_OK) {
        return status;
    }
    if (!isfinite(result.loss_sum)) {
        return STATUS_NOT_FINITE;
    }
    status = backward_and_send(trainer);
    if (status != STATUS_OK) {
        return status;
    }
    ret_times->compute_ns = lap(&clock_ns);

    trainer->step = step;
    trainer->apply_ns = 0;
    status = exchange_end_step(trainer->exchange, apply_gradients, trainer);
    if (status != STATUS_OK) {
        return status;
    }
    if (trainer->is_free) {
        // The next parameters come with how far the job is: to be known before the next batch.
        status = exchange_settle(trainer->exchange);
        if (status != STATUS_OK) {
            return status;
        }
    }
    ret_times->exchange_ns += lap(&clock_ns) - trainer->apply_ns;
    ret_times->compute_ns += trainer->apply_ns;
    straggling_note(&trainer->straggling, ret_times->compute_ns);
    *ret_loss_sum = result.loss_sum;
    return STATUS_OK;
}

static void add_step(struct wire_report *report, uint32_t images, double loss_sum,
                     const struct step_times *times, uint64_t total_ns)
{
    report->steps++;
    report->images += images;
    report->loss_sum += loss_sum;
    report->input_wait_ns += times->input_ns;
    report->compute_ns += times->compute_ns;
    report->exchange_wait_ns += times->exchange_ns;
    report->total_ns += total_ns;
}

static void report_interval(struct trainer *trainer, struct link *link, uint64_t step)
{
    uint64_t sent, received;
    link_traffic(link, &sent, &received);
    trainer->interval.bytes_sent = sent - trainer->sent_before;
    trainer->interval.bytes_received = received - trainer->received_before;
    trainer->sent_before = sent;
    trainer->received_before = received;
    uint64_t epoch =
        trainer->is_free ? trainer->epochs_closed : (step - 1) / trainer->steps_per_epoch;
    link_report(link, step, epoch, &trainer->interval);
    trainer->interval = (struct wire_report){0};
}

static uint64_t epoch_count(const struct trainer *trainer)
{
    return (trainer->step_count + trainer->steps_per_epoch - 1) / trainer->steps_per_epoch;
}

/* Closes an epoch: every worker evaluates its part of the test set on the same parameters. */
static enum status close_epoch(struct trainer *trainer, struct link *link, uint64_t step,
                               bool is_evaluated)
{
    enum status status = exchange_settle(trainer->exchange);
    if (status != STATUS_OK) {
        return status;
    }
    if (is_evaluated) {
        status = evaluator_run(trainer->evaluator, &trainer->epoch);
        if (status != STATUS_OK) {
            return status;
        }
    }
    trainer->epoch.is_epoch = true;
    link_report(link, step, (step - 1) / trainer->steps_per_epoch, &trainer->epoch);
    trainer->epoch = (struct wire_report){0};
    return STATUS_OK;
}

/* Closes an epoch that the servers have ended: evaluates what they kept of it. */
static enum status close_free_epoch(struct trainer *trainer, struct link *link, uint64_t step)
{
    uint64_t epoch = ++trainer->epochs_closed;
    bool is_last = epoch == epoch_count(trainer);
    bool is_whole = !is_last || trainer->step_count % trainer->steps_per_epoch == 0;
    bool is_evaluated = (is_whole && strcmp(trainer->job->eval, "epoch") == 0) ||
                        (is_last && strcmp(trainer->job->eval, "end") == 0);
    enum status status = STATUS_OK;
    if (is_evaluated || is_last) {
        status = exchange_pull(trainer->exchange, epoch);
    }
    if (status == STATUS_OK && is_evaluated) {
        status = evaluator_run(trainer->evaluator, &trainer->epoch);
    }
    if (status != STATUS_OK) {
        return status;
    }
    trainer->epoch.is_epoch = true;
    link_report(link, step, epoch - 1, &trainer->epoch);
    trainer->epoch = (struct wire_report){0};
    // What was evaluated is not what to go on with.
    return is_evaluated && !is_last ? exchange_pull(trainer->exchange, 0) : STATUS_OK;
}

/* What follows a step where every push is an update: others may have brought the job on. */
static enum status after_free_step(struct trainer *trainer, struct link *link, uint64_t step)
{
    link_set_step(link, step);
    enum status status = STATUS_OK;
    trainer->interval.staleness_sum += exchange_staleness(trainer->exchange);
    uint64_t passed = exchange_epochs_passed(trainer->exchange);
    bool is_last = passed >= epoch_count(trainer);
    if (is_last || step % trainer->job->report_every == 0) {
        report_interval(trainer, link, step);
    }
    while (status == STATUS_OK && trainer->epochs_closed < passed &&
           trainer->epochs_closed < epoch_count(trainer)) {
        status = close_free_epoch(trainer, link, step);
    }
    return status;
}

static bool is_over(const struct trainer *trainer, uint64_t step)
{
    return trainer->is_free ? trainer->epochs_closed == epoch_count(trainer)
                            : step == trainer->step_count;
}

/* What follows a step: sums, reports, the end of an epoch. `step` counts those that are done. */
static enum status after_step(struct trainer *trainer, struct link *link, uint64_t step)
{
    bool is_last = step == trainer->step_count;
    bool is_epoch_end = step % trainer->steps_per_epoch == 0;
    link_set_step(link, step);
    if (is_last || step % trainer->job->report_every == 0) {
        report_interval(trainer, link, step);
    }
    if (!is_epoch_end && !is_last) {
        return STATUS_OK;
    }
    bool is_evaluated = (is_epoch_end && strcmp(trainer->job->eval, "epoch") == 0) ||
                        (is_last && strcmp(trainer->job->eval, "end") == 0);
    return close_epoch(trainer, link, step, is_evaluated);
}

static enum status train(struct trainer *trainer, struct link *link, uint64_t *ret_step)
{
    uint32_t images = job_batch_of(trainer->job, trainer->rank);
    for (uint64_t step = 0; !is_over(trainer, step); step++) {
        *ret_step = step;
        uint64_t started_ns = clock_now_ns();
        struct step_times times;
        double loss_sum;
        enum status status = trainer_step(trainer, step, &loss_sum, &times);
        if (status != STATUS_OK) {
            return status;
        }
        uint64_t total_ns = lap(&started_ns);
        add_step(&trainer->interval, images, loss_sum, &times, total_ns);
        add_step(&trainer->epoch, images, loss_sum, &times, total_ns);
        if (step >= trainer->warmup_steps) {
            trainer->warm_images += images;
            trainer->warm_ns += total_ns;
        }
        status = trainer->is_free ? after_free_step(trainer, link, step + 1)
                                  : after_step(trainer, link, step + 1);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return exchange_settle(trainer->exchange);
}

static void say_why_not(const struct trainer *trainer, struct link *link, uint64_t step,
                        enum status status)
{
    char text[256];
    if (status == STATUS_NOT_FINITE) {
        snprintf(
            text, sizeof(text),
            "the loss is not finite at step %llu: try a lower --lr than %g, or --warmup-epochs",
            (unsigned long long)step, trainer->job->lr);
    } else {
        snprintf(text, sizeof(text), "step %llu failed: %s", (unsigned long long)step,
                 status_text(status));
    }
    log_error("%s", text);
    link_leave(link, status, text);
}

enum status trainer_run(struct trainer *trainer, struct link *link)
{
    trainer->exchange = link_exchange(link);
    uint64_t step = 0;
    enum status status = train(trainer, link, &step);
    enum status ending = exchange_stopped(trainer->exchange);
    if (status != STATUS_OK && status == ending) {
        return link_verdict(link); // the job was ended elsewhere: the coordinator knows
    }
    if (status != STATUS_OK) {
        say_why_not(trainer, link, step, status);
        return status;
    }
    struct wire_report report = {.warm_images = trainer->warm_images, .warm_ns = trainer->warm_ns};
    digest_floats(model_params(trainer->model), model_layout(trainer->model)->value_count,
                  trainer->digest);
    link_done(link, trainer->step_count, &report, trainer->digest);
    return link_verdict(link);
}

static enum conv_algorithm conv_find(const char *name)
{
    if (strcmp(name, "direct") == 0) {
        return CONV_DIRECT;
    }
    return strcmp(name, "winograd") == 0 ? CONV_WINOGRAD : CONV_AUTO;
}

static enum status create_model(struct trainer *trainer, struct device *device,
                                const struct dataset *train)
{
    const struct job *job = trainer->job;
    bool has_peers = job->servers > 0 || job->workers > 1;
    struct model_options options = {
        .name = job->model,
        .input = train->sample,
        .class_count = train->class_count,
        .batch_size = job_batch_of(job, trainer->rank),
        .seed = job->seed,
        .bucket_bytes = (uint64_t)(job->bucket_mb * 1024 * 1024),
        .conv = conv_find(job->conv),
        .has_region = has_peers && endpoints_may_share(job->transport),
    };
    enum status status = model_create(&options, device, &trainer->model);
    if (status != STATUS_OK) {
        return status;
    }
    const struct layout *layout = model_layout(trainer->model);
    digest_floats(model_params(trainer->model), layout->value_count, trainer->digest);
    if (exchange_find(job->mode)->delivers == EXCHANGE_GRADIENTS) {
        status = optimizer_create(job->optimizer, &job->settings, layout->value_count,
                                  &trainer->optimizer);
    }
    return status;
}

static enum status create_batches(struct trainer *trainer, const struct dataset *train,
                                  const struct dataset *test)
{
    const struct job *job = trainer->job;
    trainer->steps_per_epoch = job_steps_per_epoch(job, trainer->train_samples);
    trainer->step_count = job_total_steps(job, trainer->train_samples);
    if (trainer->steps_per_epoch == 0) {
        log_error("the %llu training samples are fewer than one global batch of %u: make "
                  "--global-batch smaller",
                  (unsigned long long)trainer->train_samples, job->global_batch);
        return STATUS_INVALID;
    }
    trainer->warmup_steps = trainer->step_count / 5;
    if (trainer->warmup_steps > WARMUP_STEPS_MAX) {
        trainer->warmup_steps = WARMUP_STEPS_MAX;
    }
    struct batcher_options options = {
        .batch_size = job_batch_of(job, trainer->rank),
        .global_batch = job->global_batch,
        .rank = trainer->rank,
        .world = job->workers,
        .seed = job->seed,
        .sample_count = trainer->train_samples,
        .is_local = strcmp(job->shard, "local") == 0,
        .is_training = true,
        .depth = READ_AHEAD,
    };
    enum status status = batcher_create(&options, train, &trainer->batcher);
    if (status != STATUS_OK) {
        return status;
    }
    options.is_training = options.is_local = false;
    options.sample_count = trainer->test_samples;
    options.depth = 1;
    return evaluator_create(&options, test, trainer->model, &trainer->evaluator);
}

/* The first `limit` samples, if there is a limit. */
static uint64_t limit_samples(uint64_t count, uint64_t limit)
{
    return limit > 0 && limit < count ? limit : count;
}

enum status trainer_create(const struct job *job, uint32_t rank, struct device *device,
                           const struct dataset *train, const struct dataset *test,
                           struct trainer **ret_trainer)
{
    struct trainer *trainer = calloc(1, sizeof(*trainer));
    if (trainer == NULL) {
        return STATUS_NO_MEMORY;
    }
    trainer->job = job;
    trainer->rank = rank;
    trainer->is_free = job_updates_on_push(job);
    straggling_init(&trainer->straggling, job, rank);
    trainer->train_samples = limit_samples(train->sample_count, job->limit_train);
    trainer->test_samples = limit_samples(test->sample_count, job->limit_test);
    trainer->data_digest = dataset_digest(train, trainer->train_samples, LAYOUT_DIGEST_SEED);
    trainer->data_digest = dataset_digest(test, trainer->test_samples, trainer->data_digest);
    trainer->schedule = job_schedule(job, trainer->train_samples);
    snprintf(trainer->device, sizeof(trainer->device), "%s", device->ops->name);
    enum status status = create_model(trainer, device, train);
    if (status == STATUS_OK) {
        status = create_batches(trainer, train, test);
    }
    if (status != STATUS_OK) {
        log_error("cannot prepare training of %s on %s: %s", job->model, job->data,
                  status_text(status));
        trainer_destroy(trainer);
        return status;
    }
    *ret_trainer = trainer;
    return STATUS_OK;
}

void trainer_destroy(struct trainer *trainer)
{
    if (trainer == NULL) {
        return;
    }
    evaluator_destroy(trainer->evaluator);
    batcher_destroy(trainer->batcher);
    optimizer_destroy(trainer->optimizer);
    model_destroy(trainer->model);
    free(trainer);
}

void trainer_describe(const struct trainer *trainer, struct link_prepared *ret_prepared)
{
    *ret_prepared = (struct link_prepared){
        .layout = model_layout(trainer->model),
        .params = model_params(trainer->model),
        .grads = model_grads(trainer->model),
        .region = model_region(trainer->model),
        .params_digest = trainer->digest,
        .device = trainer->device,
        .train_samples = trainer->train_samples,
        .test_samples = trainer->test_samples,
        .data_digest = trainer->data_digest,
    };
}

void trainer_describe_program(const struct trainer *trainer, char *ret_text, size_t text_size)
{
    model_describe(trainer->model, ret_text, text_size);
}
