/* The job in a checkpoint <-> JSON, by lists of fields. */
#include "ps-server/checkpoint/job_part.h"

#include "common/job/job_resume.h"
#include "common/job/job_text.h"
#include "common/job/phases.h"
#include "ps-server/coordinator/generation.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Numbers of a period, of a rank and of a report that go on when the job is resumed.
#define PERIOD_COUNTS(X) \
    X(images)            \
    X(steps_max)         \
    X(total_ns_max)      \
    X(test_images)       \
    X(test_correct)

#define PERIOD_REALS(X) \
    X(images_dropped)   \
    X(loss_sum)         \
    X(test_loss_sum)

#define RANK_COUNTS(X)  \
    X(step)             \
    X(epoch)            \
    X(steps)            \
    X(images)           \
    X(compute_ns)       \
    X(exchange_wait_ns) \
    X(input_wait_ns)    \
    X(total_ns)         \
    X(copy_ns)          \
    X(wire_ns)          \
    X(bytes_sent)       \
    X(bytes_received)

#define RANK_SMALLS(X)   \
    X(transports)        \
    X(transports_before) \
    X(loader_threads)

#define RANK_REALS(X)    \
    X(loss)              \
    X(images_per_second) \
    X(compute_ms)        \
    X(images_dropped)    \
    X(loss_sum)

#define REPORT_COUNTS(X) \
    X(steps)             \
    X(images)            \
    X(compute_ns)        \
    X(exchange_wait_ns)  \
    X(input_wait_ns)     \
    X(total_ns)          \
    X(copy_ns)           \
    X(wire_ns)

#define REPORT_REALS(X) \
    X(loss_sum)         \
    X(images_dropped)

#define PUT_COUNT(field) json_object_set_new(tree, #field, json_integer((json_int_t)from->field));
#define PUT_REAL(field)  json_object_set_new(tree, #field, json_real(from->field));
#define GET_COUNT(field) to->field = count_of(tree, #field);
#define GET_SMALL(field) to->field = (uint32_t)count_of(tree, #field);
#define GET_REAL(field)  to->field = real_of(tree, #field);

static uint64_t count_of(const json_t *tree, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(tree, name));
    return value > 0 ? (uint64_t)value : 0;
}

static double real_of(const json_t *tree, const char *name)
{
    return json_number_value(json_object_get(tree, name));
}

/* ==========================================================================================
 * Writing
 * ========================================================================================== */

static json_t *period_json(const struct results_period *from)
{
    json_t *tree = json_object();
    PUT_COUNT(report_count)
    PERIOD_COUNTS(PUT_COUNT)
    PERIOD_REALS(PUT_REAL)
    return tree;
}

static json_t *rank_json(const struct results_rank *from)
{
    json_t *tree = json_object();
    RANK_COUNTS(PUT_COUNT)
    RANK_SMALLS(PUT_COUNT)
    RANK_REALS(PUT_REAL)
    return tree;
}

static json_t *report_json(const struct wire_report *from)
{
    json_t *tree = json_object();
    REPORT_COUNTS(PUT_COUNT)
    REPORT_REALS(PUT_REAL)
    return tree;
}

/* Numbers of 64 bits that are no counts: JSON has no room for all of them. */
static json_t *hex_json(uint64_t value)
{
    char text[20];
    snprintf(text, sizeof(text), "%016" PRIx64, value);
    return json_string(text);
}

/* As many bins as there are with counts. */
static json_t *counted_json(const struct coordinator *coordinator)
{
    const struct checkpoint_counts *counted = &coordinator->checkpointing.counted;
    const struct staleness *staleness = &counted->staleness;
    json_t *counts = json_array();
    for (uint32_t i = 0; staleness->total > 0 && i < staleness_bins(staleness); i++) {
        json_array_append_new(counts, json_integer((json_int_t)staleness->counts[i]));
    }
    return json_pack("{s:I, s:o, s:f, s:I, s:I}", "shards",
                     (json_int_t)coordinator->results.shard_count, "staleness", counts, "sum",
                     staleness->sum, "max", (json_int_t)staleness->max, "late",
                     (json_int_t)counted->late_count);
}

/* Results up to the checkpoint, whatever was reported since. */
static json_t *results_json(const struct coordinator *coordinator)
{
    const struct checkpointing *of = &coordinator->checkpointing;
    const struct results *results = &coordinator->results;
    uint64_t period = phases_period(coordinator->job, coordinator->train_samples);
    bool is_end = of->step == of->plan.total;
    uint64_t count = is_end ? results->period_count : of->step / period;
    json_t *periods = json_array(), *ranks = json_array(), *open = json_array();
    for (uint32_t i = 0; i < count && i < results->period_count; i++) {
        json_array_append_new(periods, period_json(&results->periods[i]));
    }
    for (uint32_t i = 0; i < coordinator->carriers.ranks; i++) {
        json_array_append_new(ranks, rank_json(&of->collected[i].results));
        json_array_append_new(open, report_json(&of->collected[i].open_period));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "periods", periods, "ranks", ranks, "open", open,
                     "counted", counted_json(coordinator));
}

json_t *job_part_json(const struct coordinator *coordinator, uint64_t now_ms)
{
    bool has_chosen = coordinator->tuning.state == TUNING_DECIDED;
    return json_pack(
        "{s:s, s:s, s:{s:I, s:o}, s:o, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:o}", "ringside",
        RINGSIDE_VERSION, "job", coordinator->job_text, "layout", "value_count",
        (json_int_t)coordinator->layout.value_count, "digest", hex_json(coordinator->layout.digest),
        "data_digest", hex_json(coordinator->data_digest), "train_samples",
        (json_int_t)coordinator->train_samples, "test_samples",
        (json_int_t)coordinator->test_samples, "parameters", (json_int_t)coordinator->parameters,
        "phase", (json_int_t)coordinator->phase_index, "bucket_bytes",
        (json_int_t)(has_chosen ? coordinator->tuning.bytes : 0), "seconds",
        generation_seconds(coordinator, now_ms), "restarts",
        (json_int_t)generation_restarts(coordinator), "results", results_json(coordinator));
}

/* ==========================================================================================
 * Reading
 * ========================================================================================== */

static void read_period(const json_t *tree, struct results_period *to)
{
    GET_SMALL(report_count)
    PERIOD_COUNTS(GET_COUNT)
    PERIOD_REALS(GET_REAL)
}

static void read_rank(const json_t *tree, struct results_rank *to)
{
    RANK_COUNTS(GET_COUNT)
    RANK_SMALLS(GET_SMALL)
    RANK_REALS(GET_REAL)
}

static void read_report(const json_t *tree, struct wire_report *to)
{
    REPORT_COUNTS(GET_COUNT)
    REPORT_REALS(GET_REAL)
}

static uint64_t hex_of(const json_t *tree, const char *name)
{
    const char *text = json_string_value(json_object_get(tree, name));
    return text != NULL ? strtoull(text, NULL, 16) : 0;
}

/* Periods that were over. One that only the end of a shorter job had closed goes on. */
static enum status read_periods(const json_t *periods, const struct job *job,
                                const struct coordinator_resume *resume, struct results *results)
{
    uint64_t period = phases_period(job, resume->train_samples);
    uint64_t count = period > 0 ? resume->step / period : 0;
    if (count > json_array_size(periods)) {
        return STATUS_INVALID;
    }
    results->periods = calloc(count + 1, sizeof(*results->periods));
    if (results->periods == NULL) {
        return STATUS_NO_MEMORY;
    }
    results->period_capacity = (uint32_t)count + 1;
    results->period_count = (uint32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        read_period(json_array_get(periods, i), &results->periods[i]);
        // All workers had closed it.
        if (results->periods[i].report_count != job->workers) {
            return STATUS_INVALID;
        }
    }
    return STATUS_OK;
}

/* What was not reported of the open period, by rank. */
static enum status read_open(const json_t *open, struct job_part *part)
{
    size_t count = json_array_size(open);
    part->open_periods = calloc(count, sizeof(*part->open_periods));
    part->open_images = calloc(count, sizeof(*part->open_images));
    part->open_loss_sums = calloc(count, sizeof(*part->open_loss_sums));
    if (part->open_periods == NULL || part->open_images == NULL || part->open_loss_sums == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        read_report(json_array_get(open, i), &part->open_periods[i]);
        part->open_images[i] = part->open_periods[i].images;
        part->open_loss_sums[i] = part->open_periods[i].loss_sum;
    }
    part->resume.open_period = part->open_periods;
    part->resume.open_images = part->open_images;
    part->resume.open_loss_sums = part->open_loss_sums;
    return STATUS_OK;
}

// Of what servers have counted. Scaled to other shards it still fits (staleness_scale).
#define COUNTED_MAX (INT64_C(1) << 53)

/* What servers had counted; checkpoints of older programs have nothing of it. */
static enum status read_counted(const json_t *tree, struct results *results)
{
    uint64_t counts[STALENESS_BINS];
    const json_t *list = json_object_get(tree, "staleness");
    size_t bins = json_array_size(list);
    double sum = real_of(tree, "sum");
    uint64_t shards = count_of(tree, "shards"), late = count_of(tree, "late");
    if (bins > STALENESS_BINS || shards > JOB_SERVERS_MAX || late > COUNTED_MAX || !(sum >= 0) ||
        isinf(sum)) {
        return STATUS_INVALID;
    }
    for (size_t i = 0; i < bins; i++) {
        json_int_t count = json_integer_value(json_array_get(list, i));
        if (count > COUNTED_MAX) {
            return STATUS_INVALID;
        }
        counts[i] = count > 0 ? (uint64_t)count : 0;
    }
    results->shard_count = (uint32_t)shards; // of which there are no results
    results->late_count = late;
    staleness_add_counts(&results->staleness, counts, (uint32_t)bins, sum, count_of(tree, "max"));
    return STATUS_OK;
}

static enum status read_results(const json_t *tree, const struct job *job, struct job_part *part)
{
    const json_t *ranks = json_object_get(tree, "ranks"), *open = json_object_get(tree, "open");
    if (json_array_size(ranks) != job->workers || json_array_size(open) != job->workers) {
        return STATUS_INVALID;
    }
    part->results.ranks = calloc(job->workers, sizeof(*part->results.ranks));
    if (part->results.ranks == NULL) {
        return STATUS_NO_MEMORY;
    }
    part->results.worker_count = job->workers;
    for (uint32_t i = 0; i < job->workers; i++) {
        read_rank(json_array_get(ranks, i), &part->results.ranks[i]);
    }
    enum status status = read_open(open, part);
    if (status == STATUS_OK) {
        status = read_counted(json_object_get(tree, "counted"), &part->results);
    }
    return status == STATUS_OK
               ? read_periods(json_object_get(tree, "periods"), job, &part->resume, &part->results)
               : status;
}

/* Whether there is something left to do, from a place where it can be done. */
static enum status check_phases(const struct job *job, const struct coordinator_resume *resume,
                                char *ret_error, size_t error_size)
{
    struct phases phases;
    uint32_t index;
    enum status status = phases_of(job, resume->train_samples, &phases, ret_error, error_size);
    if (status != STATUS_OK) {
        return status;
    }
    status = phases_resume(job, &phases, resume->step, &index);
    if (status == STATUS_END_OF_DATA) {
        snprintf(ret_error, error_size,
                 "the job is complete: the checkpoint is of step %" PRIu64 ", its last; %s",
                 resume->step,
                 job->steps > 0 ? "a job with --steps cannot become longer, one with --epochs can"
                                : "to go on, give more --epochs");
    } else if (status != STATUS_OK) {
        snprintf(ret_error, error_size,
                 "--bucket-mb auto would try sizes at step %" PRIu64
                 ", where the checkpoint is: resume with as many --epochs as before",
                 resume->step);
    }
    bool is_known = status == STATUS_OK || status == STATUS_END_OF_DATA;
    return is_known ? status : STATUS_INVALID;
}

enum status job_part_read(const json_t *tree, const struct job *job, uint64_t step,
                          struct job_part *ret_part, char *ret_error, size_t error_size)
{
    const char *text = json_string_value(json_object_get(tree, "job"));
    const json_t *layout = json_object_get(tree, "layout");
    *ret_part = (struct job_part){.resume = {.step = step,
                                             .value_count = count_of(layout, "value_count"),
                                             .layout_digest = hex_of(layout, "digest"),
                                             .data_digest = hex_of(tree, "data_digest"),
                                             .train_samples = count_of(tree, "train_samples"),
                                             .test_samples = count_of(tree, "test_samples"),
                                             .bucket_bytes = count_of(tree, "bucket_bytes"),
                                             .seconds = real_of(tree, "seconds"),
                                             .restarts = (uint32_t)count_of(tree, "restarts") + 1}};
    if (text == NULL || step == 0) {
        snprintf(ret_error, error_size, "its manifest does not say which job it is of");
        return STATUS_INVALID;
    }
    enum status status = job_check_resume(text, job, ret_error, error_size);
    if (status != STATUS_OK) {
        return status;
    }
    status = check_phases(job, &ret_part->resume, ret_error, error_size);
    if (status != STATUS_OK) {
        return status;
    }
    status = read_results(json_object_get(tree, "results"), job, ret_part);
    if (status != STATUS_OK) {
        snprintf(ret_error, error_size, "the results in its manifest are not those of this job");
        job_part_finish(ret_part);
    }
    return status;
}

void job_part_finish(struct job_part *part)
{
    free(part->open_periods);
    free(part->open_images);
    free(part->open_loss_sums);
    results_finish(&part->results);
    *part = (struct job_part){0};
}
