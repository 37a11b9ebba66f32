/* Shares out what cores worked. */
#include "deploy/calibrate/calibration_cores.h"

#include "common/base/slice.h"
#include "deploy/calibrate/fit.h"
#include "deploy/predict/basis/fields.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_MIN 0.7 // of the time, for runs that show what other cores take from one

bool calibration_knows_cores(const struct calibration_run *run)
{
    return run->observation.cores.workers.processes > 0 && !run->observation.has_gpu &&
           run->threads == 1;
}

/* A worker's step, without updates: it is computed by one thread. */
static double compute_s(const struct calibration_run *run)
{
    const struct observation *seen = &run->observation;
    return seen->cores.workers.compute_s - seen->optimizer_s / (double)seen->step_count;
}

double calibration_core_share(const struct calibration_run *run)
{
    const struct observation *seen = &run->observation;
    double passed_s = 0;
    for (size_t i = 0; i < seen->step_count; i++) {
        passed_s += seen->step_s[i] / (double)seen->step_count;
    }
    return calibration_knows_cores(run) && passed_s > 0 && compute_s(run) > 0
               ? compute_s(run) / passed_s
               : 1;
}

bool calibration_is_crowded(const struct calibration_run *run)
{
    return calibration_run_has_one_machine(run) &&
           run->hosts[0].cores < run->workers * run->threads;
}

/* Of messages at one end: none of what is lent. */
static double carried_bytes(const struct calibration_run *run, const struct observed_cpu *cpu)
{
    return calibration_run_lends(run) ? 0 : calibration_run_coded_share(run) * cpu->bytes;
}

/* What messages took in each kind of processes of each run: of the threads that send and receive,
 * or of those that carry, besides `input_s` of a worker. Runs in which workers took turns count
 * where there are no others. Returns how many there are. */
static size_t list_loads(struct calibration_run *const *runs, size_t run_count, bool carries,
                         double input_s, struct fit_load ret_loads[2 * CALIBRATION_RUNS_MAX])
{
    size_t count = 0;
    bool has_calm = false;
    for (size_t i = 0; i < run_count; i++) {
        has_calm = has_calm || (!runs[i]->is_apart && !calibration_is_crowded(runs[i]) &&
                                calibration_knows_cores(runs[i]) &&
                                runs[i]->observation.cores.workers.ends > 0);
    }
    for (size_t i = 0; i < run_count; i++) {
        const struct observation *seen = &runs[i]->observation;
        const struct observed_cpu *both[2] = {&seen->cores.workers, &seen->cores.servers};
        const double work_s[2] = {seen->sums.seconds, seen->served.seconds};
        if (!calibration_knows_cores(runs[i]) || runs[i]->is_apart ||
            (has_calm && calibration_is_crowded(runs[i]))) {
            continue;
        }
        for (size_t j = 0; j < 2; j++) {
            double own_s = both[j]->others_s - (j == 0 ? input_s : 0);
            if (both[j]->processes == 0 || both[j]->ends <= 0) {
                continue;
            }
            double bytes = carries ? carried_bytes(runs[i], both[j]) : both[j]->bytes;
            if (!carries) {
                own_s = both[j]->messages_s -
                        work_s[j] / (double)seen->job_steps / (double)both[j]->processes;
            }
            ret_loads[count++] = (struct fit_load){both[j]->ends, bytes, own_s > 0 ? own_s : 0};
        }
    }
    return count;
}

bool calibration_message(struct calibration_run *const *runs, size_t run_count,
                         struct fit_share *ret_share)
{
    struct fit_load loads[2 * CALIBRATION_RUNS_MAX] = {{0}};
    size_t count = list_loads(runs, run_count, false, 0, loads);
    *ret_share = fit_share(loads, count);
    return ret_share->part_s > 0 || ret_share->byte_s > 0;
}

/* A run without messages shows what other threads do besides: they read batches. */
bool calibration_input(const struct calibration_run *run, double *ret_input_s)
{
    const struct observed_cpu *workers = &run->observation.cores.workers;
    bool is_shown = calibration_knows_cores(run) && workers->ends <= 0;
    if (is_shown) {
        *ret_input_s = workers->others_s;
    }
    return is_shown;
}

static void take_input(const struct calibration_run *narrowest, struct calibration *made)
{
    char text[QUANTITY_BYTES];
    if (!calibration_input(narrowest, &made->costs.input_s)) {
        calibration_add_note(&made->cost_notes, "input", true,
                             "no time of cores: no run without messages shows it");
        return;
    }
    quantity_format(made->costs.input_s, QUANTITY_TIME, text);
    calibration_add_note(&made->cost_notes, "input", false,
                         "%s of a core for each batch, beside computing: %s", text,
                         narrowest->name);
}

static void take_carriage(struct calibration_run *const *runs, size_t run_count,
                          struct calibration *made)
{
    struct fit_load loads[2 * CALIBRATION_RUNS_MAX] = {{0}};
    char message[QUANTITY_BYTES], bandwidth[QUANTITY_BYTES];
    size_t count = list_loads(runs, run_count, true, made->costs.input_s, loads);
    const struct fit_share share = fit_share(loads, count);
    made->costs.carriage_message_s = share.part_s;
    made->costs.errors.carriage = share.error < 1 ? share.error : 1;
    made->costs.carriage_bandwidth = share.byte_s > 0 ? 1 / share.byte_s : 0;
    quantity_format(share.part_s, QUANTITY_TIME, message);
    quantity_format(made->costs.carriage_bandwidth, QUANTITY_BANDWIDTH, bandwidth);
    calibration_add_note(&made->cost_notes, "carriage", count == 0,
                         count == 0 ? "no time of cores: no run shows what carries messages"
                                    : "%s of a core and %s for each message at each end: %zu kinds "
                                      "of processes",
                         message, bandwidth, count);
}

/* Whether a run is of one worker that exchanges nothing. */
static bool is_alone(const struct calibration_run *run, uint32_t batch)
{
    return calibration_knows_cores(run) && run->workers == 1 && run->batch == batch &&
           run->observation.cores.workers.ends <= 0;
}

double calibration_speed_share(struct calibration_run *const *runs, size_t run_count,
                               const struct calibration_run *narrowest)
{
    double sum_s = 0, count = 0;
    for (size_t i = 0; i < run_count; i++) {
        if (is_alone(runs[i], narrowest->batch)) {
            sum_s += compute_s(runs[i]);
            count++;
        }
    }
    bool is_known = is_alone(narrowest, narrowest->batch) && sum_s > 0 && compute_s(narrowest) > 0;
    return is_known ? sum_s / count / compute_s(narrowest) : 1;
}

bool calibration_is_disturbed(struct calibration_run *const *runs, size_t run_count,
                              const struct calibration_run *narrowest, double *ret_first,
                              double *ret_last)
{
    double first_s = 0, last_s = 0;
    for (size_t i = 0; i < run_count; i++) {
        double step_s = runs[i]->observation.cores.step_s;
        if (is_alone(runs[i], narrowest->batch) && step_s > 0) {
            first_s = first_s > 0 ? first_s : step_s;
            last_s = step_s;
        }
    }
    if (first_s <= CALIBRATION_ALONE_RATIO_MAX * last_s &&
        last_s <= CALIBRATION_ALONE_RATIO_MAX * first_s) {
        return false;
    }
    *ret_first = narrowest->batch / first_s;
    *ret_last = narrowest->batch / last_s;
    return true;
}

/* What cores work for a step of one worker alone, of the batch of a run, as the machine was then:
 * by the last such run before it and the first one behind, each the more the nearer to it they were
 * made. Without them as in `narrowest`; 0: of another batch. */
static double alone_beside(struct calibration_run *const *runs, size_t run_count, size_t index,
                           const struct calibration_run *narrowest)
{
    const struct calibration_run *before = NULL, *behind = NULL;
    size_t before_at = 0, behind_at = 0;
    for (size_t i = 0; i < run_count && behind == NULL; i++) {
        if (!is_alone(runs[i], runs[index]->batch)) {
            continue;
        }
        if (i < index) {
            before = runs[before_at = i];
        } else {
            behind = runs[behind_at = i];
        }
    }
    if (before != NULL && behind != NULL) {
        double share = (double)(index - before_at) / (double)(behind_at - before_at);
        return (1 - share) * compute_s(before) + share * compute_s(behind);
    }
    const struct calibration_run *one = before != NULL ? before : behind;
    if (one != NULL) {
        return compute_s(one);
    }
    return runs[index]->batch == narrowest->batch ? compute_s(narrowest) : 0;
}

/* The share of time for which other cores were busy beside one that computes; -1: unknown. */
static double busy_beside(const struct calibration_run *run)
{
    const struct observed_cores *seen = &run->observation.cores;
    if (!calibration_knows_cores(run) || run->workers < 2 ||
        !calibration_run_has_one_machine(run) || calibration_is_crowded(run) ||
        run->hosts[0].cores < 2 || seen->step_s <= 0) {
        return -1;
    }
    double others =
        (seen->busy - seen->workers.compute_s / seen->step_s) / (run->hosts[0].cores - 1);
    return others > 1 ? 1 : others > 0 ? others : 0;
}

/* How long each core of a run's host works in a step for all that does not compute. */
static double beside_computing_s(const struct calibration_run *run)
{
    const struct observed_cpu *workers = &run->observation.cores.workers,
                              *servers = &run->observation.cores.servers;
    return (workers->processes * (workers->messages_s + workers->others_s) +
            servers->processes * (servers->messages_s + servers->others_s)) /
           run->hosts[0].cores;
}

static int compare_times(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

/* The mean of the quickest quarter of the steps of all runs of one worker alone, or of all of
 * workers that are apart beside each other: when nothing else disturbed them. 0: there are none. */
static double quickest_s(struct calibration_run *const *runs, size_t run_count, uint32_t batch,
                         bool is_apart)
{
    size_t count = 0, most = 0;
    for (size_t i = 0; i < run_count; i++) {
        most += runs[i]->observation.step_count;
    }
    double *times = calloc(most + 1, sizeof(*times)), sum_s = 0;
    for (size_t i = 0; times != NULL && i < run_count; i++) {
        const struct calibration_run *run = runs[i];
        bool counts = is_apart
                          ? run->is_apart && run->batch == batch && busy_beside(run) >= BUSY_MIN
                          : is_alone(run, batch);
        if (counts && run->observation.step_s != NULL) {
            memcpy(times + count, run->observation.step_s,
                   run->observation.step_count * sizeof(*times));
            count += run->observation.step_count;
        }
    }
    if (count > 0) {
        qsort(times, count, sizeof(*times), compare_times);
    }
    size_t quarter = (count + 3) / 4;
    for (size_t i = 0; i < quarter; i++) {
        sum_s += times[i];
    }
    free(times);
    return quarter > 0 ? sum_s / (double)quarter : 0;
}

/* What find_crowding finds, from runs whose workers are apart: nobody waits in them, and computing
 * is slower behind each wait. 0: there are none. */
static double find_crowding_apart(struct calibration_run *const *runs, size_t run_count,
                                  uint32_t batch)
{
    double alone_s = quickest_s(runs, run_count, batch, false);
    double apart_s = quickest_s(runs, run_count, batch, true);
    double crowding = alone_s > 0 ? apart_s / alone_s : 0;
    return crowding > 0 && crowding < 1 ? 1 : crowding;
}

/* How much longer cores work for a step beside others, in proportion to those that are busy, and
 * besides what messages put out of the caches. Not of runs that wait for links most of the time:
 * what the kernel does for these in interrupts counts as computing, and would be taken for much of
 * it where all cores are busy. 0: unknown. */
static double find_crowding(struct calibration_run *const *runs, size_t run_count,
                            const struct calibration_run *narrowest, const struct costs *costs)
{
    double squares = 0, products = 0;
    bool is_known = is_alone(narrowest, narrowest->batch) && compute_s(narrowest) > 0;
    double apart = find_crowding_apart(runs, run_count, narrowest->batch);
    if (apart > 0) {
        return apart;
    }
    for (size_t i = 0; i < run_count && is_known; i++) {
        const struct calibration_run *run = runs[i];
        double others = busy_beside(run);
        if (others >= BUSY_MIN && !run->is_apart) {
            double alone_s = alone_beside(runs, run_count, i, narrowest);
            double refilled_s =
                costs->slice_s > 0 ? costs->refill_s * beside_computing_s(run) / costs->slice_s : 0;
            squares += others * others;
            products += others * (compute_s(run) / (alone_s + refilled_s) - 1);
        }
    }
    double crowding = squares > 0 ? 1 + products / squares : 0;
    return squares > 0 && crowding < 1 ? 1 : crowding;
}

void calibration_take_crowding(struct calibration_run *const *runs, size_t run_count,
                               const struct calibration_run *narrowest,
                               struct calibration *calibration)
{
    struct costs *costs = &calibration->costs;
    costs->crowding = find_crowding(runs, run_count, narrowest, costs);
    if (costs->crowding <= 0) {
        calibration_add_note(&calibration->cost_notes, "crowding", true,
                             "none: no runs of one worker and of several on one host whose other "
                             "cores are busy meanwhile show it");
        return;
    }
    bool are_apart = find_crowding_apart(runs, run_count, narrowest->batch) > 0;
    calibration_add_note(&calibration->cost_notes, "crowding", false,
                         "%.3f times as long where all cores are busy: %s beside those of one",
                         costs->crowding,
                         are_apart ? "the quickest steps of workers that exchange nothing"
                                   : "steps of several workers");
}

static void take_slice(struct calibration *made)
{
    char text[QUANTITY_BYTES];
    made->costs.slice_s = 1e-9 * (double)slice_to_tick();
    if (made->costs.slice_s > 0) {
        quantity_format(made->costs.slice_s, QUANTITY_TIME, text);
        calibration_add_note(&made->cost_notes, "slice", false,
                             "%s: what the kernel here gives threads, to the end of a tick", text);
    }
}

/* Threads that move messages ask for short turns, which not every kernel gives them. */
static void take_order(const struct calibration_run *narrowest, struct calibration *made)
{
    bool is_known = calibration_knows_cores(narrowest);
    made->costs.messages_first = is_known && slice_of_thread() > 0;
    if (is_known) {
        calibration_add_note(&made->cost_notes, "messages-first", false,
                             made->costs.messages_first
                                 ? "yes: the kernel here gives short turns to threads that ask"
                                 : "no: the kernel here gives all threads the same turns");
        take_slice(made);
    }
}

void calibration_take_cores(struct calibration_run *const *runs, size_t run_count,
                            const struct calibration_run *narrowest,
                            struct calibration *calibration)
{
    uint32_t threads = narrowest->threads;
    if (threads == 0 && narrowest->hosts[0].workers > 0) { // as workers choose by themselves
        threads = narrowest->hosts[0].cores / narrowest->hosts[0].workers;
    }
    calibration->costs.threads = threads > 0 ? threads : 1;
    take_input(narrowest, calibration);
    take_order(narrowest, calibration);
    take_carriage(runs, run_count, calibration);
    calibration->costs.crowding = find_crowding(runs, run_count, narrowest, &calibration->costs);
}

/* A run whose threads took turns. */
struct turns {
    double alone_s, step_s; // what cores work for a step of one worker alone, and of this run
    double messages_s;      // what each core works in a step for all that does not compute
    double crowding;        // how many times as long computing takes here without any turns
    double cores, workers;
};

/* As cores.h has it: what is above 1 where two threads that compute have one core. */
static double turns_share(const struct turns *turns)
{
    double all = 2 - 2 * turns->cores / turns->workers;
    return (turns->step_s / turns->alone_s - turns->crowding) / all;
}

/* As cores.h has it: a step has as many turns as slices, one at least, and in between each of the
 * others on its core has had one. Messages interrupt all of them alike. What a turn is longer by is
 * computed, and takes as much longer beside others. */
static double turns_refill(const struct turns *turns, double slice_s)
{
    double turn_s = turns->step_s < slice_s ? turns->step_s : slice_s;
    double count = turns->step_s / turn_s, each = turns->workers / turns->cores;
    double own_s = turns->messages_s / each; // by which the worker itself is interrupted
    double others_s = (each - 1) * (turn_s + own_s / count);
    double share = others_s < slice_s ? others_s / slice_s : 1;
    double calm_s = turns->alone_s * turns->crowding;
    return (turns->step_s - calm_s) / (count * share + own_s / slice_s) / turns->crowding;
}

/* Runs whose threads took turns, of which those whose steps are shorter than a slice count only
 * where there are no others: short steps leave some of each other's in the caches. Returns how many
 * there are. */
static size_t list_turns(struct calibration_run *const *runs, size_t run_count,
                         const struct calibration_run *narrowest, const struct costs *costs,
                         struct turns ret_list[CALIBRATION_RUNS_MAX])
{
    size_t count = 0;
    for (int is_long = 1; is_long >= 0 && count == 0; is_long--) {
        for (size_t i = 0; i < run_count; i++) {
            const struct calibration_run *run = runs[i];
            double alone_s = alone_beside(runs, run_count, i, narrowest);
            bool is_shown = calibration_knows_cores(run) && calibration_is_crowded(run) &&
                            run->hosts[0].cores > 0 && alone_s > 0;
            if (is_shown && (compute_s(run) >= costs->slice_s) == (is_long == 1)) {
                bool is_beside = run->hosts[0].cores > 1 && costs->crowding > 0;
                ret_list[count++] = (struct turns){alone_s,
                                                   compute_s(run),
                                                   beside_computing_s(run),
                                                   is_beside ? costs->crowding : 1,
                                                   run->hosts[0].cores,
                                                   run->workers};
            }
        }
    }
    return count;
}

void calibration_take_turns(struct calibration_run *const *runs, size_t run_count,
                            const struct calibration_run *narrowest,
                            struct calibration *calibration)
{
    char text[QUANTITY_BYTES];
    struct turns list[CALIBRATION_RUNS_MAX];
    double sum = 0, slice_s = calibration->costs.slice_s;
    bool is_known = calibration_knows_cores(narrowest) && !calibration_is_crowded(narrowest);
    size_t count = is_known ? list_turns(runs, run_count, narrowest, &calibration->costs, list) : 0;
    for (size_t i = 0; i < count; i++) {
        sum += slice_s > 0 ? turns_refill(&list[i], slice_s) : turns_share(&list[i]);
    }
    double mean = sum > 0 ? sum / (double)count : 0;
    if (count == 0) {
        calibration_add_note(&calibration->cost_notes, slice_s > 0 ? "refill" : "turns", true,
                             "none: no run has fewer cores than threads that compute");
    } else if (slice_s > 0) {
        calibration->costs.refill_s = mean;
        quantity_format(mean, QUANTITY_TIME, text);
        calibration_add_note(&calibration->cost_notes, "refill", false,
                             "%s when a thread gets a core back behind others, of a slice or more: "
                             "steps of workers with too few beside those of one",
                             text);
    } else {
        calibration->costs.turns = 1 + mean;
        calibration_add_note(&calibration->cost_notes, "turns", false,
                             "%.3f times as long with two threads that compute on each core: steps "
                             "of workers with too few beside those of one",
                             calibration->costs.turns);
    }
}
