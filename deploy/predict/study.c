/* Predicts a point, and again without each of its costs, to find the one that limits it. */
#include "deploy/predict/study.h"

#include "common/base/log.h"

#include <stdlib.h>
#include <string.h>

/* What a point is predicted from. */
struct basis {
    struct job job;
    struct costs costs;
    struct network network; // owns its lists
};

static void remove_compute(struct basis *basis)
{
    for (uint32_t i = 0; i < basis->costs.layer_count; i++) {
        basis->costs.layers[i].forward_s = basis->costs.layers[i].backward_s = 0;
    }
}

static void remove_delays(struct basis *basis)
{
    basis->costs.spread.kind = SPREAD_NONE;
    snprintf(basis->job.straggler, sizeof(basis->job.straggler), "none");
}

static void remove_optimizer(struct basis *basis)
{
    basis->costs.optimizer_s = 0;
}

static void remove_messages(struct basis *basis)
{
    basis->costs.message_s = 0;
}

static void remove_sums(struct basis *basis)
{
    basis->costs.sum_bandwidth = 0;
}

static void remove_bandwidth(struct basis *basis)
{
    basis->network.flow_bandwidth = 0;
    for (uint32_t i = 0; i < basis->network.link_count; i++) {
        basis->network.links[i].bandwidth = 0;
        basis->network.links[i].may_saturate = false;
    }
}

static void remove_latency(struct basis *basis)
{
    for (uint32_t i = 0; i < basis->network.host_count; i++) {
        basis->network.hosts[i].latency_s = basis->network.hosts[i].memory_latency_s = 0;
    }
    for (uint32_t i = 0; i < basis->network.switch_count; i++) {
        basis->network.switches[i].latency_s = 0;
    }
}

static const struct {
    const char *name;
    void (*remove)(struct basis *basis);
} limiters[] = {
    {"compute", remove_compute},   {"delays", remove_delays}, {"optimizer", remove_optimizer},
    {"messages", remove_messages}, {"sums", remove_sums},     {"bandwidth", remove_bandwidth},
    {"latency", remove_latency},
};
#define LIMITER_COUNT (sizeof(limiters) / sizeof(limiters[0]))

static void *copy(const void *items, size_t size)
{
    void *made = malloc(size);
    if (made != NULL) {
        memcpy(made, items, size);
    }
    return made;
}

static struct basis *basis_create(const struct study *study, const struct job *job)
{
    struct basis *basis = calloc(1, sizeof(*basis));
    if (basis == NULL) {
        return NULL;
    }
    struct network *network = &basis->network;
    basis->job = *job;
    basis->costs = *study->costs;
    *network = *study->network;
    network->hosts = copy(network->hosts, network->host_count * sizeof(*network->hosts));
    network->switches = copy(network->switches, network->switch_count * sizeof(*network->switches));
    network->links = copy(network->links, network->link_count * sizeof(*network->links));
    if (network->hosts == NULL || network->switches == NULL || network->links == NULL) {
        network_finish(network);
        free(basis);
        return NULL;
    }
    return basis;
}

static void basis_destroy(struct basis *basis)
{
    network_finish(&basis->network);
    free(basis);
}

static struct prediction_extent extent_of(const struct study *study)
{
    return (struct prediction_extent){
        .warm = STUDY_WARM_STEPS,
        .counted = study->counted,
        .work_max = PREDICTION_WORK_MAX,
        .error_max = study->is_approximate ? PREDICTION_ERROR_MAX_ASKED : PREDICTION_ERROR_MAX};
}

static enum status make(const struct study *study, const struct job *job, const struct costs *costs,
                        const struct network *network, struct prediction *ret_prediction)
{
    const struct prediction_extent extent = extent_of(study);
    return prediction_make(job, costs, network, &extent, ret_prediction);
}

static enum status find_limiter(const struct study *study, const struct job *job,
                                struct study_point *point)
{
    double shortest_s = point->made.step_s * (1 - 1e-9); // less is rounding
    point->limiter = "nothing";
    for (size_t i = 0; i < LIMITER_COUNT; i++) {
        struct prediction without;
        struct basis *basis = basis_create(study, job);
        if (basis == NULL) {
            return STATUS_NO_MEMORY;
        }
        limiters[i].remove(basis);
        enum status status = make(study, &basis->job, &basis->costs, &basis->network, &without);
        basis_destroy(basis);
        if (status != STATUS_OK) {
            return status;
        }
        if (without.step_s < shortest_s) {
            shortest_s = without.step_s;
            point->limiter = limiters[i].name;
            point->limiter_gain = 1 - without.step_s / point->made.step_s;
        }
    }
    return STATUS_OK;
}

/* Images per second of one worker that exchanges nothing and that nobody slows down on purpose. */
static enum status find_alone(const struct study *study, double *ret_images_per_s)
{
    struct job job = study->job;
    struct prediction alone;
    job.mode.kind = MODE_RING;
    job.workers = 1;
    snprintf(job.straggler, sizeof(job.straggler), "none");
    enum status status = make(study, &job, study->costs, study->network, &alone);
    if (status == STATUS_OK && alone.step_s <= 0) {
        log_error("%s: a step of one worker takes no time; give its layers forward and backward "
                  "times",
                  study->costs_file);
        return STATUS_INVALID;
    }
    *ret_images_per_s = alone.images_per_s;
    return status;
}

/* A whole job with many messages takes long, and its limiter takes as many predictions more. */
static enum status tell_if_long(const struct study *study, const struct job *job)
{
    const struct prediction_extent extent = extent_of(study);
    struct prediction_estimate estimate;
    char advice[80] = "";
    enum status status = prediction_estimate(job, study->costs, study->network, &extent, &estimate);
    if (status != STATUS_OK || estimate.is_reduced) {
        return status;
    }
    double steps = (double)(extent.warm + extent.counted);
    const size_t runs = 1 + LIMITER_COUNT;
    double seconds = 1e-9 * estimate.work * steps * (double)runs;
    if (estimate.reduction_error <= PREDICTION_ERROR_MAX_ASKED) {
        snprintf(advice, sizeof(advice), "; --approximate is quick, and may be off by %.0f %%",
                 100 * estimate.reduction_error);
    }
    if (seconds > STUDY_LONG_S) {
        log_warn("%s among %u workers: simulating all of them takes more than %.0f s%s",
                 mode_text(job->mode).text, job->workers, seconds, advice);
    }
    return STATUS_OK;
}

enum status study_make_point(const struct study *study, struct study_point *point)
{
    struct job job = study->job;
    double alone = 0;
    job.mode = point->mode;
    job.workers = point->workers;
    job.servers = point->servers;
    enum status status = find_alone(study, &alone);
    if (status == STATUS_OK) {
        status = tell_if_long(study, &job);
    }
    if (status == STATUS_OK) {
        status = make(study, &job, study->costs, study->network, &point->made);
    }
    if (status == STATUS_OK) {
        point->speed_up = point->made.images_per_s / alone;
        point->efficiency = point->speed_up / point->workers;
        status = find_limiter(study, &job, point);
    }
    return status;
}
