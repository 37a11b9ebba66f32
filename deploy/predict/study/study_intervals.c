/* How far a prediction may be off, from what is known of the costs' own errors: predicts with each
 * cost larger by its standard error, in turn, and adds up the squares of what that changes. */
#include "deploy/predict/study/study.h"

#include <math.h>

#define NINE_OF_TEN 1.645 // standard deviations of a normal distribution

static void grow_compute(struct basis *basis, double factor)
{
    for (uint32_t i = 0; i < basis->costs.layer_count; i++) {
        basis->costs.layers[i].forward_s *= factor;
        basis->costs.layers[i].backward_s *= factor;
    }
}

static void grow_optimizer(struct basis *basis, double factor)
{
    basis->costs.optimizer_s *= factor;
    basis->costs.server_optimizer_s *= factor;
}

static void grow_messages(struct basis *basis, double factor)
{
    basis->costs.message_s *= factor;
    basis->costs.message_bandwidth /= factor;
}

static void grow_sums(struct basis *basis, double factor)
{
    basis->costs.sum_bandwidth /= factor;
}

static void grow_carriage(struct basis *basis, double factor)
{
    basis->costs.carriage_message_s *= factor;
    basis->costs.carriage_bandwidth /= factor;
}

static void grow_bandwidth(struct basis *basis, double factor)
{
    basis->network.flow_bandwidth /= factor;
    for (uint32_t i = 0; i < basis->network.link_count; i++) {
        basis->network.links[i].bandwidth /= factor;
    }
}

static void grow_latency(struct basis *basis, double factor)
{
    for (uint32_t i = 0; i < basis->network.host_count; i++) {
        basis->network.hosts[i].latency_s *= factor;
        basis->network.hosts[i].memory_latency_s *= factor;
    }
    for (uint32_t i = 0; i < basis->network.switch_count; i++) {
        basis->network.switches[i].latency_s *= factor;
    }
}

struct source {
    double error; // a share of the cost
    void (*grow)(struct basis *basis, double factor);
};

#define SOURCES 7

static void list_sources(const struct basis *basis, struct source ret_sources[SOURCES])
{
    const struct cost_errors *costs = &basis->costs.errors;
    const struct source sources[SOURCES] = {
        {costs->compute, grow_compute},
        {costs->optimizer, grow_optimizer},
        {costs->message, grow_messages},
        {costs->sum, grow_sums},
        {costs->carriage, grow_carriage},
        {basis->network.bandwidth_error, grow_bandwidth},
        {basis->network.latency_error, grow_latency},
    };
    for (size_t i = 0; i < SOURCES; i++) {
        ret_sources[i] = sources[i];
    }
}

bool study_knows_errors(const struct costs *costs, const struct network *network)
{
    const struct cost_errors *errors = &costs->errors;
    return errors->compute > 0 || errors->optimizer > 0 || errors->message > 0 || errors->sum > 0 ||
           errors->carriage > 0 || network->bandwidth_error > 0 || network->latency_error > 0;
}

/* The share by which a step changes if a cost is larger by its error. */
static enum status find_change(const struct basis *basis, const struct prediction_extent *extent,
                               const struct source *source, double step_s, double *ret_change)
{
    struct prediction made;
    struct basis *changed = basis_create(&basis->job, &basis->costs, &basis->network);
    if (changed == NULL) {
        return STATUS_NO_MEMORY;
    }
    source->grow(changed, 1 + source->error);
    enum status status =
        prediction_make(&changed->job, &changed->costs, &changed->network, extent, &made);
    basis_destroy(changed);
    *ret_change = status == STATUS_OK && step_s > 0 ? log(made.step_s / step_s) : 0;
    return status;
}

enum status study_find_interval(const struct study *study, const struct basis *basis,
                                struct study_point *point)
{
    struct source sources[SOURCES];
    struct prediction_extent extent;
    struct prediction base;
    double squares = 0, change = 0;
    point->has_interval = study_knows_errors(&basis->costs, &basis->network);
    point->images_per_s_low = point->images_per_s_high = point->made.images_per_s;
    if (!point->has_interval) {
        return STATUS_OK;
    }
    list_sources(basis, sources);
    enum status status = study_begin_changes(study, basis, &point->made, &extent, &base);
    for (size_t i = 0; i < SOURCES && status == STATUS_OK; i++) {
        if (sources[i].error > 0) {
            status = find_change(basis, &extent, &sources[i], base.step_s, &change);
            squares += change * change;
        }
    }
    double factor = exp(NINE_OF_TEN * sqrt(squares));
    point->images_per_s_low = point->made.images_per_s / factor;
    point->images_per_s_high = point->made.images_per_s * factor;
    return status;
}
