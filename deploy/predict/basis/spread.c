/* Reads spreads, and draws from them. */
#include "deploy/predict/basis/spread.h"

#include "common/base/random.h"
#include "deploy/predict/basis/fields.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static enum status read_distribution(const struct fields *fields, const char *distribution,
                                     struct spread *spread)
{
    enum status status = STATUS_OK;
    if (strcmp(distribution, "exponential") == 0) {
        static const char *const names[] = {"distribution", "mean", NULL};
        spread->kind = SPREAD_EXPONENTIAL;
        status = fields_check_names(fields, names);
        return status == STATUS_OK
                   ? fields_quantity(fields, "mean", QUANTITY_TIME, true, &spread->mean_s)
                   : status;
    }
    bool is_uniform = strcmp(distribution, "uniform") == 0;
    if (!is_uniform && strcmp(distribution, "pareto") != 0) {
        return fields_refuse(fields, "distribution", "has to be exponential, uniform or pareto");
    }
    const char *const names[] = {"distribution", "least", is_uniform ? "most" : "shape", NULL};
    spread->kind = is_uniform ? SPREAD_UNIFORM : SPREAD_PARETO;
    status = fields_check_names(fields, names);
    if (status == STATUS_OK) {
        status = fields_quantity(fields, "least", QUANTITY_TIME, true, &spread->least_s);
    }
    if (status == STATUS_OK && !is_uniform) {
        return fields_number(fields, "shape", 1.01, 1000, true, &spread->shape);
    }
    if (status == STATUS_OK) {
        status = fields_quantity(fields, "most", QUANTITY_TIME, true, &spread->most_s);
    }
    return status == STATUS_OK && spread->most_s < spread->least_s
               ? fields_refuse(fields, "most", "is less than least")
               : status;
}

enum status spread_read(const char *file, const char *place, json_t *object, struct spread *spread)
{
    static const char *const names[] = {"distribution", "mean", "least", "most", "shape", NULL};
    if (object == NULL) {
        return STATUS_OK;
    }
    const struct fields fields = {file, place, object};
    const char *distribution = NULL;
    enum status status = fields_check_names(&fields, names);
    if (status == STATUS_OK) {
        status = fields_text(&fields, "distribution", true, &distribution);
    }
    return status == STATUS_OK ? read_distribution(&fields, distribution, spread) : status;
}

double spread_mean_s(const struct spread *spread)
{
    switch (spread->kind) {
    case SPREAD_NONE:
        return 0;
    case SPREAD_EXPONENTIAL:
        return spread->mean_s;
    case SPREAD_UNIFORM:
        return (spread->least_s + spread->most_s) / 2;
    case SPREAD_PARETO:
        return spread->least_s * spread->shape / (spread->shape - 1);
    }
    return 0;
}

/* Of pareto, the variance is least^2 shape / ((shape - 1)^2 (shape - 2)). */
double spread_deviation_s(const struct spread *spread)
{
    double shape = spread->shape;
    switch (spread->kind) {
    case SPREAD_NONE:
        return 0;
    case SPREAD_EXPONENTIAL:
        return spread->mean_s;
    case SPREAD_UNIFORM:
        return (spread->most_s - spread->least_s) / sqrt(12);
    case SPREAD_PARETO:
        return shape > 2 ? spread->least_s / (shape - 1) * sqrt(shape / (shape - 2))
                         : (double)INFINITY;
    }
    return 0;
}

void spread_scale(struct spread *spread, double factor)
{
    spread->mean_s *= factor;
    spread->least_s *= factor;
    spread->most_s *= factor;
}

double spread_draw(const struct spread *spread, uint64_t seed, uint32_t rank, uint64_t step)
{
    // In (0, 1], so that logarithm and power are finite.
    double unit = (double)((random_key(seed, RANDOM_PREDICT, rank, step) >> 11) + 1) * 0x1p-53;
    switch (spread->kind) {
    case SPREAD_NONE:
        return 0;
    case SPREAD_EXPONENTIAL:
        return -log(unit) * spread->mean_s;
    case SPREAD_UNIFORM:
        return spread->least_s + unit * (spread->most_s - spread->least_s);
    case SPREAD_PARETO:
        return spread->least_s * pow(unit, -1 / spread->shape);
    }
    return 0;
}
