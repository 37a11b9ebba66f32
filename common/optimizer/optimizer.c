/* Keeps the states of an optimizer, and works out the coefficients of a step. */
#include "common/optimizer/optimizer.h"

#include "common/base/memory.h"
#include "common/base/power.h"
#include "common/optimizer/groups.h"
#include "common/optimizer/optimizer_rules.h"
#include "common/options/names.h"
#include "common/vector/variants.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct optimizer {
    const struct optimizer_rule *rule;
    struct optimizer_group single;  // of all values, defaults filled in, unless there are groups
    struct optimizer_group *groups; // (group_count) `single`, or owned
    uint32_t group_count;
    struct optimizer_run *runs; // (run_count) of the states' vector, owned; NULL: one group
    uint32_t run_count;
    enum variant variant;
    uint64_t value_count;
    float *states[OPTIMIZER_STATES_MAX]; // owned; (value_count) each, NULL from state_count on
};

struct optimizer_row {
    double default_rate;
    const struct optimizer_rule *rule;
};

static const struct optimizer_row optimizers[OPTIMIZER_KIND_COUNT] = {
#define X(identifier, kind, name, rate, summary) \
    [OPTIMIZER_##kind] = {rate, &optimizer_rule_##identifier},
    OPTIMIZER_MAP(X)
#undef X
};

/* As the loops need it: a number above 0 once it is a float, or there is division by 0. */
static bool is_positive_float(double value)
{
    return (float)value > 0 && isfinite((float)value);
}

static bool is_fraction(double value)
{
    return value >= 0 && value < 1;
}

static bool rule_allows(const struct optimizer_rule *rule,
                        const struct optimizer_settings *settings)
{
    if ((rule->uses & OPTIMIZER_USES_MOMENTUM) && !is_fraction(settings->momentum)) {
        return false;
    }
    if ((rule->uses & OPTIMIZER_USES_BETAS) &&
        !(is_fraction(settings->beta1) && is_fraction(settings->beta2))) {
        return false;
    }
    if ((rule->uses & OPTIMIZER_USES_DECAY) && !is_fraction(settings->decay)) {
        return false;
    }
    if ((rule->uses & OPTIMIZER_USES_EPSILON) && !is_positive_float(settings->epsilon)) {
        return false;
    }
    return settings->weight_decay >= 0 && isfinite((float)settings->weight_decay);
}

bool optimizer_settings_are_valid(enum optimizer_kind kind,
                                  const struct optimizer_settings *settings)
{
    return (unsigned)kind < OPTIMIZER_KIND_COUNT && rule_allows(optimizers[kind].rule, settings);
}

unsigned optimizer_uses_of(enum optimizer_kind kind)
{
    return (unsigned)kind < OPTIMIZER_KIND_COUNT ? optimizers[kind].rule->uses : 0;
}

uint32_t optimizer_states_of(enum optimizer_kind kind)
{
    return (unsigned)kind < OPTIMIZER_KIND_COUNT ? optimizers[kind].rule->state_count : 0;
}

static void fill_defaults(const struct optimizer_rule *rule, struct optimizer_settings *settings)
{
    settings->epsilon = settings->epsilon == 0 ? rule->epsilon : settings->epsilon;
    settings->decay = settings->decay == 0 ? rule->decay : settings->decay;
}

void optimizer_fill_defaults(enum optimizer_kind kind, struct optimizer_settings *settings)
{
    fill_defaults(optimizers[kind].rule, settings);
}

enum status optimizer_create_variant(enum optimizer_kind kind,
                                     const struct optimizer_settings *settings,
                                     uint64_t value_count, enum variant variant,
                                     struct optimizer **ret_optimizer)
{
    if ((unsigned)kind >= OPTIMIZER_KIND_COUNT) {
        return STATUS_INVALID;
    }
    const struct optimizer_rule *rule = optimizers[kind].rule;
    struct optimizer_settings filled = *settings;
    fill_defaults(rule, &filled);
    if (!rule_allows(rule, &filled)) {
        return STATUS_INVALID;
    }
    if (value_count > SIZE_MAX / sizeof(float)) {
        return STATUS_NO_MEMORY;
    }
    struct optimizer *optimizer = calloc(1, sizeof(*optimizer));
    if (optimizer == NULL) {
        return STATUS_NO_MEMORY;
    }
    optimizer->rule = rule;
    optimizer->single = (struct optimizer_group){1, filled};
    optimizer->groups = &optimizer->single;
    optimizer->group_count = 1;
    optimizer->variant = variant;
    optimizer->value_count = value_count;
    for (uint32_t i = 0; i < rule->state_count; i++) {
        optimizer->states[i] = memory_create_large(value_count * sizeof(float));
        if (optimizer->states[i] == NULL) {
            optimizer_destroy(optimizer);
            return STATUS_NO_MEMORY;
        }
    }
    *ret_optimizer = optimizer;
    return STATUS_OK;
}

enum status optimizer_create(enum optimizer_kind kind, const struct optimizer_settings *settings,
                             uint64_t value_count, struct optimizer **ret_optimizer)
{
    return optimizer_create_variant(kind, settings, value_count, variant_best(), ret_optimizer);
}

void optimizer_destroy(struct optimizer *optimizer)
{
    if (optimizer == NULL) {
        return;
    }
    for (uint32_t i = 0; i < OPTIMIZER_STATES_MAX; i++) {
        memory_destroy_large(optimizer->states[i], optimizer->value_count * sizeof(float));
    }
    if (optimizer->groups != &optimizer->single) {
        free(optimizer->groups);
    }
    free(optimizer->runs);
    free(optimizer);
}

enum status optimizer_set_groups(struct optimizer *optimizer, const struct optimizer_groups *groups,
                                 const struct span *spans, uint32_t span_count)
{
    assert(optimizer->runs == NULL && groups->group_count > 0);
    struct optimizer_run *runs;
    uint32_t run_count;
    struct optimizer_group *rows = calloc(groups->group_count, sizeof(*rows));
    if (rows == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = optimizer_groups_cut(groups, spans, span_count, &runs, &run_count);
    if (status != STATUS_OK) {
        free(rows);
        return status;
    }
    memcpy(rows, groups->groups, groups->group_count * sizeof(*rows));
    optimizer->groups = rows;
    optimizer->group_count = groups->group_count;
    optimizer->runs = runs;
    optimizer->run_count = run_count;
    return STATUS_OK;
}

void optimizer_change_groups(struct optimizer *optimizer, const struct optimizer_group *groups)
{
    memcpy(optimizer->groups, groups, optimizer->group_count * sizeof(*groups));
}

uint32_t optimizer_group_count(const struct optimizer *optimizer)
{
    return optimizer->group_count;
}

const struct optimizer_group *optimizer_group_rows(const struct optimizer *optimizer)
{
    return optimizer->groups;
}

static struct optimizer_coefficients coefficients_of(const struct optimizer *optimizer,
                                                     const struct optimizer_group *group,
                                                     uint64_t update, double base_rate)
{
    const struct optimizer_settings *settings = &group->settings;
    double learning_rate = base_rate * group->rate;
    unsigned uses = optimizer->rule->uses;
    bool is_decoupled = uses & OPTIMIZER_DECOUPLES_DECAY;
    struct optimizer_coefficients coefficients = {
        .minus_rate = (float)-learning_rate,
        .weight_decay = is_decoupled ? 0 : (float)settings->weight_decay,
        .shrink = is_decoupled ? (float)(1 - learning_rate * settings->weight_decay) : 1,
    };
    if (uses & OPTIMIZER_USES_MOMENTUM) {
        coefficients.momentum = (float)settings->momentum;
    }
    if (uses & OPTIMIZER_USES_BETAS) {
        coefficients.minus_rate = (float)(-learning_rate / (1 - power_of(settings->beta1, update)));
        coefficients.beta1 = (float)settings->beta1;
        coefficients.beta1_rest = (float)(1 - settings->beta1);
        coefficients.beta2 = (float)settings->beta2;
        coefficients.beta2_rest = (float)(1 - settings->beta2);
        coefficients.root_scale = (float)(1 / sqrt(1 - power_of(settings->beta2, update)));
    }
    if (uses & OPTIMIZER_USES_DECAY) {
        coefficients.decay = (float)settings->decay;
        coefficients.decay_rest = (float)(1 - settings->decay);
    }
    if (uses & OPTIMIZER_USES_EPSILON) {
        coefficients.epsilon = (float)settings->epsilon;
    }
    return coefficients;
}

/* The part of a state that belongs to the parameters from `offset` on; NULL if there is none. */
static float *state_at(struct optimizer *optimizer, uint32_t index, uint64_t offset)
{
    return index < optimizer->rule->state_count ? optimizer->states[index] + offset : NULL;
}

/* The group of the values that a span begins with, and how many of these there are. */
static const struct optimizer_group *find_group(const struct optimizer *optimizer,
                                                struct span states, uint64_t *ret_count)
{
    *ret_count = states.count;
    if (optimizer->run_count == 0) {
        return &optimizer->groups[0];
    }
    uint32_t low = 0, high = optimizer->run_count - 1; // the first run that ends behind the offset
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (optimizer->runs[middle].end > states.offset) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    uint64_t rest = optimizer->runs[low].end - states.offset;
    *ret_count = rest < states.count ? rest : states.count;
    return &optimizer->groups[optimizer->runs[low].group];
}

void optimizer_apply(struct optimizer *optimizer, struct span states, float *params,
                     const float *grads, uint64_t update, double learning_rate)
{
    assert(states.offset <= optimizer->value_count &&
           states.count <= optimizer->value_count - states.offset);
    assert(update > 0);
    for (uint64_t done = 0; done < states.count;) {
        struct span rest = {states.offset + done, states.count - done};
        const struct optimizer_group *group = find_group(optimizer, rest, &rest.count);
        struct optimizer_coefficients coefficients =
            coefficients_of(optimizer, group, update, learning_rate);
        optimizer->rule->loops[optimizer->variant](&coefficients, params + done, grads + done,
                                                   state_at(optimizer, 0, rest.offset),
                                                   state_at(optimizer, 1, rest.offset), rest.count);
        done += rest.count;
    }
}

uint64_t optimizer_plan_update(const struct optimizer *optimizer, struct span states,
                               uint64_t update, double learning_rate,
                               struct optimizer_update *ret_update)
{
    assert(update > 0);
    uint64_t count;
    const struct optimizer_group *group = find_group(optimizer, states, &count);
    *ret_update = (struct optimizer_update){
        .formula = optimizer->rule->formula,
        .coefficients = coefficients_of(optimizer, group, update, learning_rate),
    };
    return count;
}

void optimizer_set_momentum(struct optimizer *optimizer, double momentum)
{
    assert(is_fraction(momentum));
    for (uint32_t i = 0; i < optimizer->group_count; i++) {
        optimizer->groups[i].settings.momentum = momentum;
    }
}

uint32_t optimizer_state_count(const struct optimizer *optimizer)
{
    return optimizer->rule->state_count;
}

float *optimizer_state(struct optimizer *optimizer, uint32_t index)
{
    assert(index < optimizer->rule->state_count);
    return optimizer->states[index];
}

double optimizer_default_rate(enum optimizer_kind kind)
{
    return optimizers[kind].default_rate;
}
