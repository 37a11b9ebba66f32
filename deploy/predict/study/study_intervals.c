/* How far a prediction may be off, from what is known of the costs' own errors: predicts with each
 * cost larger by its standard error, in turn, and adds up the squares of what that changes.
 *
 * Computing is one cost, whose error is said once: by `errors`, or else by the standard deviation
 * of a step over the root of the steps. A step's own spread has those of its layers in it, whatever
 * they have in common, so these count only without it, as draws that have nothing to do with each
 * other. Which layers the error lies in, their spreads say in each case. */
#include "deploy/predict/study/study.h"

#include <math.h>

#define NINE_OF_TEN 1.645 // standard deviations of a normal distribution

/* All layers at once, in proportion to their spreads, so many times the deviation of each. */
static void grow_by_spreads(struct costs *costs, double deviations)
{
    for (uint32_t i = 0; i < costs->layer_count; i++) {
        struct cost_layer *layer = &costs->layers[i];
        layer->forward_s += deviations * spread_deviation_s(&layer->forward_spread);
        layer->backward_s += deviations * spread_deviation_s(&layer->backward_spread);
    }
}

/* All layers at once, in proportion to their times; or, where they have spreads, by as much in sum,
 * in proportion to these. */
static void grow_compute(struct basis *basis, double factor)
{
    struct costs *costs = &basis->costs;
    double sum_s = costs_layers_deviation_sum_s(costs);
    if (sum_s > 0) {
        grow_by_spreads(costs, (factor - 1) * costs_compute_s(costs) / sum_s);
        return;
    }
    for (uint32_t i = 0; i < costs->layer_count; i++) {
        costs->layers[i].forward_s *= factor;
        costs->layers[i].backward_s *= factor;
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

/* Of the mean of so many steps, as a share. 0: not known. */
static double find_compute_error(const struct costs *costs, uint64_t steps)
{
    double layers_s = costs_layers_deviation_s(costs), compute_s = costs_compute_s(costs);
    double step_s = spread_deviation_s(&costs->spread);
    if (costs->errors.compute > 0 || layers_s <= 0 || compute_s <= 0 || steps == 0) {
        return costs->errors.compute;
    }
    bool has_step = costs->spread.kind != SPREAD_NONE && isfinite(step_s);
    return (has_step ? step_s : layers_s) / compute_s / sqrt((double)steps);
}

static void list_sources(const struct study *study, const struct basis *basis,
                         struct source ret_sources[SOURCES])
{
    const struct cost_errors *costs = &basis->costs.errors;
    const struct source sources[SOURCES] = {
        {find_compute_error(&basis->costs, study->counted), grow_compute},
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

bool study_uses_layer_spreads(const struct costs *costs)
{
    return costs->errors.compute <= 0 && find_compute_error(costs, 1) > 0;
}

bool study_knows_errors(const struct costs *costs, const struct network *network)
{
    const struct cost_errors *errors = &costs->errors;
    return study_uses_layer_spreads(costs) || errors->compute > 0 || errors->optimizer > 0 ||
           errors->message > 0 || errors->sum > 0 || errors->carriage > 0 ||
           network->bandwidth_error > 0 || network->latency_error > 0;
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
    list_sources(study, basis, sources);
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
