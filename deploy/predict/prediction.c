/* Goes through the steps of all workers, and counts. */
#include "deploy/predict/prediction.h"

#include "common/base/log.h"
#include "common/job/phases.h"
#include "common/transport/send_buffer.h"
#include "deploy/predict/course.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACED_BYTES 65536.0 // PACER_WINDOW_BYTES
#define RATE_MAX    1e15    // beyond that a buffer has its largest size anyway
#define RTT_MAX_S   1e3

// Tags of wakes; forward and backward of bucket b: 1 + b, and so many buckets behind that; then
// the end of a round, and those of the exchange.
enum { TAG_BEGIN = 0, TAG_INPUT = UINT32_MAX };

static const struct course_exchange *exchange_of(const struct course *course)
{
    if (course->job->workers == 1 && course->shards == 0) {
        return NULL; // nobody to exchange with
    }
    return course->shards > 0  ? &course_by_servers
           : course->has_group ? &course_in_memory
                               : &course_by_messages;
}

static uint32_t tag_of_end(const struct course *course)
{
    return 1 + 2 * course->layout.bucket_count;
}

uint32_t course_tag(const struct course *course, uint32_t tag)
{
    return tag_of_end(course) + 1 + tag;
}

/* Of the worker's own optimizer. */
static double optimizer_s(const struct course *course, uint32_t bucket)
{
    return course->costs->optimizer_s * (double)course->layout.buckets[bucket].count /
           (double)course->layout.value_count;
}

/* With local SGD the mean change is added. */
double course_update_s(const struct course *course, uint32_t bucket)
{
    double bandwidth = course->costs->sum_bandwidth;
    if (course->round_steps == 1) {
        return optimizer_s(course, bucket);
    }
    double bytes = 4.0 * (double)course->layout.buckets[bucket].count;
    return bandwidth > 0 ? course->sample.values_each * bytes / bandwidth : 0;
}

/* Forward of a bucket, once its parameters are there. Where no server makes updates, the worker has
 * to make this bucket's first. */
static void forward(struct course *course, uint32_t index, uint32_t bucket)
{
    struct course_worker *worker = &course->workers[index];
    double update_s = 0, spread_s = 0;
    worker->awaited = bucket + 1;
    if (worker->missing[bucket] > 0) {
        return;
    }
    worker->awaited = 0;
    uint64_t step = course->clocks.steps[index], lead = step - course->clocks.slowest;
    if (bucket == course->layout.bucket_count - 1) {
        spread_s = worker->spread_s;
        course->delay_s += worker->spread_mean_s;
        course->lead_max = lead > course->lead_max ? lead : course->lead_max;
    }
    if (course->shards == 0 && step > 0 && !course->has_group && course->round_steps == 1) {
        update_s = course_update_s(course, bucket);
    }
    course->optimizer_s += update_s;
    course->compute_s += course->forward_s[bucket];
    engine_run(course->engine, CORES_COMPUTE, spread_s + update_s + course->forward_s[bucket],
               index, 1 + bucket);
}

/* Local SGD waits for all means at the end of a round, and adds them where no server does. */
static void end_round(struct course *course, uint32_t index)
{
    double update_s = 0;
    for (uint32_t b = 0; b < course->layout.bucket_count && course->shards == 0; b++) {
        update_s += course_update_s(course, b);
    }
    course->workers[index].is_ending = false;
    course->optimizer_s += update_s;
    engine_run(course->engine, CORES_COMPUTE, update_s, index, tag_of_end(course));
}

void course_final(struct course *course, uint32_t index, uint32_t bucket, uint64_t count)
{
    struct course_worker *worker = &course->workers[index];
    worker->missing[bucket] -= count;
    worker->missing_count -= count;
    if (worker->missing[bucket] == 0 && worker->awaited == bucket + 1) {
        forward(course, index, bucket);
    }
    if (worker->is_ending && worker->missing_count == 0) {
        end_round(course, index);
    }
}

/* Begins a step whose batch is there, and reads the next one meanwhile. Without cores reading takes
 * none from anybody, and no time. */
static void begin_if_read(struct course *course, uint32_t index)
{
    struct course_worker *worker = &course->workers[index];
    double input_s = course->costs->input_s;
    if (worker->is_reading) {
        worker->awaits_batch = true;
        return;
    }
    worker->awaits_batch = false;
    if (input_s > 0 && engine_shares_cores(course->engine, index)) {
        worker->is_reading = true;
        engine_run(course->engine, CORES_INPUT, input_s, index, TAG_INPUT);
    }
    engine_wake_after(course->engine, worker->begin_s, index, TAG_BEGIN);
}

static void end_reading(struct course *course, uint32_t index)
{
    struct course_worker *worker = &course->workers[index];
    worker->is_reading = false;
    if (worker->awaits_batch) {
        begin_if_read(course, index);
    }
}

void course_begin_step(struct course *course, uint32_t index)
{
    course->begun++;
    course_draw_delays(course, index);
    begin_if_read(course, index);
}

/* Whether a bucket is complete as soon as the one before it is, as parts of a layer are, and sets
 * out together with it (training_step.c). */
static bool follows_at_once(const struct course *course, uint32_t bucket)
{
    const struct course_exchange *exchange = exchange_of(course);
    bool keeps_thread = exchange != NULL && exchange->keeps_thread;
    return bucket > 0 && bucket < course->layout.bucket_count && course->backward_s[bucket] == 0 &&
           !keeps_thread;
}

/* With local SGD a worker's own update follows that of a bucket. */
static void backward(struct course *course, uint32_t index, uint32_t bucket)
{
    double compute_s = course->backward_s[bucket], update_s = 0;
    uint32_t last = bucket;
    while (follows_at_once(course, last + 1)) {
        last++;
    }
    for (uint32_t b = bucket; b <= last && course->round_steps > 1; b++) {
        update_s += optimizer_s(course, b);
    }
    course->compute_s += compute_s;
    course->optimizer_s += update_s;
    engine_run(course->engine, CORES_COMPUTE, compute_s + update_s, index,
               1 + course->layout.bucket_count + last);
}

/* Whether gradients, or changes, are exchanged behind the step that the worker makes. */
static bool ends_round(const struct course *course, uint32_t index)
{
    return (course->clocks.steps[index] + 1) % course->round_steps == 0;
}

void course_end_step(struct course *course, uint32_t index)
{
    clocks_advance(&course->clocks, index);
    course_begin_step(course, index);
}

void course_go_on(struct course *course, uint32_t index, uint32_t bucket)
{
    if (bucket + 1 < course->layout.bucket_count) {
        backward(course, index, bucket + 1);
    } else if (course->round_steps > 1 && ends_round(course, index)) {
        struct course_worker *worker = &course->workers[index];
        worker->is_ending = worker->missing_count > 0;
        if (!worker->is_ending) {
            end_round(course, index);
        }
    } else {
        course_end_step(course, index);
    }
}

/* Of buckets whose backward is done, up to `last`. */
static void hand_over(struct course *course, uint32_t index, uint32_t last)
{
    const struct course_exchange *exchange = exchange_of(course);
    bool is_due = exchange != NULL && ends_round(course, index);
    if (is_due && exchange->keeps_thread) {
        exchange->ready(course, index, last);
        return;
    }
    uint32_t first = last;
    while (follows_at_once(course, first)) {
        first--;
    }
    for (uint32_t bucket = first; bucket <= last && is_due; bucket++) {
        struct course_worker *worker = &course->workers[index];
        worker->missing[bucket] = course->layout.buckets[bucket].count;
        worker->missing_count += worker->missing[bucket];
        exchange->ready(course, index, bucket);
    }
    course_go_on(course, index, last);
}

static void wake(void *owner, uint32_t index, uint32_t tag)
{
    struct course *course = owner;
    uint32_t buckets = course->layout.bucket_count;
    const struct course_exchange *exchange = exchange_of(course);
    if (tag == TAG_BEGIN) {
        forward(course, index, buckets - 1);
    } else if (tag == TAG_INPUT) {
        end_reading(course, index);
    } else if (tag <= buckets && tag > 1) {
        forward(course, index, tag - 2);
    } else if (tag == 1) {
        backward(course, index, 0);
    } else if (tag < tag_of_end(course)) {
        hand_over(course, index, tag - 1 - buckets);
    } else if (tag == tag_of_end(course)) {
        course_end_step(course, index);
    } else if (exchange != NULL) {
        exchange->wake(course, index, tag - course_tag(course, 0));
    }
}

static enum status check_straggler(struct course *course)
{
    char why[256];
    const char *text = course->job->straggler;
    if (straggler_parse(text, &course->straggler, why, sizeof(why)) != STATUS_OK) {
        log_error("--straggler: %s", why);
        return STATUS_INVALID;
    }
    if (straggler_rank_max(&course->straggler) >= (int64_t)course->job->workers) {
        log_error("--straggler %s names rank %lld, and --workers has %u", text,
                  (long long)straggler_rank_max(&course->straggler), course->job->workers);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status allocate(struct course *course)
{
    const struct job *job = course->job;
    uint32_t buckets = course->layout.bucket_count;
    course->algorithms = calloc(buckets, sizeof(*course->algorithms));
    course->forward_s = calloc(buckets, sizeof(double));
    course->backward_s = calloc(buckets, sizeof(double));
    course->workers = calloc(job->workers, sizeof(*course->workers));
    course->hosts = calloc(job->workers + course->parts, sizeof(*course->hosts));
    course->message_scale = calloc(job->workers + course->parts, sizeof(*course->message_scale));
    course->work_scale = calloc(job->workers + course->parts, sizeof(*course->work_scale));
    bool has_clocks = clocks_init(&course->clocks, job->workers);
    if (!has_clocks || course->algorithms == NULL || course->forward_s == NULL ||
        course->backward_s == NULL || course->workers == NULL || course->hosts == NULL ||
        course->message_scale == NULL || course->work_scale == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t p = 0; p < job->workers + course->parts; p++) {
        course->message_scale[p] = course->work_scale[p] = 1;
    }
    for (uint32_t b = 0; b < buckets; b++) {
        costs_of_bucket(course->costs, course->layout.buckets[b], &course->forward_s[b],
                        &course->backward_s[b]);
    }
    for (uint32_t w = 0; w < job->workers; w++) {
        course->workers[w].missing = calloc(buckets, sizeof(uint64_t));
        if (course->workers[w].missing == NULL) {
            return STATUS_NO_MEMORY;
        }
    }
    return STATUS_OK;
}

static double byte_s(double bandwidth)
{
    return bandwidth > 0 ? 1 / bandwidth : 0;
}

/* Rings do that try their paths; servers and their workers learn of them by what comes back. */
static bool fits_buffers(const struct course *course)
{
    return course->shards > 0 || course->job->all_reduce == ALL_REDUCE_CHOICE_AUTO;
}

/* What the kernel holds, which doubles what it is asked for, and what is behind that before others
 * may overtake it (pacer.h). */
static double fit_buffer(double rate, double rtt_s)
{
    bool is_known = rate > 0 && rate < RATE_MAX && rtt_s < RTT_MAX_S;
    int bytes = is_known ? send_buffer_bytes((uint64_t)rate, (uint32_t)(1e6 * rtt_s),
                                             (uint32_t)NETWORK_SEGMENT_BYTES)
                         : SEND_BUFFER_MAX;
    return 2.0 * bytes + PACED_BYTES;
}

/* Whether values are encrypted, as they are unless costs were measured in clear. */
static bool has_keys(const struct course *course)
{
    const char *security = course->costs->conditions.security;
    return security[0] == '\0' || strcmp(security, security_choices[SECURITY_CURVE].name) == 0;
}

static enum status create_engine(struct course *course)
{
    const struct course_exchange *exchange = exchange_of(course);
    const struct costs *costs = course->costs;
    const struct engine_model model = {
        .work_s = exchange != NULL ? exchange->work_s : NULL,
        .deliver = exchange != NULL ? exchange->deliver : NULL,
        .wake = wake,
        .owner = course,
        .message_s = costs->message_s,
        .message_byte_s = byte_s(costs->message_bandwidth),
        .message_scale = course->message_scale,
        .work_scale = course->work_scale,
        .threads = course->simulated + course->shards,
        .cores = {costs->threads, costs->crowding, costs->turns, costs->messages_first,
                  costs->slice_s, costs->refill_s},
        .carriage_message_s = costs->carriage_message_s,
        .carriage_byte_s = byte_s(costs->carriage_bandwidth),
        .fit_buffer = fits_buffers(course) ? fit_buffer : NULL,
        .encrypts_near = has_keys(course) && course->job->transport == TRANSPORT_TCP,
        .encrypts_far = has_keys(course)};
    enum status status = engine_create(course->network, course->hosts, &model, &course->engine);
    return status == STATUS_OK && exchange != NULL ? exchange->create(course) : status;
}

/* Everything that comes before a job is reduced. */
static enum status prepare(struct course *course)
{
    const struct job *job = course->job;
    course->shards = course->parts = mode_has_servers(job->mode.kind) ? job->servers : 0;
    course->simulated = job->workers;
    course->round_steps = exchange_of(course) != NULL ? job->sync_every : 1;
    enum status status = check_straggler(course);
    if (status == STATUS_OK) {
        status = costs_make_layout(course->costs, phases_bucket_bytes(job), &course->layout);
    }
    if (status == STATUS_OK) {
        status = allocate(course);
    }
    if (status == STATUS_OK) {
        status = network_place(course->network, job->workers, course->shards, course->hosts);
    }
    if (status != STATUS_OK) {
        return status;
    }
    return course_plan(course);
}

static enum status begin(struct course *course)
{
    enum status status = course->estimate.is_reduced ? course_reduce(course) : STATUS_OK;
    return status == STATUS_OK ? create_engine(course) : status;
}

static void finish(struct course *course)
{
    const struct course_exchange *exchange = exchange_of(course);
    if (exchange != NULL) {
        exchange->destroy(course);
    }
    for (uint32_t w = 0; course->workers != NULL && w < course->whole_job->workers; w++) {
        free(course->workers[w].missing);
    }
    clocks_finish(&course->clocks);
    engine_destroy(course->engine);
    reduction_finish(&course->reduction);
    free(course->sample.direct_each);
    free(course->sample.delays);
    free(course->sample.drawn);
    free(course->sample.behind_s);
    free(course->message_scale);
    free(course->work_scale);
    free(course->hosts);
    free(course->workers);
    free(course->algorithms);
    free(course->forward_s);
    free(course->backward_s);
}

static struct course *course_create(const struct job *job, const struct costs *costs,
                                    const struct network *network,
                                    const struct prediction_extent *extent)
{
    struct course *course = calloc(1, sizeof(*course));
    if (course != NULL) {
        course->job = course->whole_job = job;
        course->sample.hops_each = course->sample.values_each = 1;
        course->sample.workers_each = 1;
        course->costs = costs;
        course->network = course->whole = network;
        course->extent = extent;
    }
    return course;
}

static void course_destroy(struct course *course)
{
    finish(course);
    free(course);
}

enum status prediction_estimate(const struct job *job, const struct costs *costs,
                                const struct network *network,
                                const struct prediction_extent *extent,
                                struct prediction_estimate *ret_estimate)
{
    struct course *course = course_create(job, costs, network, extent);
    if (course == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = prepare(course);
    *ret_estimate = course->estimate;
    course_destroy(course);
    return status;
}

/* Says what to do about a job whose messages take too much memory. */
static void tell_too_large(const struct course *course)
{
    struct prediction_estimate small;
    struct prediction_extent extent = *course->extent;
    const struct job *job = course->whole_job;
    double most = extent.memory_max > 0 ? extent.memory_max : PREDICTION_MEMORY_MAX;
    char advice[80] = "", simulated[16] = "all";
    extent.error_max = PREDICTION_ERROR_MAX_ASKED;
    if (course->estimate.is_reduced) {
        snprintf(simulated, sizeof(simulated), "%u", course->simulated);
    } else if (prediction_estimate(job, course->costs, course->whole, &extent, &small) ==
                   STATUS_OK &&
               small.is_reduced) {
        snprintf(advice, sizeof(advice), ", or --approximate, which may be off by %.0f %%",
                 100 * small.reduction_error);
    }
    log_error("%s among %u workers: simulating %s of them takes more than %.3g GiB of memory; ask "
              "for fewer workers%s",
              mode_text(job->mode).text, job->workers, simulated, most / (1024.0 * 1024 * 1024),
              advice);
}

enum status prediction_make(const struct job *job, const struct costs *costs,
                            const struct network *network, const struct prediction_extent *extent,
                            struct prediction *ret_prediction)
{
    struct course *course = course_create(job, costs, network, extent);
    if (course == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = prepare(course);
    if (status == STATUS_OK) {
        status = begin(course);
    }
    if (status == STATUS_OK) {
        status = course_measure(course, ret_prediction);
    }
    if (course->is_too_large && !extent->is_quiet) {
        tell_too_large(course);
    }
    course_destroy(course);
    return status;
}
