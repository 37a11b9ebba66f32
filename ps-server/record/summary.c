/* Builds the JSON trees of metrics.jsonl, summary.json and details.json. */
#include "ps-server/record/summary.h"

#include "common/job/job_modes.h"
#include "common/job/phases.h"
#include "ps-server/coordinator/generation.h"
#include "ps-server/record/job_record.h"
#include "ps-server/record/recoveries.h"
#include "ps-server/record/unmet.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TRANSPORT_BYTES JOB_NAME_BYTES

static json_t *integer(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static json_t *times_json(uint64_t compute_ns, uint64_t exchange_ns, uint64_t input_ns,
                          uint64_t total_ns, uint64_t steps)
{
    double unit = 1e6 * (double)steps;
    return json_pack("{s:f, s:f, s:f, s:f}", "compute", ratio((double)compute_ns, unit),
                     "exchange_wait", ratio((double)exchange_ns, unit), "input_wait",
                     ratio((double)input_ns, unit), "total", ratio((double)total_ns, unit));
}

/* What went on beside the times of steps, hidden behind them where all goes well. */
static void add_hidden(json_t *times, uint64_t copy_ns, uint64_t wire_ns, uint64_t steps)
{
    double unit = 1e6 * (double)steps;
    json_object_set_new(times, "copy", json_real(ratio((double)copy_ns, unit)));
    json_object_set_new(times, "wire", json_real(ratio((double)wire_ns, unit)));
}

/* null for a value that is no JSON number, such as the loss after parameters have diverged,
 * or what nobody knows. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *summary_metrics_json(uint32_t rank, const struct metrics_line *line)
{
    const struct wire_report *report = &line->report;
    json_t *times = times_json(report->compute_ns, report->exchange_wait_ns, report->input_wait_ns,
                               report->total_ns, report->steps);
    add_hidden(times, report->copy_ns, report->wire_ns, report->steps);
    // Of a rank that is left out nobody computes one.
    json_t *loss =
        report->images > 0 ? json_real(report->loss_sum / (double)report->images) : json_null();
    json_t *tree = json_pack(
        "{s:i, s:I, s:I, s:I, s:f, s:o, s:o, s:f, s:f, s:o, s:I, s:I, s:o}", "rank", (int)rank,
        "step", (json_int_t)line->step, "steps", (json_int_t)report->steps, "epoch",
        (json_int_t)line->epoch + 1, "seconds", line->seconds, "lr", number(report->rate), "loss",
        loss, "images_per_second",
        ratio(results_images_used(report) * 1e9, (double)report->total_ns), "images_dropped",
        report->images_dropped, "ms", times, "bytes_sent", (json_int_t)report->bytes_sent,
        "bytes_received", (json_int_t)report->bytes_received, "staleness",
        number(ratio(report->staleness_sum, (double)report->steps)));
    if (line->is_restored) {
        json_object_set_new(tree, "restored", json_true());
    }
    return tree;
}

static uint64_t step_at(const struct coordinator *coordinator, uint32_t epoch)
{
    return results_period_end(&coordinator->results, coordinator->job, coordinator->train_samples,
                              epoch);
}

static uint64_t steps_per_epoch(const struct coordinator *coordinator)
{
    uint64_t steps = job_steps_per_epoch(coordinator->job, coordinator->train_samples);
    return steps > 0 ? steps : 1;
}

/* From 1. Of a program of its own, whose epochs nobody knows: the number of its evaluation. */
static uint64_t epoch_number(const struct coordinator *coordinator, uint32_t index)
{
    uint64_t end = step_at(coordinator, index), last_step = end > 0 ? end - 1 : 0;
    return job_is_external(coordinator->job) ? index + 1
                                             : last_step / steps_per_epoch(coordinator) + 1;
}

/* How many epochs were done at the end of a period; null if nobody knows. */
static json_t *epochs_done_json(const struct coordinator *coordinator, uint32_t index)
{
    return job_is_external(coordinator->job) ? json_null()
                                             : json_real((double)step_at(coordinator, index) /
                                                         (double)steps_per_epoch(coordinator));
}

static json_t *epoch_json(const struct coordinator *coordinator, uint32_t index)
{
    const struct results_period *epoch = &coordinator->results.periods[index];
    json_t *train_loss = json_null(), *test_loss = json_null(), *test_accuracy = json_null();
    if (epoch->images > 0) { // some programs tell of none
        train_loss = number(epoch->loss_sum / (double)epoch->images);
    }
    if (epoch->test_images > 0) {
        test_loss = number(epoch->test_loss_sum / (double)epoch->test_images);
        test_accuracy = json_real(results_accuracy(&coordinator->results, index));
    }
    return json_pack("{s:I, s:o, s:o, s:o, s:I, s:f, s:f}", "epoch",
                     (json_int_t)epoch_number(coordinator, index), "train_loss", train_loss,
                     "test_loss", test_loss, "test_accuracy", test_accuracy, "test_images",
                     (json_int_t)epoch->test_images, "seconds", (double)epoch->total_ns_max / 1e9,
                     "images_per_second", results_period_rate(&coordinator->results, index));
}

static json_t *epochs_json(const struct coordinator *coordinator, bool has_steps)
{
    const struct results *results = &coordinator->results;
    json_t *epochs = json_array();
    for (uint32_t i = 0; i < results->period_count; i++) {
        // Of a program's processes maybe only some evaluate.
        if (!job_is_external(coordinator->job) && !results_period_is_complete(results, i)) {
            continue;
        }
        json_t *epoch = epoch_json(coordinator, i);
        if (has_steps) {
            json_object_set_new(epoch, "step", integer(step_at(coordinator, i)));
            json_object_set_new(epoch, "epochs_done", epochs_done_json(coordinator, i));
        }
        json_array_append_new(epochs, epoch);
    }
    return epochs;
}

/* Sums over the workers. */
static struct results_rank totals(const struct results *results)
{
    struct results_rank sum = {0};
    for (uint32_t i = 0; i < results->worker_count; i++) {
        const struct results_rank *rank = &results->ranks[i];
        sum.steps += rank->steps;
        sum.compute_ns += rank->compute_ns;
        sum.exchange_wait_ns += rank->exchange_wait_ns;
        sum.input_wait_ns += rank->input_wait_ns;
        sum.total_ns += rank->total_ns;
        sum.copy_ns += rank->copy_ns;
        sum.wire_ns += rank->wire_ns;
        sum.bytes_sent += rank->bytes_sent;
        sum.bytes_received += rank->bytes_received;
    }
    return sum;
}

/* In synchronous modes every gradient is applied to the parameters that it was computed on.
 * Elsewhere each shard has counted its own updates. */
static json_t *staleness_json(const struct results *results, uint64_t steps)
{
    json_t *histogram = json_array();
    bool is_counted = results->staleness.total > 0;
    for (uint32_t i = 0; is_counted && i < staleness_bins(&results->staleness); i++) {
        json_array_append_new(histogram, integer(results->staleness.counts[i]));
    }
    if (!is_counted) {
        json_array_append_new(histogram, integer(steps));
    }
    return json_pack("{s:f, s:I, s:o}", "mean", staleness_mean(&results->staleness), "max",
                     (json_int_t)results->staleness.max, "histogram", histogram);
}

/* How to read the histogram: counts per gradient, and where it is capped. */
static json_t *histogram_json(const struct coordinator *coordinator)
{
    const struct job *job = coordinator->job;
    const struct staleness *staleness = &coordinator->results.staleness;
    bool is_counted = staleness->total > 0, is_capped = staleness_is_capped(staleness);
    uint64_t each = is_counted ? job_shard_count(job) : 1;
    // A change that every worker sees by a delay of its own.
    each *= is_counted && job->delay_model == DELAY_MODEL_PER_WORKER ? job->workers : 1;
    return json_pack("{s:I, s:o, s:I}", "counts_per_gradient", (json_int_t)each, "capped_at",
                     is_capped ? integer(STALENESS_BINS - 1) : json_null(), "capped_count",
                     (json_int_t)(is_capped ? staleness->counts[STALENESS_BINS - 1] : 0));
}

/* When the target accuracy was reached; null if it was not, or there is none. */
static json_t *target_json(const struct coordinator *coordinator)
{
    const struct results *results = &coordinator->results;
    if (coordinator->job->target_accuracy <= 0) {
        return json_null();
    }
    json_t *steps = json_null(), *seconds = json_null();
    if (results->has_reached_target) {
        steps = integer(step_at(coordinator, results->target_period));
        seconds = json_real(results_seconds_until(results, results->target_period));
    }
    return json_pack("{s:f, s:o, s:o}", "accuracy", coordinator->job->target_accuracy, "steps",
                     steps, "seconds", seconds);
}

uint64_t summary_steps(const struct coordinator *coordinator)
{
    const struct results *results = &coordinator->results;
    uint32_t closed = results->period_count;
    if (coordinator->verdict == STATUS_OK && job_is_external(coordinator->job)) {
        return results_steps_made(results);
    }
    if (coordinator->verdict == STATUS_OK && closed > 0) {
        return step_at(coordinator, closed - 1); // the last period ends where the job does
    }
    return totals(results).steps / results->worker_count;
}

/* Bytes of a worker in each of its steps, and of all servers in each step that they have taken part
 * in: after a loss they begin to count anew. */
static json_t *bytes_json(const struct coordinator *coordinator, const struct results_rank *sum,
                          uint64_t job_steps)
{
    const struct results *results = &coordinator->results;
    uint64_t begin = generation_begin_step(coordinator);
    double steps = (double)sum->steps, of_job = job_steps > begin ? (double)(job_steps - begin) : 0;
    return json_pack("{s:f, s:f, s:f, s:f}", "worker_sent", ratio((double)sum->bytes_sent, steps),
                     "worker_received", ratio((double)sum->bytes_received, steps), "server_sent",
                     ratio((double)results->server_bytes_sent, of_job), "server_received",
                     ratio((double)results->server_bytes_received, of_job));
}

/* The best accuracy, and the epoch that it is of; null where nothing was evaluated. One of a part
 * of the test set, which is easier to be lucky with, counts only if none is of all of it. */
static void add_best(json_t *summary, const struct coordinator *coordinator)
{
    uint32_t best;
    bool is_ours = !job_is_external(coordinator->job) && coordinator->test_samples > 0;
    uint64_t whole = is_ours ? coordinator->test_samples : 1;
    bool is_known = results_best(&coordinator->results, whole, &best) ||
                    results_best(&coordinator->results, 1, &best);
    double accuracy = is_known ? results_accuracy(&coordinator->results, best) : 0;
    json_object_set_new(summary, "best_accuracy", is_known ? json_real(accuracy) : json_null());
    json_object_set_new(summary, "best_epoch",
                        is_known ? integer(epoch_number(coordinator, best)) : json_null());
}

static void add_training(json_t *summary, const struct coordinator *coordinator)
{
    const struct results *results = &coordinator->results;
    const struct results_rank sum = totals(results);
    uint64_t job_steps = summary_steps(coordinator);
    json_t *times = times_json(sum.compute_ns, sum.exchange_wait_ns, sum.input_wait_ns,
                               sum.total_ns, sum.steps);
    json_object_set_new(summary, "steps", integer(job_steps));
    json_object_set_new(summary, "seconds",
                        json_real(generation_seconds(coordinator, coordinator->ended_ms)));
    json_object_set_new(summary, "images_per_second",
                        json_real(results_images_per_second(results)));
    json_object_set_new(summary, "epochs", epochs_json(coordinator, false));
    add_best(summary, coordinator);
    json_object_set_new(summary, "ms_per_step", times);
    json_object_set_new(summary, "bytes_per_step", bytes_json(coordinator, &sum, job_steps));
    json_object_set_new(summary, "staleness", staleness_json(results, sum.steps));
}

/* The transports that values took: "shm", "shm+tcp"; --transport if no step was reported. */
static void describe_transport(const struct coordinator *coordinator,
                               char ret_text[TRANSPORT_BYTES])
{
    static const char *const names[] = {"shm", "ipc", "tcp", "gpu",
                                        "nccl"}; // by enum wire_transport
    uint32_t transports = results_transports(&coordinator->results);
    bool is_known = totals(&coordinator->results).steps > 0;
    snprintf(ret_text, TRANSPORT_BYTES, "%s",
             is_known ? "none" : transport_choices[coordinator->job->transport].name);
    size_t used = 0;
    for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if ((transports >> i & 1) != 0) {
            used += (size_t)snprintf(ret_text + used, TRANSPORT_BYTES - used, "%s%s",
                                     used > 0 ? "+" : "", names[i]);
        }
    }
}

/* The mean batch of a worker: not a whole number where workers have different parts. */
static json_t *batch_json(const struct job *job)
{
    return job->global_batch % job->workers == 0
               ? integer(job->global_batch / job->workers)
               : json_real((double)job->global_batch / (double)job->workers);
}

/* Nobody knows the rate of a program that makes the updates itself. */
static json_t *rate_json(const struct job *job, double rate)
{
    return job->optimizer == OPTIMIZER_AUTO ? json_null() : json_real(rate);
}

/* What was trained, and how. */
static json_t *setup_json(const struct coordinator *coordinator)
{
    const struct job *job = coordinator->job;
    const char *device = coordinator->membership.workers[0].device;
    char transport[TRANSPORT_BYTES];
    describe_transport(coordinator, transport);
    return json_pack("{s:s, s:s, s:i, s:i, s:s, s:I, s:s, s:s, s:s, s:I, s:o, s:i, s:s, s:o, s:o}",
                     "version", RINGSIDE_VERSION, "mode", mode_text(job->mode).text, "workers",
                     (int)job->workers, "servers", (int)job->servers, "model", job->model,
                     "parameters", (json_int_t)coordinator->parameters, "dataset", job->data,
                     "device", device[0] != '\0' ? device : job->device, "transport", transport,
                     "seed", (json_int_t)job->seed, "batch_per_worker", batch_json(job),
                     "global_batch", (int)job->global_batch, "optimizer", job_optimizer_text(job),
                     "lr", rate_json(job, job->lr), "lr_effective",
                     rate_json(job, job_schedule(job, coordinator->train_samples).base_rate));
}

/* How the job has ended. */
static void add_outcome(json_t *summary, const struct coordinator *coordinator)
{
    bool is_completed = coordinator->verdict == STATUS_OK;
    json_object_set_new(summary, "params_digest",
                        is_completed ? json_string(coordinator->params_digest) : json_null());
    json_object_set_new(summary, "bits_of", json_string(job_record_bits_of(coordinator->job)));
    json_object_set_new(summary, "workers_lost", integer(coordinator->workers_lost));
    json_object_set_new(summary, "restarts", integer(generation_restarts(coordinator)));
    json_object_set_new(summary, "outcome", json_string(is_completed ? "completed" : "failed"));
    json_object_set_new(summary, "reason", json_string(coordinator->reason));
}

json_t *summary_json(const struct coordinator *coordinator)
{
    json_t *summary = setup_json(coordinator);
    if (summary == NULL) {
        return NULL;
    }
    add_training(summary, coordinator);
    add_outcome(summary, coordinator);
    return summary;
}

static json_t *shards_json(const struct results *results)
{
    json_t *shards = json_array();
    for (uint32_t i = 0; i < results->shard_count; i++) {
        const struct results_shard *shard = &results->shards[i];
        json_array_append_new(shards, json_pack("{s:i, s:I, s:I, s:f, s:f, s:I}", "shard", (int)i,
                                                "bytes_received", (json_int_t)shard->bytes_received,
                                                "bytes_sent", (json_int_t)shard->bytes_sent,
                                                "busy_seconds", (double)shard->busy_ns / 1e9,
                                                "seconds", (double)shard->total_ns / 1e9, "backlog",
                                                (json_int_t)shard->backlog));
    }
    return shards;
}

/* What --bucket-mb auto has found; null without it. */
static json_t *buckets_json(const struct tuning *tuning)
{
    char text[256];
    if (!tuning_describe(tuning, text, sizeof(text))) {
        return json_null();
    }
    bool is_decided = tuning->state == TUNING_DECIDED;
    json_t *trials = json_array();
    for (uint32_t i = 0; is_decided && i < PHASES_TRIALS; i++) {
        double ms = tuning_trial_ms(tuning, i);
        json_array_append_new(
            trials, json_pack("{s:f, s:o}", "bucket_mb", (double)phases_trial_bytes(i) / (1 << 20),
                              "ms_per_step", ms > 0 ? json_real(ms) : json_null()));
    }
    // null: the job has ended before.
    json_t *chosen =
        tuning->state == TUNING_TRYING ? json_null() : json_real((double)tuning->bytes / (1 << 20));
    return json_pack("{s:s, s:o, s:o}", "text", text, "bucket_mb", chosen, "trials", trials);
}

/* Images of each worker in a step. */
static json_t *batches_json(const struct job *job)
{
    json_t *batches = json_array();
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        json_array_append_new(batches, integer(job_batch_of(job, rank)));
    }
    return batches;
}

/* How many threads of each rank's process read images; null: nobody told. */
static json_t *loaders_json(const struct results *results)
{
    json_t *threads = json_array();
    for (uint32_t rank = 0; rank < results->worker_count; rank++) {
        uint32_t count = results->ranks[rank].loader_threads;
        json_array_append_new(threads, count > 0 ? integer(count) : json_null());
    }
    return threads;
}

/* Times that steps hide. */
static json_t *hidden_json(const struct results *results)
{
    const struct results_rank sum = totals(results);
    json_t *times = json_object();
    add_hidden(times, sum.copy_ns, sum.wire_ns, sum.steps);
    return times;
}

/* How the images were dealt out and read, and where the loss was no number. */
static json_t *images_json(const struct coordinator *coordinator)
{
    const struct job *job = coordinator->job;
    uint64_t diverged_step = coordinator->diverged_step;
    return json_pack("{s:o, s:I, s:o, s:o}", "batch_of_rank", batches_json(job),
                     "left_out_per_epoch",
                     (json_int_t)(coordinator->train_samples % job->global_batch), "diverged_step",
                     diverged_step > 0 ? integer(diverged_step) : json_null(), "loader_threads",
                     loaders_json(&coordinator->results));
}

/* Whether the bytes of a step travelled. In shared memory, also of GPUs, values stay where they
 * are, and what counts is what messages, or a ring, would have carried. NCCL does not say what it
 * sends. */
static const char *how_bytes_are_known(const struct coordinator *coordinator)
{
    const uint32_t stays = WIRE_TRANSPORT_SHM | WIRE_TRANSPORT_GPU | WIRE_TRANSPORT_NCCL;
    uint32_t transports = results_transports(&coordinator->results);
    if ((transports & stays) == 0) {
        return "counted";
    }
    return (transports & ~stays) == 0 ? "modelled" : "partly modelled";
}

/* The process that a failed job failed because of, as the launcher calls it; null: none. */
static json_t *culprit_json(const struct coordinator *coordinator)
{
    const struct sender *culprit = &coordinator->culprit;
    if (culprit->slot == NULL) {
        return json_null();
    }
    // A process may have several of the servers' slots.
    bool is_worker = culprit->role == ROLE_WORKER;
    uint32_t first = is_worker ? culprit->index : culprit->index % coordinator->job->servers;
    uint32_t index = membership_member(&coordinator->membership, culprit->role, first).slot->number;
    return json_pack("{s:s, s:i}", "role", role_name(culprit->role), "index", (int)index);
}

/* The numbers of the workers that took part until the end. */
static json_t *finishers_json(const struct membership *membership)
{
    json_t *finishers = json_array();
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        if (membership->workers[i].state == SLOT_DONE) {
            json_array_append_new(finishers, integer(membership->workers[i].number));
        }
    }
    return finishers;
}

json_t *summary_details_json(const struct coordinator *coordinator)
{
    const struct results *results = &coordinator->results;
    char all_reduce[128];
    bool has_all_reduce = coordinator->started_ms > 0 &&
                          coordinator_all_reduce(coordinator, all_reduce, sizeof(all_reduce));
    json_t *details = json_pack(
        "{s:o, s:o, s:I, s:f, s:o, s:s?, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "evaluations",
        epochs_json(coordinator, true), "target", target_json(coordinator), "late_gradients",
        (json_int_t)results->late_count, "images_dropped", results_images_dropped(results),
        "staleness", histogram_json(coordinator), "all_reduce", has_all_reduce ? all_reduce : NULL,
        "buckets", buckets_json(&coordinator->tuning), "shards", shards_json(results),
        "ms_per_step", hidden_json(results), "bytes_per_step", how_bytes_are_known(coordinator),
        "failed_member", culprit_json(coordinator), "recoveries", recoveries_json(coordinator),
        "finishers", finishers_json(&coordinator->membership), "unmet", unmet_json(coordinator));
    json_t *images = images_json(coordinator);
    if (images == NULL || json_object_update(details, images) != 0) {
        json_decref(details);
        details = NULL;
    }
    json_decref(images);
    return details;
}
