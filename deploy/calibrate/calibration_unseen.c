/* Compares runs with their predictions. */
#include "deploy/calibrate/calibration_unseen.h"

#include "deploy/calibrate/calibration_cores.h"
#include "deploy/calibrate/calibration_files.h"
#include "deploy/predict/basis/network.h"
#include "deploy/predict/prediction.h"

#include <jansson.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FACTOR_MAX 4.0  // beyond that something else is wrong
#define SHOWN_MIN  0.03 // a change of a step with twice the carriage, or half the links, to show it
#define HALVINGS   10
#define WARM       3
#define COUNTED    40

/* A run, as predictions need it. */
struct compared {
    struct job job;
    double step_s; // as it was
};

struct comparison {
    struct compared list[CALIBRATION_RUNS_MAX]; // (count)
    size_t count;
    struct network network;
    struct costs costs; // changed for each factor
};

static const struct prediction_extent extent = {WARM, COUNTED, PREDICTION_WORK_MAX,
                                                PREDICTION_ERROR_MAX};

/* False: it shows nothing of that, as in shared memory, where the kernel has no part in messages;
 * or its job is not known. */
static bool take_run(const struct calibration_run *run, const struct calibration *calibration,
                     struct compared *ret_compared)
{
    static const char *const names[] = {"mode",       "workers",   "servers",  "bucket-mb",
                                        "all-reduce", "transport", "straggler"};
    const struct observation *seen = &run->observation;
    char error[OPTION_ERROR_BYTES];
    if (calibration_run_job(run, names, sizeof(names) / sizeof(names[0]), &ret_compared->job,
                            error) != STATUS_OK) {
        return false;
    }
    // Its messages went as they do in the network that is calibrated.
    bool has_hosts = run->host_count > 1, has_ways = calibration->widest->host_count > 1;
    ret_compared->step_s = seen->step_count > 0 ? seen->passed_s / (double)seen->step_count : 0;
    return ret_compared->step_s > 0 && run->workers > 1 && calibration_run_has_one_machine(run) &&
           run->hosts[0].cores > 0 && calibration_knows_cores(run) &&
           !calibration_is_crowded(run) && seen->cores.workers.ends > 0 && has_hosts == has_ways &&
           strcmp(run->transport, "shm") != 0;
}

/* A step; 0: it cannot be predicted. */
static double predict(struct comparison *comparison, const struct compared *run,
                      const struct costs *costs, double factor)
{
    struct prediction made;
    comparison->costs = *costs;
    comparison->costs.carriage_message_s *= factor;
    comparison->costs.carriage_bandwidth /= factor;
    return prediction_make(&run->job, &comparison->costs, &comparison->network, &extent, &made) ==
                   STATUS_OK
               ? made.step_s
               : 0;
}

/* The step, if the links of hosts carried half as much; 0: it cannot be predicted. */
static double predict_with_slow_links(struct comparison *comparison, const struct compared *run,
                                      const struct costs *costs)
{
    struct network *network = &comparison->network;
    for (uint32_t i = 0; i < network->host_count; i++) {
        network->links[network->hosts[i].up].bandwidth /= 2;
        network->links[network->hosts[i].down].bandwidth /= 2;
    }
    double step_s = predict(comparison, run, costs, 1);
    for (uint32_t i = 0; i < network->host_count; i++) {
        network->links[network->hosts[i].up].bandwidth *= 2;
        network->links[network->hosts[i].down].bandwidth *= 2;
    }
    return step_s;
}

/* Keeps the runs in which cores were so scarce that their steps show what carriage takes of them.
 * Where cores were idle, a small error of anything else would be taken for much of it. Where steps
 * depend on links as well, what these take longer than the model says would be: with 250 Mbit/s
 * the same kernel seemed to take 2.2 times what it took with 1 Gbit/s. */
static void keep_those_that_show_it(struct comparison *comparison, const struct costs *costs)
{
    size_t kept = 0;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct compared run = comparison->list[i];
        double once_s = predict(comparison, &run, costs, 1);
        if (once_s > 0 && predict(comparison, &run, costs, 2) >= (1 + SHOWN_MIN) * once_s &&
            predict_with_slow_links(comparison, &run, costs) < (1 + SHOWN_MIN) * once_s) {
            comparison->list[kept++] = run;
        }
    }
    comparison->count = kept;
}

/* The mean logarithm of what steps are predicted to take over what they took; 0 if one cannot be
 * predicted. */
static double compare(struct comparison *comparison, const struct costs *costs, double factor)
{
    double sum = 0;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct compared *run = &comparison->list[i];
        double step_s = predict(comparison, run, costs, factor);
        if (step_s <= 0) {
            return 0;
        }
        sum += log(step_s / run->step_s) / (double)comparison->count;
    }
    return sum;
}

/* 0: it would be larger than any that makes sense. */
static double find_factor(struct comparison *comparison, const struct costs *costs)
{
    double least = 1, most = FACTOR_MAX;
    if (compare(comparison, costs, least) >= 0) {
        return least;
    }
    if (compare(comparison, costs, most) < 0) {
        return 0;
    }
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (least + most) / 2;
        bool is_short = compare(comparison, costs, middle) < 0;
        least = is_short ? middle : least;
        most = is_short ? most : middle;
    }
    return (least + most) / 2;
}

static void set_factor(struct comparison *comparison, struct calibration *calibration)
{
    struct costs *costs = &calibration->costs;
    double factor = find_factor(comparison, costs);
    if (factor <= 0) {
        calibration_add_note(
            &calibration->cost_notes, "carriage-unseen", true,
            "nothing: runs took longer than %g times the carriage explains, as where "
            "others use the cores",
            FACTOR_MAX);
        return;
    }
    costs->carriage_message_s *= factor;
    costs->carriage_bandwidth /= factor;
    calibration_add_note(&calibration->cost_notes, "carriage-unseen", false,
                         "carriage is %.3f times what timelines show, so that %zu run%s take%s as "
                         "long in predictions: what the kernel does outside of threads",
                         factor, comparison->count, comparison->count == 1 ? "" : "s",
                         comparison->count == 1 ? "s" : "");
}

/* How many times what threads take for messages is all that messages take of cores. Where workers
 * take turns, cores are busy all the time, so the kernel had what no thread had. 0: the run does
 * not show it. */
static double find_crowded(const struct calibration_run *run, const struct costs *costs)
{
    const struct observed_cores *seen = &run->observation.cores;
    double workers = seen->workers.processes, servers = seen->servers.processes;
    double shown_s =
        workers * (seen->workers.others_s - costs->input_s) + servers * seen->servers.others_s;
    double unseen_s = (run->hosts[0].cores - seen->busy) * seen->step_s;
    return calibration_knows_cores(run) && calibration_run_has_one_machine(run) &&
                   calibration_is_crowded(run) && seen->workers.ends > 0 && shown_s > 0
               ? 1 + (unseen_s > 0 ? unseen_s : 0) / shown_s
               : 0;
}

/* True if a run shows it. */
static bool take_crowded(struct calibration_run *const *runs, size_t run_count,
                         struct calibration *calibration)
{
    double factor = 0;
    for (size_t i = 0; i < run_count && calibration->costs.slice_s > 0 && factor <= 0; i++) {
        factor = find_crowded(runs[i], &calibration->costs);
    }
    if (factor <= 0 || factor > FACTOR_MAX) {
        return false;
    }
    calibration->costs.carriage_message_s *= factor;
    calibration->costs.carriage_bandwidth /= factor;
    calibration_add_note(&calibration->cost_notes, "carriage-unseen", false,
                         "carriage is %.3f times what timelines show: workers that shared a core "
                         "left so much of it to the kernel",
                         factor);
    return true;
}

void calibration_take_unseen(struct calibration_run *const *runs, size_t run_count,
                             struct calibration *calibration)
{
    const struct costs *costs = &calibration->costs;
    struct comparison *comparison = calloc(1, sizeof(*comparison));
    bool is_known = costs->carriage_message_s > 0 || costs->carriage_bandwidth > 0;
    if (is_known && take_crowded(runs, run_count, calibration)) {
        free(comparison);
        return;
    }
    for (size_t i = 0; i < run_count && comparison != NULL; i++) {
        comparison->count += take_run(runs[i], calibration, &comparison->list[comparison->count]);
    }
    if (comparison != NULL && comparison->count > 0 && is_known && calibration->has_network) {
        json_t *object = calibration_network_json(calibration);
        if (object != NULL &&
            network_take(object, "the calibrated network", &comparison->network) == STATUS_OK) {
            keep_those_that_show_it(comparison, costs);
            if (comparison->count > 0) {
                set_factor(comparison, calibration);
            }
            network_finish(&comparison->network);
        }
        json_decref(object);
    }
    free(comparison);
}
