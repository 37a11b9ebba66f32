/* Fills a live state from the coordinator. */
#include "ps-server/live/live_fill.h"

#include "common/job/job_modes.h"
#include "common/job/phases.h"
#include "ps-server/coordinator/generation.h"

#include <math.h>
#include <string.h>

/* Cuts what is too long. */
static void set_text(char *field, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);
    memcpy(field, text, length);
    field[length] = '\0';
}
#define SET_TEXT(field, text) set_text(field, sizeof(field), text)

void live_fill_job(struct live_state *state, const struct job *job)
{
    char dataset[JOB_NAME_BYTES];
    const char *path;
    job_split_data(job->data, dataset, &path);
    SET_TEXT(state->version, RINGSIDE_VERSION);
    SET_TEXT(state->mode, mode_text(job->mode).text);
    SET_TEXT(state->model, job->model);
    SET_TEXT(state->dataset, dataset);
    SET_TEXT(state->device, job->device);
    SET_TEXT(state->optimizer, job_optimizer_text(job));
    state->servers = job->servers;
    state->global_batch = job->global_batch;
}

/* Of the phase that is trained, in a job that may change its mode. */
static struct mode current_mode(const struct coordinator *coordinator)
{
    struct phases phases;
    char why[OPTION_ERROR_BYTES];
    bool is_known = phases_of(coordinator->job, coordinator->train_samples, &phases, why,
                              sizeof(why)) == STATUS_OK &&
                    coordinator->phase_index < phases.count;
    return is_known ? phases.list[coordinator->phase_index].mode : coordinator->job->mode;
}

void live_fill_start(struct live_state *state, const struct coordinator *coordinator)
{
    const struct job *job = coordinator->job;
    const struct mode mode = current_mode(coordinator);
    const char *device = coordinator->membership.workers[0].device;
    char all_reduce[LIVE_TEXT_BYTES];
    SET_TEXT(state->mode, mode_text(mode).text);
    SET_TEXT(state->optimizer, job_optimizer_text(job)); // a program of its own has said it by now
    if (strcmp(state->outcome, "training") != 0) {
        state->processes = coordinator->carriers.processes; // later, more of them are news
    }
    SET_TEXT(state->outcome, "training");
    if (device[0] != '\0') {
        SET_TEXT(state->device, device);
    }
    state->parameters = coordinator->parameters;
    state->total_steps = job_known_steps(job, coordinator->train_samples);
    state->servers = job->servers;
    state->all_reduce[0] = '\0';
    state->shape = mode_has_servers(mode.kind) ? LIVE_STAR
                   : job->workers > 1          ? LIVE_RING
                                               : LIVE_ALONE;
    if (state->shape == LIVE_RING &&
        coordinator_all_reduce(coordinator, all_reduce, sizeof(all_reduce))) {
        SET_TEXT(state->all_reduce, all_reduce);
    }
}

static double per_step_ms(uint64_t ns, uint64_t steps)
{
    return steps > 0 ? (double)ns / 1e6 / (double)steps : 0;
}

void live_fill_report(struct live_state *state, uint32_t rank, const struct message *message)
{
    const struct wire_report *report = message->report;
    struct live_rank *of = &state->ranks[rank];
    double staleness = report->steps > 0 ? report->staleness_sum / (double)report->steps : 0;
    of->step = message->step;
    of->loss = report->images > 0 ? report->loss_sum / (double)report->images : 0;
    of->images_per_second =
        report->total_ns > 0 ? results_images_used(report) * 1e9 / (double)report->total_ns : 0;
    of->compute_ms = per_step_ms(report->compute_ns, report->steps);
    of->exchange_wait_ms = per_step_ms(report->exchange_wait_ns, report->steps);
    of->input_wait_ms = per_step_ms(report->input_wait_ns, report->steps);
    of->staleness = isfinite(staleness) && staleness > 0 ? staleness : 0;
    of->rate = report->rate;
    of->steps += report->steps;
    of->images += report->images;
    of->compute_ns += report->compute_ns;
    of->exchange_wait_ns += report->exchange_wait_ns;
    of->input_wait_ns += report->input_wait_ns;
    of->bytes_sent += report->bytes_sent;
    of->bytes_received += report->bytes_received;
    state->epoch = report->epoch + 1;
    state->rate = report->rate;
    live_add_staleness(&state->staleness, of->staleness, report->steps);
}

void live_fill_period(struct live_state *state, const struct coordinator *coordinator,
                      uint32_t period)
{
    const struct results_period *of = &coordinator->results.periods[period];
    if (of->test_images == 0) {
        return;
    }
    uint64_t step = results_period_end(&coordinator->results, coordinator->job,
                                       coordinator->train_samples, period);
    state->has_accuracy = true;
    state->accuracy = results_accuracy(&coordinator->results, period);
    state->test_loss = of->test_loss_sum / (double)of->test_images;
    const struct live_point point = {
        .step = step, .seconds = state->seconds, .value = {state->accuracy, state->test_loss}};
    live_add_point(&state->evaluations, &point);
}

void live_fill_go_on(struct live_state *state, const struct coordinator *coordinator)
{
    uint64_t step = generation_begin_step(coordinator);
    live_cut_curve(&state->progress, step);
    live_cut_curve(&state->evaluations, step);
    for (uint32_t i = 0; i < state->workers; i++) {
        state->ranks[i].step = step;
    }
    state->step = step;
    live_add_event(state, "on", "training goes on from step %llu with %u of %u worker processes",
                   (unsigned long long)step, coordinator->carriers.processes,
                   coordinator->job->processes);
}

static void note_changes(struct live_state *state, const struct coordinator *coordinator)
{
    const struct checkpointing *checkpointing = &coordinator->checkpointing;
    if (coordinator->workers_lost > state->workers_lost) {
        state->workers_lost = coordinator->workers_lost;
        live_add_event(state, "lost", "%s", coordinator->reason);
    }
    if (coordinator->state == COORDINATOR_TRAINING &&
        coordinator->carriers.processes > state->processes) {
        live_add_event(state, "joined", "%u worker processes carry the ranks now",
                       coordinator->carriers.processes);
    }
    if (coordinator->state == COORDINATOR_TRAINING) {
        state->processes = coordinator->carriers.processes;
    }
    if (checkpointing->written != 0 && checkpointing->written != state->checkpoint_step) {
        state->checkpoint_step = checkpointing->written;
        state->checkpoints++;
        live_add_event(state, "checkpoint", "step %llu is on the disk",
                       (unsigned long long)checkpointing->written);
    }
    state->restarts = generation_restarts(coordinator);
}

void live_fill_now(struct live_state *state, const struct coordinator *coordinator, uint64_t now_ms)
{
    uint64_t step = live_step_of_all(state, job_is_unsynchronised(coordinator->job));
    bool is_further = step > state->step;
    if (generation_started_ms(coordinator) != 0) {
        state->seconds = generation_seconds(coordinator, now_ms);
    }
    state->step = step;
    state->loss = results_current_loss(&coordinator->results);
    state->images_per_second = results_current_rate(&coordinator->results);
    state->slowest = results_slowest_rank(&coordinator->results);
    note_changes(state, coordinator);
    if (is_further) {
        const struct live_point point = {.step = step,
                                         .seconds = state->seconds,
                                         .value = {state->loss, state->images_per_second}};
        live_add_point(&state->progress, &point);
    }
}

void live_fill_end(struct live_state *state, const struct coordinator *coordinator)
{
    bool is_completed = coordinator->verdict == STATUS_OK;
    if (generation_started_ms(coordinator) != 0) {
        live_fill_now(state, coordinator, coordinator->ended_ms);
    }
    SET_TEXT(state->outcome, is_completed ? "completed" : "failed");
    SET_TEXT(state->reason, coordinator->reason);
    live_add_event(state, is_completed ? "completed" : "failed", "%s",
                   is_completed ? "the job is over" : coordinator->reason);
}
