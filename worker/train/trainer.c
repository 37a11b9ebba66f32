/* Runs the phases of a job one after the other, and describes what a trainer has. */
#include "worker/train/trainer.h"

#include "common/base/log.h"
#include "common/job/job_modes.h"
#include "common/job/phases.h"
#include "worker/link/outbox.h"
#include "worker/train/device_sums.h"
#include "worker/train/trainer_state.h"

#include <math.h>
#include <stdio.h>

/* What comes between two steps, or turns. `step` counts those that were made. */
static enum status follow_turn(struct trainer *trainer, struct link *link, uint64_t step)
{
    uint64_t began_ns = trace_enter(trainer->clock.trace, TRACE_AFTER_STEP, TRACE_NO_BUCKET);
    enum status status = trainer_after_step(trainer, link, step);
    trace_leave(trainer->clock.trace, began_ns,
                &(struct trace_tag){.kind = TRACE_AFTER_STEP,
                                    .bucket = TRACE_NO_BUCKET,
                                    .step = trainer->clock.step});
    return status;
}

/* A step, or a turn of one: what follows it, and the checkpoint behind a step that is whole. */
static enum status train_turn(struct trainer *trainer, struct link *link, uint64_t *step)
{
    uint64_t started_ns = clock_now_ns();
    struct step_times times;
    enum status status = trainer_step(trainer, *step, &times);
    if (status != STATUS_OK) {
        return status;
    }
    uint64_t turn_ns = clock_now_ns() - started_ns;
    bool is_whole = trainer->turn + 1 == exchange_turns(trainer->exchange);
    trainer_count_step(trainer, *step, &times, turn_ns);
    trainer->turns_ns += turn_ns;
    *step += is_whole;
    status = follow_turn(trainer, link, *step);
    trainer->turn = is_whole ? 0 : trainer->turn + 1;
    if (status != STATUS_OK || !is_whole) {
        return status;
    }
    trial_add(&trainer->trial, trainer->turns_ns, trainer->round_steps == 0);
    trainer->turns_ns = 0;
    return trainer_checkpoint_after_step(trainer, link, *step);
}

/* All steps of a phase. *step counts those of the job that were made. */
static enum status train_phase(struct trainer *trainer, struct link *link, uint64_t *step)
{
    trainer->round_steps = 0;
    trainer->marks_closed = phase_marks_before(trainer->phase);
    trainer->round = phase_rounds_before(trainer->phase, trainer->job->sync_every) *
                     exchange_turns(trainer->exchange);
    trainer->turn = 0;
    trainer->turns_ns = 0;
    trainer->trial = (struct trial){0};
    enum status status = device_sums_meet(trainer);
    if (status != STATUS_OK) {
        return status;
    }
    status = trainer_checkpoint_begin_phase(trainer, link);
    if (status != STATUS_OK) {
        return status;
    }
    status = trainer_before_steps(trainer, link, *step);
    while (status == STATUS_OK && !trainer_phase_is_over(trainer, *step)) {
        status = train_turn(trainer, link, step);
    }
    return status == STATUS_OK ? exchange_settle(trainer->exchange) : status;
}

/* Fills `states`, which borrow from the optimizer, with what this phase leaves behind: parameters
 * in the model, and the states of servers that have some. */
static enum status collect_states(struct trainer *trainer, float **states, uint32_t *ret_count)
{
    bool servers_have_states = trainer->phase->mode.kind != MODE_RING && trainer->base == NULL;
    uint32_t count = trainer->base == NULL ? optimizer_state_count(trainer->optimizer) : 0;
    enum status status = model_fetch(trainer->model);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        states[i] = optimizer_state(trainer->optimizer, i);
        if (servers_have_states) {
            status = exchange_pull_state(trainer->exchange, 1 + i, states[i]);
        }
    }
    *ret_count = count;
    return status;
}

/* Takes what the next phase needs out of the one that ends, and waits for it to begin: then all
 * workers hold the same parameters and states, and go on in the same place of the data. */
static enum status pass_phase(struct trainer *trainer, struct link *link)
{
    float *states[OPTIMIZER_STATES_MAX];
    struct link_passed passed = {.states = states, .step_ns = trial_step_ns(&trainer->trial)};
    enum status status = collect_states(trainer, states, &passed.state_count);
    if (status != STATUS_OK) {
        return status;
    }
    status = exchange_drain(trainer->exchange);
    if (status != STATUS_OK) {
        return status;
    }
    status = link_pass(link, &passed);
    trainer->exchange = link_exchange(link); // the old one may be gone, also if the job ends
    if (status != STATUS_OK) {
        return status;
    }
    trainer->phase++;
    bucket_names_cut(&trainer->names, trainer->trace, trainer->model, link_bucket_bytes(link));
    uint64_t first = trainer->phase->marks.first;
    return slices_seek(&trainer->slices, first / trainer->steps_per_epoch,
                       first % trainer->steps_per_epoch);
}

static enum status train(struct trainer *trainer, struct link *link, uint64_t *ret_step)
{
    const struct phase *last = &trainer->phases.list[trainer->phases.count - 1];
    for (;;) {
        enum status status = train_phase(trainer, link, ret_step);
        if (status != STATUS_OK || trainer->phase == last || trainer->is_enough) {
            return status;
        }
        status = pass_phase(trainer, link);
        if (status != STATUS_OK) {
            return status;
        }
        *ret_step = trainer->phase->marks.first;
    }
}

/* What helps against a loss that is not finite. */
static void describe_divergence(const struct trainer *trainer, uint64_t step, char *ret_text,
                                size_t text_size)
{
    const struct job *job = trainer->job;
    double rate = trainer->schedule.base_rate;
    char effective[64] = "", stale[192] = "";
    if (rate > job->lr) {
        snprintf(effective, sizeof(effective), " (%g by --lr-scale linear)", rate);
    }
    if (trainer->staleness_max > 0) {
        bool has_remedy = job->remedy != REMEDY_NONE;
        snprintf(stale, sizeof(stale),
                 "; gradients were up to %.0f updates old, and the rate that training survives "
                 "falls with that: less staleness%s helps, too",
                 ceil(trainer->staleness_max), has_remedy ? "" : ", or --remedy staleness-lr,");
    }
    snprintf(ret_text, text_size,
             "the loss is not finite at step %llu: try a lower --lr than %g%s%s%s",
             (unsigned long long)step + 1, job->lr, effective,
             job->warmup_epochs > 0 ? "" : ", or --warmup-epochs", stale);
}

static void say_why_not(const struct trainer *trainer, struct link *link, uint64_t step,
                        enum status status)
{
    char text[OUTBOX_TEXT_BYTES];
    if (status == STATUS_NOT_FINITE) {
        describe_divergence(trainer, step, text, sizeof(text));
    } else {
        snprintf(text, sizeof(text), "step %llu failed: %s", (unsigned long long)step + 1,
                 status_text(status));
    }
    log_error("%s", text);
    link_leave(link, status, text);
}

enum status trainer_run(struct trainer *trainer, struct link *link)
{
    trainer->link = link;
    trainer->exchange = link_exchange(link);
    bucket_names_cut(&trainer->names, trainer->trace, trainer->model, link_bucket_bytes(link));
    link_traffic(link, &trainer->sent_before, &trainer->received_before); // to get here
    uint64_t step = trainer->checkpoint.begin_step;
    enum status status = train(trainer, link, &step);
    if (status == STATUS_OK) {
        status = trainer_checkpoint_end(trainer, link);
    }
    if (status == STATUS_OK) {
        status = model_fetch(trainer->model);
    }
    enum status ending = exchange_stopped(trainer->exchange);
    if (status != STATUS_OK && status == ending) {
        return link_verdict(link); // the job was ended elsewhere: the coordinator knows
    }
    if (status != STATUS_OK) {
        say_why_not(trainer, link, step, status);
        return status;
    }
    uint64_t dropped = (uint64_t)(trainer->warm_dropped + 0.5);
    struct wire_report report = {.warm_images = trainer->warm_images - dropped,
                                 .warm_ns = trainer->warm_ns};
    digest_floats(model_params(trainer->model), model_layout(trainer->model)->value_count,
                  trainer->digest);
    link_done(link, step, &report, trainer->digest);
    return link_verdict(link);
}

void trainer_describe(const struct trainer *trainer, struct link_prepared *ret_prepared)
{
    *ret_prepared = (struct link_prepared){
        .layout = model_fine_layout(trainer->model),
        .params = model_params(trainer->model),
        .grads = model_grads(trainer->model),
        .vectors = model_gradients(trainer->model),
        .region = model_region(trainer->model),
        .params_digest = trainer->digest,
        .device = trainer->device,
        .train_samples = trainer->train_samples,
        .test_samples = trainer->test_samples,
        .data_digest = trainer->data_digest,
        .parameters = model_published_count(trainer->model),
        .nccl = job_has_nccl(trainer->job) ? &trainer->nccl : NULL,
        .trace = trainer->trace,
    };
    if (trainer->device_memory.vectors != NULL) {
        ret_prepared->params = trainer->exposed.params;
        ret_prepared->grads = trainer->exposed.grads;
        ret_prepared->vectors = trainer->exposed_gradients;
        ret_prepared->region = &trainer->exposed_region;
        ret_prepared->device_memory = &trainer->device_memory;
    }
}

void trainer_describe_program(const struct trainer *trainer, char *ret_text, size_t text_size)
{
    model_describe(trainer->model, ret_text, text_size);
}

uint64_t trainer_device_memory(const struct trainer *trainer)
{
    return model_device_memory(trainer->model);
}
