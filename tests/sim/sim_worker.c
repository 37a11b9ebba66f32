/* Joins, goes through the steps as worker/train does, and checks nothing: the test does. */
#include "tests/sim/sim_worker.h"

#include "common/base/memory.h"
#include "common/base/signals.h"
#include "common/job/carriers.h"
#include "common/job/job_modes.h"
#include "common/optimizer/optimizer.h"
#include "common/vector/digest.h"
#include "tests/sim/sim_gradients.h"
#include "tests/sim/sim_snapshots.h"
#include "tests/sim/world.h"
#include "worker/link/link.h"
#include "worker/link/link_checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
                           ? sim_gradient_of_race(i)
                           : sim_gradient(t->ranks.first + k, job_step(t, turn), i, t->params[i]);
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
        exchange_buckets_ready(t->exchange, b, 1);
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

/* Of the optimizer that all workers run alike, where they make the updates. */
static enum status fetch_states(struct sim_training *t)
{
    const struct span whole = {0, t->layout.value_count};
    uint32_t count = t->delivers_gradients ? optimizer_state_count(t->optimizer) : 0;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        char name[PIECE_NAME_BYTES];
        snprintf(name, sizeof(name), "state-%u", i + 1);
        const struct fetch wanted =
            fetch_of(name, whole.count, whole, optimizer_state(t->optimizer, i));
        status = link_fetch(t->link, &wanted);
    }
    return status;
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
        status = link_fetch(t->link, &wanted);
        return status == STATUS_OK ? fetch_states(t) : status;
    }
    for (uint32_t i = 0; i < whole.count; i++) {
        t->params[i] = sim_first_param(i);
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
    t->is_unsynchronised = job_is_unsynchronised(&t->job);
    t->is_race = sim_is_race(&t->job);
    t->delivers_gradients = exchange_of(t->job.mode.kind)->delivers == EXCHANGE_GRADIENTS;
    status =
        optimizer_create(t->job.optimizer, &t->job.settings, worker->value_count, &t->optimizer);
    status = status == STATUS_OK ? find_params(t) : status;
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

/* For the test. */
static void note_end(const struct sim_training *t)
{
    size_t bytes = t->layout.value_count * sizeof(float);
    memcpy(t->worker->params, t->params, bytes);
    t->worker->has_state = t->delivers_gradients && optimizer_state_count(t->optimizer) > 0;
    if (t->worker->has_state) {
        memcpy(t->worker->state, optimizer_state(t->optimizer, 0), bytes);
    }
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
        .optimizer = t->optimizer,
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
    note_end(t);
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
