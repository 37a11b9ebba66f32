/* Puts together what runs show, and notes where each value comes from. */
#include "deploy/calibrate/calibration.h"

#include "common/base/log.h"
#include "deploy/calibrate/calibration_codes.h"
#include "deploy/calibrate/calibration_cores.h"
#include "deploy/calibrate/calibration_launch.h"
#include "deploy/calibrate/calibration_layers.h"
#include "deploy/calibrate/calibration_links.h"
#include "deploy/calibrate/calibration_service.h"
#include "deploy/calibrate/calibration_sort.h"
#include "deploy/calibrate/calibration_unseen.h"
#include "deploy/predict/basis/fields.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LAYERS_TEXT_BYTES (80 + 3 * QUANTITY_BYTES)

struct maker {
    struct calibration_sorted sorted;
    const struct calibration_run *narrowest; // with the fewest workers
    struct calibration *made;
};

void calibration_add_note(struct calibration_notes *notes, const char *name, bool is_assumed,
                          const char *format, ...)
{
    assert(notes->count < CALIBRATION_NOTES_MAX);
    struct calibration_note *note = &notes->list[notes->count++];
    va_list arguments;
    note->name = name;
    note->is_assumed = is_assumed;
    va_start(arguments, format);
    vsnprintf(note->text, sizeof(note->text), format, arguments);
    va_end(arguments);
}

static enum status check_alike(struct calibration_run *const *runs, size_t run_count,
                               const struct model_layers *model)
{
    const struct calibration_run *first = runs[0];
    char model_name[64], other_name[64];
    calibration_run_option(first, "model", model_name, sizeof(model_name));
    for (size_t i = 0; i < run_count; i++) {
        const struct calibration_run *run = runs[i];
        calibration_run_option(run, "model", other_name, sizeof(other_name));
        if (strcmp(model_name, other_name) != 0 || run->parameters != first->parameters) {
            log_error("%s is of %s with %llu parameters, and %s of %s with %llu: costs are of one "
                      "model",
                      first->folder.path, model_name, (unsigned long long)first->parameters,
                      run->folder.path, other_name, (unsigned long long)run->parameters);
            return STATUS_INVALID;
        }
    }
    if (model->parameters != first->parameters) {
        log_error(
            "%s has %llu parameters, and this build's worker says that %s has %llu: calibrate "
            "with the version that made the run",
            first->folder.path, (unsigned long long)first->parameters, model_name,
            (unsigned long long)model->parameters);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static void name_layers(const struct model_layers *model, struct calibration *made)
{
    made->names[0] = CALIBRATION_REST_NAME;
    for (uint32_t i = 0; i < model->count; i++) {
        made->names[1 + i] = model->list[i].name;
    }
}

static void warn_if_disturbed(const struct maker *maker)
{
    double first, last;
    if (calibration_is_disturbed(maker->sorted.runs, maker->sorted.run_count, maker->narrowest,
                                 &first, &last)) {
        log_warn("one worker alone made %.0f images/s in its first run, and %.0f in its last: the "
                 "machine was disturbed, and costs are uncertain; calibrate again while nothing "
                 "else runs",
                 first, last);
    }
}

/* How much of the step's spread layers have in common shows beside both. "" without spreads. */
static void format_layer_spreads(const struct costs *costs, char ret_text[LAYERS_TEXT_BYTES])
{
    char step[QUANTITY_BYTES], apart[QUANTITY_BYTES], at_once[QUANTITY_BYTES];
    double apart_s = costs_layers_deviation_s(costs);
    ret_text[0] = '\0';
    if (apart_s > 0) {
        quantity_format(spread_deviation_s(&costs->spread), QUANTITY_TIME, step);
        quantity_format(apart_s, QUANTITY_TIME, apart);
        quantity_format(costs_layers_deviation_sum_s(costs), QUANTITY_TIME, at_once);
        snprintf(ret_text, LAYERS_TEXT_BYTES,
                 "; a step deviates by %s, its layers by %s each for itself, by %s all at once",
                 step, apart, at_once);
    }
}

static enum status take_layers(struct maker *maker, const struct model_layers *model)
{
    struct calibration *made = maker->made;
    const struct spread *spread = &made->costs.spread;
    char least[QUANTITY_BYTES], more[QUANTITY_BYTES], layers[LAYERS_TEXT_BYTES];
    name_layers(model, made);
    warn_if_disturbed(maker);
    double share =
        calibration_speed_share(maker->sorted.runs, maker->sorted.run_count, maker->narrowest);
    enum status status = calibration_layers_make(maker->narrowest, model, share, &made->costs);
    if (status != STATUS_OK) {
        return status;
    }
    quantity_format(costs_compute_s(&made->costs), QUANTITY_TIME, least);
    quantity_format(spread_mean_s(spread), QUANTITY_TIME, more);
    format_layer_spreads(&made->costs, layers);
    calibration_add_note(
        &made->cost_notes, "layers", false, "%s a step at least%s: %zu steps of workers of %s%s",
        least,
        made->costs.whole_layers ? "" : ", shared out by parameters as no layers are recorded",
        maker->narrowest->observation.step_count, maker->narrowest->name,
        share == 1 ? "" : ", at the mean speed of all runs like it");
    calibration_add_note(&made->cost_notes, "spread", false,
                         "%s more in the mean%s: the same steps%s", more,
                         spread->kind == SPREAD_NONE          ? ", which is none"
                         : spread->kind == SPREAD_EXPONENTIAL ? ", exponential"
                                                              : ", uniform",
                         layers);
    if (spread_mean_s(spread) > costs_compute_s(&made->costs)) {
        log_warn("%s: steps take %s at least, and %s more in the mean, so these costs say little; "
                 "calibrate where nothing else runs",
                 maker->narrowest->folder.path, least, more);
    }
    return STATUS_OK;
}

/* Takes what computing costs with another batch, from its run with the fewest workers. */
static enum status take_batch(struct maker *maker, uint32_t batch, const struct model_layers *model)
{
    const struct calibration_run *narrowest = NULL;
    struct calibration *made = maker->made;
    struct costs *costs = &made->others[made->other_count];
    char text[QUANTITY_BYTES], more[QUANTITY_BYTES];
    for (size_t i = 0; i < maker->sorted.other_count; i++) {
        const struct calibration_run *run = maker->sorted.others[i];
        if (run->batch == batch && (narrowest == NULL || run->workers < narrowest->workers)) {
            narrowest = run;
        }
    }
    costs->batch = batch;
    enum status status = calibration_layers_make(narrowest, model, 1, costs);
    if (status != STATUS_OK) {
        return status;
    }
    (void)calibration_input(narrowest, &costs->input_s);
    made->other_count++;
    quantity_format(costs_compute_s(costs), QUANTITY_TIME, text);
    quantity_format(spread_mean_s(&costs->spread), QUANTITY_TIME, more);
    calibration_add_note(&made->cost_notes, made->batch_names[made->other_count - 1], false,
                         "%s a step at least, %s more in the mean: %zu steps of workers of %s",
                         text, more, narrowest->observation.step_count, narrowest->name);
    return STATUS_OK;
}

static enum status take_batches(struct maker *maker, const struct model_layers *model)
{
    struct calibration *made = maker->made;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < maker->sorted.other_count && status == STATUS_OK; i++) {
        uint32_t batch = maker->sorted.others[i]->batch;
        bool is_new = true;
        for (size_t k = 0; k < made->other_count; k++) {
            is_new = is_new && made->others[k].batch != batch;
        }
        if (is_new && made->other_count == CALIBRATION_BATCHES_MAX) {
            log_error("the runs have more than %d batches besides %u; calibrate from fewer",
                      CALIBRATION_BATCHES_MAX, made->costs.batch);
            return STATUS_INVALID;
        }
        if (is_new) {
            snprintf(made->batch_names[made->other_count], sizeof(made->batch_names[0]),
                     "batches of %u", batch);
            status = take_batch(maker, batch, model);
        }
    }
    return status;
}

static void add_sums(struct observed_sums *sums, double bytes, double seconds, uint64_t count)
{
    if (bytes > 0 && seconds > 0) {
        sums->bytes += bytes;
        sums->seconds += seconds;
        sums->count += count;
    }
}

/* Where workers make updates, of the run with the fewest of them. True if there is one. */
static bool take_optimizer(struct maker *maker)
{
    struct calibration *made = maker->made;
    const struct calibration_run *from = NULL;
    char text[QUANTITY_BYTES];
    for (size_t i = 0; i < maker->sorted.run_count; i++) {
        bool is_narrower = from == NULL || maker->sorted.runs[i]->workers < from->workers;
        if (maker->sorted.runs[i]->observation.optimizer_s > 0 && is_narrower) {
            from = maker->sorted.runs[i];
        }
    }
    if (from != NULL) {
        made->costs.optimizer_s =
            from->observation.optimizer_s / (double)from->observation.step_count;
        quantity_format(made->costs.optimizer_s, QUANTITY_TIME, text);
        calibration_add_note(
            &made->cost_notes, "optimizer", false, "%s: %zu steps of workers of %s%s", text,
            from->observation.step_count, from->name,
            from->observation.has_gpu
                ? "; without what the GPU does meanwhile, which counts as computing"
                : "");
        return true;
    }
    for (size_t i = 0; i < maker->sorted.run_count; i++) {
        const struct observation *seen = &maker->sorted.runs[i]->observation;
        if (seen->served.seconds > 0) {
            made->costs.optimizer_s = seen->served.seconds / (double)seen->job_steps;
            quantity_format(made->costs.optimizer_s, QUANTITY_TIME, text);
            calibration_add_note(
                &made->cost_notes, "optimizer", true,
                "%s: servers sum and update in one pass (%s), and no worker updates; all of it "
                "counts as the optimizer",
                text, maker->sorted.runs[i]->name);
            return false;
        }
    }
    calibration_add_note(&made->cost_notes, "optimizer", true, "no time: no run shows an update");
    return false;
}

/* Sums in shared memory: each of N workers adds up N-1 vectors of a part. What their means take is
 * in it. */
static void take_group(const struct calibration_run *run, struct observed_sums *sums)
{
    const struct observed_exchange *seen = &run->observation.exchange;
    double bytes = 4.0 * (double)run->parameters * (run->workers - 1) / run->workers;
    add_sums(sums, bytes * (double)seen->group_steps, seen->group_s, seen->group_steps);
}

/* Sums and updates of servers are one slice, of which an update as workers make it is taken off. */
static void take_sums(struct maker *maker, bool knows_optimizer)
{
    struct calibration *made = maker->made;
    struct observed_sums sums = {0};
    char text[QUANTITY_BYTES];
    for (size_t i = 0; i < maker->sorted.run_count; i++) {
        const struct observation *seen = &maker->sorted.runs[i]->observation;
        add_sums(&sums, seen->sums.bytes, seen->sums.seconds, seen->sums.count);
        take_group(maker->sorted.runs[i], &sums);
        if (knows_optimizer) {
            double updates_s = made->costs.optimizer_s * (double)seen->job_steps;
            add_sums(&sums, seen->served.bytes, seen->served.seconds - updates_s,
                     seen->served.count);
        }
    }
    if (sums.count == 0) {
        calibration_add_note(
            &made->cost_notes, "sum", true,
            "no time: no run shows sums that take longer than their messages and updates do");
        return;
    }
    made->costs.sum_bandwidth = sums.bytes / sums.seconds;
    quantity_format(made->costs.sum_bandwidth, QUANTITY_BANDWIDTH, text);
    calibration_add_note(
        &made->cost_notes, "sum", false,
        "%s: %llu sums of messages, of servers, and of steps in shared memory, without "
        "updates",
        text, (unsigned long long)sums.count);
}

/* The model has one cost for both ends. Posts of buckets are the sender's. */
static void take_message(struct maker *maker)
{
    struct calibration *made = maker->made;
    struct observed_time sends = {0}, receives = {0};
    char text[QUANTITY_BYTES], send_text[QUANTITY_BYTES], receive_text[QUANTITY_BYTES];
    for (size_t i = 0; i < maker->sorted.run_count; i++) {
        const struct observation *seen = &maker->sorted.runs[i]->observation;
        double post_s = seen->posts.count > 0 ? seen->posts.seconds / (double)seen->posts.count : 0;
        bool sends_posts = seen->sends.count > 0;
        sends.seconds +=
            seen->sends.seconds + (sends_posts ? post_s * (double)seen->post_count : 0);
        sends.count += seen->sends.count;
        receives.seconds += seen->receives.seconds;
        receives.count += seen->receives.count;
    }
    if (sends.count == 0 || receives.count == 0) {
        calibration_add_note(
            &made->cost_notes, "message", true,
            "no time: no run shows messages with values; run with --transport tcp and 2 "
            "workers or more");
        return;
    }
    double send_s = sends.seconds / (double)sends.count;
    double receive_s = receives.seconds / (double)receives.count;
    struct fit_share share;
    if (calibration_message(maker->sorted.runs, maker->sorted.run_count, &share)) {
        made->costs.message_s = share.part_s;
        made->costs.errors.message = share.error < 1 ? share.error : 1;
        made->costs.message_bandwidth = share.byte_s > 0 ? 1 / share.byte_s : 0;
        quantity_format(share.part_s, QUANTITY_TIME, text);
        quantity_format(made->costs.message_bandwidth, QUANTITY_BANDWIDTH, send_text);
        calibration_add_note(&made->cost_notes, "message", false,
                             "%s and %s: what threads that send and receive take of a core, "
                             "without sums, for each of %llu sends and %llu receives",
                             text, send_text, (unsigned long long)sends.count,
                             (unsigned long long)receives.count);
        return;
    }
    made->costs.message_s = (send_s + receive_s) / 2;
    quantity_format(made->costs.message_s, QUANTITY_TIME, text);
    quantity_format(send_s, QUANTITY_TIME, send_text);
    quantity_format(receive_s, QUANTITY_TIME, receive_text);
    calibration_add_note(
        &made->cost_notes, "message", false,
        "%s: mean of %s for each of %llu sends and %s for each of %llu receives without sums", text,
        send_text, (unsigned long long)sends.count, receive_text,
        (unsigned long long)receives.count);
}

/* Lists, in the order in which they were made, the runs that show what cores do. Of runs with codes
 * those whose messages went the same way: to what carries messages these are bytes as any. Returns
 * how many there are. */
static size_t list_for_cores(const struct maker *maker, struct calibration_run *const *runs,
                             size_t run_count, struct calibration_run **ret_runs)
{
    const char *transport = "";
    size_t count = 0;
    for (size_t i = 0; i < maker->sorted.run_count; i++) {
        const struct calibration_run *run = maker->sorted.runs[i];
        transport = calibration_run_moves_values(run) ? run->transport : transport;
    }
    for (size_t i = 0; i < run_count; i++) {
        bool has_codes = !runs[i]->is_apart && calibration_run_has_codes(runs[i]);
        bool goes_another_way = has_codes && strcmp(runs[i]->transport, transport) != 0;
        if (runs[i]->batch == maker->made->costs.batch && !goes_another_way) {
            ret_runs[count++] = runs[i];
        }
    }
    return count;
}

/* The batch that most runs have; of several the first. */
static uint32_t find_batch(struct calibration_run *const *runs, size_t run_count)
{
    uint32_t batch = 0;
    size_t most = 0;
    for (size_t i = 0; i < run_count; i++) {
        size_t count = 0;
        for (size_t k = 0; k < run_count; k++) {
            count += runs[k]->batch == runs[i]->batch;
        }
        if (count > most) {
            most = count;
            batch = runs[i]->batch;
        }
    }
    return batch;
}

static void find_runs(struct maker *maker)
{
    const struct calibration_run *widest = maker->sorted.runs[0];
    maker->narrowest = maker->sorted.runs[0];
    for (size_t i = 1; i < maker->sorted.run_count; i++) {
        const struct calibration_run *run = maker->sorted.runs[i];
        maker->narrowest = run->workers < maker->narrowest->workers ? run : maker->narrowest;
        // Servers come last. A run on fewer cores than there are says less of the host.
        bool is_wider =
            run->workers > widest->workers ||
            (run->workers == widest->workers && run->hosts[0].cores >= widest->hosts[0].cores);
        widest = is_wider ? run : widest;
    }
    maker->made->widest = widest;
}

enum status calibration_make(struct calibration_run *const *runs, size_t run_count,
                             const struct model_layers *model,
                             const struct calibration_known *known,
                             struct calibration *ret_calibration)
{
    struct maker maker = {.made = ret_calibration};
    struct calibration_run *all[CALIBRATION_RUNS_MAX];
    memset(ret_calibration, 0, sizeof(*ret_calibration));
    enum status status = check_alike(runs, run_count, model);
    ret_calibration->costs.batch = find_batch(runs, run_count);
    if (status == STATUS_OK) {
        status = calibration_sort(runs, run_count, ret_calibration->costs.batch, &maker.sorted);
    }
    if (status != STATUS_OK) {
        return status;
    }
    find_runs(&maker);
    for (size_t i = 0; i < run_count; i++) {
        calibration_run_tell(runs[i], &ret_calibration->conditions);
    }
    status = take_layers(&maker, model);
    if (status == STATUS_OK) {
        status = take_batches(&maker, model);
    }
    if (status != STATUS_OK) {
        return status;
    }
    bool knows_optimizer = take_optimizer(&maker);
    take_message(&maker);
    take_sums(&maker, knows_optimizer);
    calibration_take_codes(maker.sorted.coded, maker.sorted.coded_count, maker.sorted.runs,
                           maker.sorted.run_count, ret_calibration);
    size_t all_count = list_for_cores(&maker, runs, run_count, all);
    calibration_take_cores(all, all_count, maker.narrowest, ret_calibration);
    calibration_take_turns(runs, run_count, maker.narrowest, ret_calibration);
    calibration_take_crowding(all, all_count, maker.narrowest, ret_calibration);
    calibration_take_links(maker.sorted.runs, maker.sorted.run_count, known, ret_calibration);
    calibration_take_launch(runs, run_count, ret_calibration);
    calibration_note_service(maker.sorted.runs, maker.sorted.run_count, ret_calibration);
    calibration_take_unseen(maker.sorted.runs, maker.sorted.run_count, ret_calibration);
    return STATUS_OK;
}
