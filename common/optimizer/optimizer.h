/* Optimizers on spans of the flat vector: one implementation for shards, ring and local.
 *
 * Every element is updated on its own by fused multiply-adds, correctly rounded divisions and
 * square roots in a fixed order, so the bits do not depend on the cut into spans, on the vector
 * variant, or on CPU against GPU. The formulas are PyTorch's (torch.optim), with its defaults. */
#ifndef COMMON_OPTIMIZER_OPTIMIZER_H
#define COMMON_OPTIMIZER_OPTIMIZER_H

#include "common/base/status.h"
#include "common/options/names.h"
#include "common/vector/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTIMIZER_STATES_MAX 2

/* Hyper-parameters; those that an optimizer does not use are ignored by it. momentum, betas and
 * decay lie in [0, 1). */
struct optimizer_settings {
    double momentum;     // momentum, nesterov
    double beta1, beta2; // adam, adamw
    double decay;        // rmsprop (alpha), adadelta (rho); 0: the optimizer's default
    double epsilon;      // adam, adamw, adagrad, adadelta, rmsprop; 0: the optimizer's default
    double weight_decay; // L2 added to the gradient; adamw: decoupled
};

/* A group of parameters, with settings of its own. */
struct optimizer_group {
    double rate; // in units of optimizer_apply's learning rate
    struct optimizer_settings settings;
};

enum optimizer_uses {
    OPTIMIZER_USES_MOMENTUM = 1 << 0,
    OPTIMIZER_USES_BETAS = 1 << 1,
    OPTIMIZER_USES_DECAY = 1 << 2,
    OPTIMIZER_USES_EPSILON = 1 << 3,
    OPTIMIZER_DECOUPLES_DECAY = 1 << 4, // weight decay shrinks the parameter
};

/* Which settings an optimizer uses, of enum optimizer_uses; 0 of OPTIMIZER_AUTO. */
unsigned optimizer_uses_of(enum optimizer_kind kind);

/* How many states an optimizer has; 0 of OPTIMIZER_AUTO. */
uint32_t optimizer_states_of(enum optimizer_kind kind);

/* Whether an optimizer can have such settings. Of epsilon and decay, 0 is not the default here. */
bool optimizer_settings_are_valid(enum optimizer_kind kind,
                                  const struct optimizer_settings *settings);

struct optimizer;
struct optimizer_groups;

/* A row of names.h's OPTIMIZER_MAP. STATUS_INVALID if it is none, or a setting that it uses is out
 * of range; STATUS_NO_MEMORY. Holds the states for `value_count` floats, zeroed. */
enum status optimizer_create(enum optimizer_kind kind, const struct optimizer_settings *settings,
                             uint64_t value_count, struct optimizer **ret_optimizer);
void optimizer_destroy(struct optimizer *optimizer); // NULL is fine

/* From here on the parameters are in groups (groups.h), which are valid for the optimizer. Its
 * states' vector is `spans` of the flat vector that the groups are of, one behind the other.
 * Without this call there is one group, of rate 1. STATUS_NO_MEMORY. */
enum status optimizer_set_groups(struct optimizer *optimizer, const struct optimizer_groups *groups,
                                 const struct span *spans, uint32_t span_count);

/* Other settings of all groups from the next update on, (optimizer_group_count), valid ones. */
void optimizer_change_groups(struct optimizer *optimizer, const struct optimizer_group *groups);

uint32_t optimizer_group_count(const struct optimizer *optimizer);
const struct optimizer_group *optimizer_group_rows(const struct optimizer *optimizer); // borrowed

/* Applies one gradient to the states.count parameters at params, whose states begin at
 * states.offset. `update` counts from 1: the number of this update of these parameters (Adam's
 * bias correction). */
void optimizer_apply(struct optimizer *optimizer, struct span states, float *params,
                     const float *grads, uint64_t update, double learning_rate);

/* The same update of a span as a formula and its coefficients, for a device that holds parameters
 * and states itself. Returns how many values it is for: those that the span begins with and that
 * are of one group. */
struct optimizer_update;
uint64_t optimizer_plan_update(const struct optimizer *optimizer, struct span states,
                               uint64_t update, double learning_rate,
                               struct optimizer_update *ret_update);

/* Another momentum of all groups from the next update on, in [0, 1). Optimizers without one ignore
 * it. */
void optimizer_set_momentum(struct optimizer *optimizer, double momentum);

/* The states, for checkpoints and for moving a job between designs: state_count vectors of
 * value_count floats. Borrowed until optimizer_destroy. */
uint32_t optimizer_state_count(const struct optimizer *optimizer);
float *optimizer_state(struct optimizer *optimizer, uint32_t index);

/* Replaces an epsilon and a decay of 0 by the optimizer's own, as optimizer_create does. What the
 * optimizer does not use stays. */
void optimizer_fill_defaults(enum optimizer_kind kind, struct optimizer_settings *settings);

/* The learning rate that --lr 0 stands for. */
double optimizer_default_rate(enum optimizer_kind kind);

#endif
