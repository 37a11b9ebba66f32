/* Joins, goes through the steps as worker/train does, and checks nothing: the test does. */
#include "tests/sim/sim_worker.h"

#include "common/base/memory.h"
#include "common/base/signals.h"
#include "common/job/carriers.h"
#include "common/job/consistency.h"
#include "common/job/job_modes.h"
#include "common/optimizer/optimizer.h"
#include "common/plan/order.h"
#include "common/vector/digest.h"
#include "tests/sim/sim_snapshots.h"
#include "tests/sim/world.h"
#include "worker/link/link.h"
#include "worker/link/link_checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIM_UPDATES_MAX 1024 // of a seeded order

static const struct security insecure = {.is_insecure = true};

struct sim_training {
    struct sim_worker *worker;
    struct job job;
    struct rank_block ranks; // that it carries
    struct layout layout;
    float *params;                 // (value_count)
    float *vectors[SIM_RANKS_MAX]; // (ranks.count, value_count) gradients, one block of memory
    float *grads;                  // the last of them
    struct optimizer *optimizer;
    struct link *link;
    struct exchange *exchange;
    struct phases phases;
    const struct phase *phase; // the only one
    struct sim_snapshots snapshots;
    bool is_unsynchronised, is_race, delivers_gradients, is_pending;
    uint64_t step;
};

/* ============================================================================================
 * Gradients, and what comes of them
 * ========================================================================================== */

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ value >> 27) * UINT64_C(0x94D049BB133111EB);
    return value ^ value >> 31;
}

static float small_number(uint64_t drawn)
{
    return (float)((int)(mix(drawn) % 17) - 8) / 64.0f;
}

static float gradient(uint32_t rank, uint64_t step, uint64_t at, float param)
{
    uint32_t bits;
    memcpy(&bits, &param, sizeof(bits));
    return small_number(mix(bits + (step << 32)) + (uint64_t)rank * 7919 + at * 104729);
}

static float gradient_of_race(uint64_t at)
{
    return small_number(at * 104729);
}

static float first_param(uint64_t at)
{
    return (float)(at % 5) / 4.0f;
}

/* Nobody knows which worker makes how many steps. */
static bool is_race(const struct job *job)
{
    return job_is_unsynchronised(job) && strcmp(job->order, "free") == 0;
}

/* The version that a gradient is computed on, by the rules of common/plan/order.h and the bound on
 * how far ranks are apart. */
static uint64_t version_of(const struct job *job, uint32_t rank, uint64_t step)
{
    struct order order;
    struct consistency consistency;
    char why[256];
    if (order_parse(job->order, &order, why, sizeof(why)) != STATUS_OK ||
        consistency_find(job->mode, &consistency) != STATUS_OK) {
        abort();
    }
    uint64_t slack = consistency.slack_steps, before = step * job->workers + rank;
    uint64_t tau = order_staleness(&order, job->seed, job->workers, before + 1);
    uint64_t drawn = before > tau ? before - tau : 0;
    uint64_t bound = step > slack ? (step - slack) * job->workers : 0;
    return drawn > bound ? drawn : bound;
}

/* One parameter after so many steps of a seeded order, of which each gradient is an update. */
static float expected_of_order(const struct job *job, uint64_t at, uint64_t steps)
{
    float versions[SIM_UPDATES_MAX + 1] = {first_param(at)};
    if (steps * job->workers > SIM_UPDATES_MAX) {
        abort();
    }
    for (uint64_t made = 0; made < steps * job->workers; made++) {
        uint32_t rank = (uint32_t)(made % job->workers);
        uint64_t step = made / job->workers;
        float read = versions[version_of(job, rank, step)];
        versions[made + 1] = versions[made] - (float)job->lr * gradient(rank, step, at, read);
    }
    return versions[steps * job->workers];
}

/* Likewise where each update has the gradients of all workers; or in a race, where each of theirs
 * is an update, and all are the same. */
static float expected_of_all(const struct job *job, uint64_t at, uint64_t steps)
{
    bool races = is_race(job);
    float param = first_param(at), share = races ? 1.0f : 1.0f / (float)job->workers;
    for (uint64_t step = 0; step < steps; step++) {
        float sum = 0;
        for (uint32_t rank = 0; rank < job->workers; rank++) {
            sum += races ? gradient_of_race(at) : gradient(rank, step, at, param);
        }
        param -= (float)job->lr * (sum * share);
    }
    return param;
}

void sim_expected(const struct job *job, uint32_t value_count, uint64_t steps, float *ret_params)
{
    bool has_order = job_is_unsynchronised(job) && !is_race(job);
    for (uint32_t i = 0; i < value_count; i++) {
        ret_params[i] =
            has_order ? expected_of_order(job, i, steps) : expected_of_all(job, i, steps);
    }
}

/* ============================================================================================
 * Steps
 * ========================================================================================== */

static enum status apply(void *context, uint32_t bucket)
{
    struct sim_training *t = context;
    struct span span = t->layout.buckets[bucket];
    if (t->delivers_gradients) {
        optimizer_apply(t->optimizer, span, t->params + span.offset, t->grads + span.offset,
                        t->step, t->job.lr);
    }
    return STATUS_OK;
}

static void compute(const struct sim_training *t)
{
    uint32_t parts = exchange_turns(t->exchange) * (t->layout.bucket_count + 1);
    uint64_t part_ns = t->worker->compute_ns / parts;
    world_spend(part_ns > 0 ? world_draw(part_ns) : 0);
}

/* As the next forward does: from the first layers, which the last bucket has, to the last. */
static enum status forward(struct sim_training *t)
{
    compute(t);
    if (!t->is_pending) {
        return STATUS_OK;
    }
    for (uint32_t i = t->layout.bucket_count; exchange_overlaps(t->exchange) && i-- > 0;) {
        enum status status = exchange_await_bucket(t->exchange, i, apply, t);
        if (status != STATUS_OK) {
            return status;
        }
        compute(t);
    }
    t->is_pending = false;
    return exchange_end_step(t->exchange, apply, t);
}

static void note_ahead(const struct sim_training *t, uint64_t step)
{
    struct sim_worker *worker = t->worker;
    for (uint32_t i = 0; i < worker->all_count; i++) {
        const struct sim_worker *other = &worker->all[i];
        if (other->generation == worker->generation && step > other->step &&
            step - other->step > worker->ahead_max) {
            worker->ahead_max = step - other->step;
        }
    }
}

static uint64_t job_step(const struct sim_training *t, struct exchange_turn turn)
{
    return t->phase->marks.first + turn.step;
}

/* Of every rank that the worker carries; or of the one whose turn it is, into grads. */
static void draw_gradients(struct sim_training *t, struct span span, struct exchange_turn turn)
{
    uint32_t first = t->is_unsynchronised ? turn.index : 0;
    uint32_t end = t->is_unsynchronised ? turn.index + 1 : t->ranks.count;
    for (uint32_t k = first; k < end; k++) {
        float *grads = t->is_unsynchronised ? t->grads : t->vectors[k];
        for (uint64_t i = span.offset; i < span.offset + span.count; i++) {
            grads[i] = t->is_race
                           ? gradient_of_race(i)
                           : gradient(t->ranks.first + k, job_step(t, turn), i, t->params[i]);
        }
    }
}

/* `step` is one of the exchange. */
static enum status backward(struct sim_training *t, uint64_t step)
{
    const struct exchange_turn turn = exchange_turn(t->exchange, step);
    enum status status = exchange_begin_step(t->exchange, step);
    if (status != STATUS_OK) {
        return status;
    }
    note_ahead(t, job_step(t, turn));
    t->step = job_step(t, turn) + 1;
    for (uint32_t b = 0; b < t->layout.bucket_count; b++) {
        compute(t);
        draw_gradients(t, t->layout.buckets[b], turn);
        exchange_bucket_ready(t->exchange, b);
    }
    t->is_pending = true;
    return STATUS_OK;
}

/* Everything that was exchanged has come. */
static enum status settle(void *context)
{
    struct sim_training *t = context;
    enum status status = t->is_pending ? exchange_end_step(t->exchange, apply, t) : STATUS_OK;
    t->is_pending = false;
    return status == STATUS_OK && !t->is_unsynchronised ? exchange_settle(t->exchange) : status;
}

/* As statistics are added up before an evaluation: the sum is that of all ranks, once. */
static enum status add_up(struct sim_training *t)
{
    double values[SIM_RANKS_MAX], step = (double)t->worker->step, sum = 0;
    if (t->worker->sum_every == 0 || t->worker->step % t->worker->sum_every != 0) {
        return STATUS_OK;
    }
    for (uint32_t rank = 0; rank < t->job.workers; rank++) {
        sum += step * (rank + 1);
    }
    for (uint32_t i = 0; i < t->ranks.count; i++) {
        values[i] = step * (t->ranks.first + i + 1);
    }
    enum status status = link_sum(t->link, values, 1);
    if (status == STATUS_OK && values[0] != sum) {
        abort();
    }
    return status;
}

static enum status make_step(struct sim_training *t, uint64_t step)
{
    enum status status = forward(t);
    if (status == STATUS_OK) {
        status = backward(t, step);
    }
    if (status == STATUS_OK && t->is_unsynchronised) {
        t->is_pending = false;
        status = exchange_end_step(t->exchange, apply, t);
        status = status == STATUS_OK ? exchange_settle(t->exchange) : status;
    }
    const struct exchange_turn next = exchange_turn(t->exchange, step + 1);
    if (status == STATUS_OK) {
        t->worker->step = job_step(t, next);
    }
    link_set_step(t->link, t->worker->step);
    status = status == STATUS_OK ? add_up(t) : status;
    return status == STATUS_OK && next.index == 0
               ? sim_snapshots_after_step(&t->snapshots, t->worker->step)
               : status;
}

static bool is_over(const struct sim_training *t)
{
    return t->is_unsynchronised ? exchange_marks_passed(t->exchange) > 0
                                : t->worker->step == t->job.steps;
}

/* Unsynchronised workers make steps until the servers have had all gradients of the job. */
static enum status run_steps(struct sim_training *t)
{
    uint64_t step = phase_rounds_before(t->phase, t->job.sync_every) * exchange_turns(t->exchange);
    enum status status = sim_snapshots_begin(&t->snapshots);
    while (status == STATUS_OK && !is_over(t)) {
        status = make_step(t, step++);
    }
    if (status == STATUS_OK) {
        status = t->is_unsynchronised ? exchange_pull(t->exchange, 1) : settle(t);
    }
    return status == STATUS_OK ? sim_snapshots_end(&t->snapshots) : status;
}

static void make_layout(struct layout *layout, uint64_t value_count, uint32_t bucket_count)
{
    const struct span whole = {0, value_count};
    *layout = (struct layout){
        .value_count = value_count, .bucket_count = bucket_count, .digest = LAYOUT_DIGEST_SEED};
    for (uint32_t i = 0; i < bucket_count; i++) {
        layout->buckets[i] = span_part(whole, bucket_count, bucket_count - 1 - i);
    }
}

static enum status allocate(struct sim_training *t)
{
    uint32_t value_count = t->worker->value_count;
    t->params = calloc(value_count, sizeof(float));
    float *memory = calloc((size_t)t->ranks.count * value_count, sizeof(float));
    t->vectors[0] = memory;
    if (t->params == NULL || memory == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t k = 0; k < t->ranks.count; k++) {
        t->vectors[k] = memory + (size_t)k * value_count;
        t->grads = t->vectors[k];
    }
    return STATUS_OK;
}

/* An epoch is longer than the job, which evaluates nothing. */
static uint64_t sample_count(const struct job *job)
{
    return (job->steps + 1) * job->global_batch;
}

/* Of the job that begins, or goes on. */
static enum status find_params(struct sim_training *t)
{
    const struct span whole = {0, t->layout.value_count};
    char why[256];
    uint64_t begin = link_begin_step(t->link);
    uint32_t index = 0;
    enum status status = phases_of(&t->job, sample_count(&t->job), &t->phases, why, sizeof(why));
    if (status == STATUS_OK && begin > 0) {
        status = phases_resume(&t->job, &t->phases, begin, &index);
    }
    t->phase = &t->phases.list[index];
    t->worker->step = begin;
    if (status == STATUS_OK && begin > 0 && !link_is_in_place(t->link)) {
        const struct fetch wanted = fetch_of("params", whole.count, whole, t->params);
        return link_fetch(t->link, &wanted);
    }
    for (uint32_t i = 0; i < whole.count; i++) {
        t->params[i] = first_param(i);
    }
    return status;
}

static enum status prepare(struct sim_training *t, char digest[DIGEST_TEXT_BYTES])
{
    const struct sim_worker *worker = t->worker;
    make_layout(&t->layout, worker->value_count, worker->bucket_count);
    enum status status = allocate(t);
    if (status != STATUS_OK) {
        return status;
    }
    status = find_params(t);
    if (status != STATUS_OK) {
        return status;
    }
    t->is_unsynchronised = job_is_unsynchronised(&t->job);
    t->is_race = is_race(&t->job);
    t->delivers_gradients = exchange_of(t->job.mode.kind)->delivers == EXCHANGE_GRADIENTS;
    status =
        optimizer_create(t->job.optimizer, &t->job.settings, worker->value_count, &t->optimizer);
    if (status != STATUS_OK) {
        return status;
    }
    digest_floats(t->params, worker->value_count, digest);
    const struct link_prepared prepared = {
        .layout = &t->layout,
        .params = t->params,
        .grads = t->grads,
        .vectors = t->vectors,
        .params_digest = digest,
        .device = "none",
        .train_samples = sample_count(&t->job),
        .test_samples = 1,
        .parameters = worker->value_count,
    };
    return link_prepare(t->link, &prepared);
}

static enum status train(struct sim_training *t)
{
    char digest[DIGEST_TEXT_BYTES];
    uint32_t process;
    enum status status = link_welcome(t->link, &t->job, &process);
    if (status != STATUS_OK) {
        return status;
    }
    t->ranks = carriers_block(job_carriers(&t->job), process);
    t->worker->generation = link_generation(t->link);
    t->worker->outlast_ms = job_outlast_ms(&t->job);
    status = prepare(t, digest);
    if (status != STATUS_OK) {
        return status;
    }
    t->worker->has_begun = true;
    t->exchange = link_exchange(t->link);
    t->snapshots = (struct sim_snapshots){
        .link = t->link,
        .job = &t->job,
        .phase = t->phase,
        .phases = &t->phases,
        .params = t->params,
        .value_count = t->layout.value_count,
        .samples = sample_count(&t->job),
        .ranks = t->ranks,
        .makes_updates = t->delivers_gradients,
        .is_race = t->is_race,
        .settle = settle,
        .context = t,
    };
    status = run_steps(t);
    if (status != STATUS_OK) {
        enum status verdict = link_verdict(t->link);
        return verdict != STATUS_OK ? verdict : status;
    }
    static const struct wire_report report;
    memcpy(t->worker->params, t->params, t->layout.value_count * sizeof(float));
    digest_floats(t->params, t->layout.value_count, digest);
    link_done(t->link, t->job.steps, &report, digest);
    return link_verdict(t->link);
}

/* From joining to the end of the job, or of a generation of its processes. */
static enum status train_generation(struct sim_worker *worker, const struct link_options *options)
{
    struct sim_training *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        return STATUS_NO_MEMORY;
    }
    t->worker = worker;
    enum status status = link_create(options, &t->link);
    if (status == STATUS_OK) {
        status = train(t);
    }
    link_destroy(t->link);
    sim_snapshots_finish(&t->snapshots);
    optimizer_destroy(t->optimizer);
    free(t->params);
    free(t->vectors[0]);
    free(t);
    return status;
}

int sim_worker_main(void *data)
{
    struct sim_worker *worker = data;
    char address[32];
    snprintf(address, sizeof(address), "10.0.0.%u", world_current()->host);
    struct link_options options = {
        .coordinator = worker->coordinator,
        .address = address,
        .port_range = "",
        .security = &insecure,
        .has_rank = true,
        .rank = worker->number,
        .launch = worker->launch,
        .join_timeout_ms = 30000,
        .is_interrupted = &worker->is_interrupted,
    };
    do {
        worker->status = train_generation(worker, &options);
        options.outlast_ms = worker->outlast_ms;
    } while (worker->status == STATUS_AGAIN);
    worker->is_over = true;
    return (int)exit_code(worker->status);
}
