/* Adds up a step's times, reports them, and closes marks. */
#include "worker/data/batches/loaders.h"
#include "worker/train/trainer_state.h"

#include <pthread.h>
#include <string.h>

/* What all slices have in common. */
static void add_step(struct wire_report *report, const struct step_times *times, uint64_t total_ns)
{
    report->input_wait_ns += times->input_ns;
    report->compute_ns += times->compute_ns;
    report->exchange_wait_ns += times->exchange_ns;
    report->copy_ns += times->copy_ns;
    report->wire_ns += times->wire_ns;
    report->total_ns += total_ns;
}

/* Whether an order says which gradient of which worker comes when. */
static bool has_order(const struct trainer *trainer)
{
    return mode_updates_on_push(trainer->phase->mode.kind) &&
           strcmp(trainer->job->order, "free") != 0;
}

/* Whether a step belongs to the period behind the open one. Where there is an order, it may be made
 * before the mark between them is passed, which depends on speed; what is counted does not. */
static bool is_ahead(const struct trainer *trainer, uint64_t step)
{
    return has_order(trainer) && step / trainer->phase->marks.period > trainer->periods_closed;
}

void trainer_count_step(struct trainer *trainer, uint64_t step, const struct step_times *times,
                        uint64_t total_ns)
{
    const struct rank_block turn = trainer_turn(trainer);
    double turn_images = 0;
    bool is_warm = step >= trainer->warmup_steps;
    for (uint32_t i = turn.first; i < turn.first + turn.count; i++) {
        struct slice *slice = &trainer->slices.list[i];
        uint32_t images = job_batch_of(trainer->job, slice->rank);
        turn_images += images;
        slice_count_step(slice, step, images, is_ahead(trainer, step));
        slice->pushed_images += images;
        slice->pushed_warm_images += is_warm ? images : 0;
        trainer->warm_images += is_warm ? images : 0;
    }
    trainer->warm_ns += is_warm ? total_ns : 0;
    add_step(&trainer->interval, times, total_ns);
    add_step(&trainer->period, times, total_ns);
    trace_note(trainer->clock.trace,
               &(struct trace_tag){.kind = TRACE_IMAGES_PER_SECOND,
                                   .bucket = TRACE_NO_BUCKET,
                                   .step = step,
                                   .value = turn_images * 1e9 / (double)(total_ns + 1)});
}

/* What became of the gradient of the round that has ended, where workers are unsynchronised: that
 * of the only rank, or of the one whose turn it was. */
static void note_fate(struct trainer *trainer)
{
    const struct exchange_fate fate = exchange_fate(trainer->exchange);
    struct slice *slice = &trainer->slices.list[trainer->turn];
    trainer->applied_rate = fate.rate;
    trace_note(trainer->clock.trace, &(struct trace_tag){.kind = TRACE_STALENESS,
                                                         .bucket = TRACE_NO_BUCKET,
                                                         .step = trainer->clock.step,
                                                         .value = fate.staleness});
    if (fate.staleness > trainer->staleness_max) {
        trainer->staleness_max = fate.staleness;
    }
    if (trainer->round_steps > 0) { // the round goes on, and nothing was pushed
        slice->interval.staleness_sum += fate.staleness;
        return;
    }
    trainer->warm_dropped += fate.late_share * slice->pushed_warm_images;
    slice_note_fate(slice, fate.late_share, fate.staleness);
}

/* Asks for parameters to go on with, after those of a mark. A server that held the last push until
 * the mark was read knows only now whether that came too late. */
static enum status pull_next(struct trainer *trainer)
{
    enum status status = exchange_pull(trainer->exchange, 0);
    if (status == STATUS_OK) {
        struct slice *slice = &trainer->slices.list[trainer->turn];
        double late_share = exchange_fate(trainer->exchange).late_share;
        trainer->warm_dropped += slice_amend_fate(slice, late_share);
    }
    return status;
}

/* The learning rate of the step that was made last, `step` having been made: where servers make
 * updates for unsynchronised workers, they know it. */
static double rate_in_force(const struct trainer *trainer, uint64_t step)
{
    bool is_theirs =
        trainer->phase->is_unsynchronised && trainer->base == NULL && trainer->applied_rate > 0;
    return is_theirs ? trainer->applied_rate
                     : schedule_rate(&trainer->schedule, step > 0 ? step - 1 : 0);
}

static uint32_t loader_threads(const struct trainer *trainer)
{
    if (trainer->loaders == NULL) {
        return 1;
    }
    pthread_mutex_lock(loaders_lock(trainer->loaders));
    uint32_t count = loaders_count(trainer->loaders);
    pthread_mutex_unlock(loaders_lock(trainer->loaders));
    return count;
}

struct wire_report trainer_report_of(const struct wire_report *process,
                                     const struct slice_sums *own)
{
    struct wire_report report = *process;
    report.steps = own->steps;
    report.images = own->images;
    report.loss_sum = own->loss_sum;
    report.staleness_sum = own->staleness_sum;
    report.images_dropped = own->images_dropped;
    return report;
}

struct slice_sums trainer_open_period(const struct trainer *trainer, const struct slice *slice,
                                      uint64_t steps)
{
    return is_ahead(trainer, steps) ? slice->next_period : slice->period;
}

bool trainer_has_interval(const struct trainer *trainer)
{
    // None goes before the first. What was dropped may be known after its step was reported.
    bool has_some = trainer->slices.list[0].interval.steps > 0;
    for (uint32_t i = 0; i < trainer->slices.count && !has_some; i++) {
        has_some = trainer->slices.list[i].interval.images_dropped > 0;
    }
    return has_some;
}

void trainer_report_interval(struct trainer *trainer, struct link *link, uint64_t step)
{
    uint64_t sent, received;
    link_traffic(link, &sent, &received);
    trainer->interval.rate = rate_in_force(trainer, step);
    trainer->interval.loader_threads = loader_threads(trainer);
    trainer->interval.bytes_sent = sent - trainer->sent_before;
    trainer->interval.bytes_received = received - trainer->received_before;
    trainer->sent_before = sent;
    trainer->received_before = received;
    // Where workers are unsynchronised, the job is where its servers are.
    uint64_t made = trainer->phase->is_unsynchronised
                        ? trainer->periods_closed * trainer->phase->marks.period
                        : step - 1;
    trainer->interval.epoch = made / trainer->steps_per_epoch;
    for (uint32_t i = 0; i < trainer->slices.count; i++) {
        struct slice *slice = &trainer->slices.list[i];
        const struct wire_report report = trainer_report_of(&trainer->interval, &slice->interval);
        if (report.steps == 0 && report.images_dropped == 0) {
            continue; // the phase was over before its turn
        }
        // A job may end in the midst of a step, which the ranks before have made already.
        link_report(link, slice->rank, slice->made > step ? slice->made : step, &report);
        slice->interval = (struct slice_sums){0};
        trainer->interval.bytes_sent = trainer->interval.bytes_received = 0; // they count once
    }
    trainer->interval = (struct wire_report){0};
}

/* Batch normalisation has learned something else of every rank's batches: each goes on from the
 * mean. Where workers are unsynchronised none waits for another, and each evaluates with its own.
 */
static enum status average_statistics(struct trainer *trainer)
{
    uint64_t count = model_statistic_count(trainer->model);
    const struct slices *slices = &trainer->slices;
    if (trainer->statistics == NULL || trainer->phase->is_unsynchronised) {
        return STATUS_OK;
    }
    enum status status = model_fetch_statistics(trainer->model);
    if (status != STATUS_OK) {
        return status;
    }
    for (uint32_t k = 0; k < slices->count; k++) {
        const float *statistics = slice_statistics(slices, &slices->list[k]);
        bool is_left_out = slices->list[k].is_left_out;
        for (uint64_t i = 0; i < count; i++) {
            trainer->statistics[k * count + i] = is_left_out ? 0 : (double)statistics[i];
        }
    }
    status = link_sum(trainer->link, trainer->statistics, (uint32_t)count);
    if (status != STATUS_OK) {
        return status;
    }
    float *mean = model_statistics(trainer->model); // that are evaluated
    uint32_t present = trainer->job->workers - trainer->job->left_out.count;
    for (uint64_t i = 0; i < count; i++) {
        mean[i] = (float)(trainer->statistics[i] / present);
    }
    for (uint32_t k = 0; k < slices->count && status == STATUS_OK; k++) {
        status = slice_leave(slices, &slices->list[k]);
    }
    return status;
}

static enum status evaluate(struct trainer *trainer, struct slice *slice,
                            struct wire_report *report)
{
    uint64_t began_ns = trace_enter(trainer->clock.trace, TRACE_EVALUATION, TRACE_NO_BUCKET);
    enum status status = evaluator_run(slice->evaluator, report);
    trace_leave(trainer->clock.trace, began_ns,
                &(struct trace_tag){.kind = TRACE_EVALUATION,
                                    .bucket = TRACE_NO_BUCKET,
                                    .step = trainer->clock.step});
    return status;
}

/* Every rank evaluates its part of the test set, if there is an evaluation, and tells. */
static enum status report_period(struct trainer *trainer, struct link *link, uint64_t worker_step,
                                 bool is_evaluated)
{
    for (uint32_t i = 0; i < trainer->slices.count; i++) {
        struct slice *slice = &trainer->slices.list[i];
        struct wire_report report = trainer_report_of(&trainer->period, &slice->period);
        enum status status = is_evaluated ? evaluate(trainer, slice, &report) : STATUS_OK;
        if (status != STATUS_OK) {
            return status;
        }
        link_report(link, slice->rank, worker_step, &report);
        slice_close_period(slice);
    }
    trainer->period = (struct wire_report){0};
    return STATUS_OK;
}

/* A mark at `step` that ends a period, or the job: all ranks look at the same parameters.
 * `worker_step` is this worker's own. */
static enum status close_period(struct trainer *trainer, struct link *link, uint64_t worker_step,
                                bool is_evaluated)
{
    enum status status = STATUS_OK;
    if (is_evaluated) {
        status = average_statistics(trainer);
    }
    if (status != STATUS_OK) {
        return status;
    }
    uint64_t period = trainer->periods_closed++;
    trainer->period.closes_period = true;
    trainer->period.period = period;
    status = report_period(trainer, link, worker_step, is_evaluated);
    if (status != STATUS_OK) {
        return status;
    }
    if (is_evaluated && trainer->job->target_accuracy > 0) {
        status = link_await_decision(link, period, &trainer->is_enough);
    }
    if (trainer->is_enough && trainer_has_interval(trainer)) {
        trainer_report_interval(trainer, link, worker_step); // no other will come
    }
    return status;
}

static bool ends_period(const struct trainer *trainer, uint64_t step)
{
    return step % trainer->phase->marks.period == 0;
}

static bool is_evaluated_at(const struct trainer *trainer, uint64_t step)
{
    bool is_last = step == trainer->step_count;
    // --eval-every has the end of the job, too.
    bool is_due = ends_period(trainer, step) || (is_last && trainer->job->eval_every > 0);
    return (is_due && trainer->job->eval == EVALUATION_EPOCH) ||
           (is_last && trainer->job->eval == EVALUATION_END);
}

/* Closes a mark that the servers have passed: evaluates what they kept of it. */
static enum status close_passed_mark(struct trainer *trainer, struct link *link,
                                     uint64_t worker_step)
{
    const struct marks *marks = &trainer->phase->marks;
    uint64_t mark = ++trainer->marks_closed, step = marks_step(marks, mark);
    bool is_last = step == marks->end;
    bool is_evaluated = is_evaluated_at(trainer, step);
    enum status status = STATUS_OK;
    if (is_evaluated || is_last) {
        status = exchange_pull(trainer->exchange, mark);
    }
    if (status == STATUS_OK && (ends_period(trainer, step) || step == trainer->step_count)) {
        status = close_period(trainer, link, worker_step, is_evaluated);
    }
    // What was evaluated is not what to go on with.
    bool goes_on = is_evaluated && !is_last && !trainer->is_enough;
    return status == STATUS_OK && goes_on ? pull_next(trainer) : status;
}

/* Closes what was passed, also while a mark is closed. Nothing may be on its way, and no round have
 * begun: in the midst of one nothing can be pulled. */
static enum status close_passed_marks(struct trainer *trainer, struct link *link, uint64_t step)
{
    enum status status = STATUS_OK;
    uint64_t count = marks_count(&trainer->phase->marks);
    // In the midst of a step only if no other will come.
    bool is_due = trainer->turn + 1 >= exchange_turns(trainer->exchange) &&
                  step % trainer->job->report_every == 0;
    while (status == STATUS_OK) {
        uint64_t passed = exchange_marks_passed(trainer->exchange);
        if (trainer_has_interval(trainer) && (is_due || passed >= count)) {
            trainer_report_interval(trainer, link, step);
        }
        if (trainer->is_enough || trainer->marks_closed == (passed < count ? passed : count)) {
            break;
        }
        status = close_passed_mark(trainer, link, step);
    }
    return status;
}

enum status trainer_before_steps(struct trainer *trainer, struct link *link, uint64_t step)
{
    if (!trainer->phase->is_unsynchronised) {
        return STATUS_OK;
    }
    enum status status = exchange_settle(trainer->exchange);
    return status == STATUS_OK ? close_passed_marks(trainer, link, step) : status;
}

enum status trainer_after_step(struct trainer *trainer, struct link *link, uint64_t step)
{
    link_set_step(link, step);
    if (trainer->phase->is_unsynchronised) {
        note_fate(trainer);
        return close_passed_marks(trainer, link, step);
    }
    bool is_last = step == trainer->step_count;
    if (is_last || step % trainer->job->report_every == 0) {
        trainer_report_interval(trainer, link, step);
    }
    if (!ends_period(trainer, step) && !is_last) {
        return STATUS_OK;
    }
    enum status status = exchange_settle(trainer->exchange);
    return status == STATUS_OK ? close_period(trainer, link, step, is_evaluated_at(trainer, step))
                               : status;
}

bool trainer_phase_is_over(const struct trainer *trainer, uint64_t step)
{
    const struct marks *marks = &trainer->phase->marks;
    bool is_over = trainer->phase->is_unsynchronised ? trainer->marks_closed == marks_count(marks)
                                                     : step == marks->end;
    return is_over || trainer->is_enough;
}
