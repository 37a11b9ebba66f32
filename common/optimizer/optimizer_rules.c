/* The update rules of the optimizers: a formula each, in loops for every variant. */
#include "common/optimizer/optimizer_rules.h"

// `restrict` on the vectors themselves, or no loop would be vectorised.
#define DEFINE_BODY(name)                                                                      \
    VARIANT_BODY void name##_body(const struct optimizer_coefficients *coefficients,           \
                                  float *restrict params, const float *restrict grads,         \
                                  float *restrict first, float *restrict second, size_t count) \
    {                                                                                          \
        const struct optimizer_coefficients c = *coefficients;                                 \
        for (size_t i = 0; i < count; i++) {                                                   \
            const struct optimizer_vectors v = {params, grads, first, second};                 \
            optimizer_##name(&c, &v, i);                                                       \
        }                                                                                      \
    }

// Wrappers of the bodies; `target` is empty for the portable variant.
#define DEFINE_LOOP(name, variant, target)                                                 \
    target static void name##_##variant(const struct optimizer_coefficients *coefficients, \
                                        float *params, const float *grads, float *first,   \
                                        float *second, size_t count)                       \
    {                                                                                      \
        name##_body(coefficients, params, grads, first, second, count);                    \
    }
#define DEFINE_LOOPS(name, enumerator)           \
    DEFINE_BODY(name)                            \
    DEFINE_LOOP(name, portable, )                \
    DEFINE_LOOP(name, avx2, VARIANT_TARGET_AVX2) \
    DEFINE_LOOP(name, avx512, VARIANT_TARGET_AVX512)

OPTIMIZER_FORMULA_MAP(DEFINE_LOOPS)

#define LOOPS(name)                                                         \
    {                                                                       \
        [VARIANT_PORTABLE] = name##_portable, [VARIANT_AVX2] = name##_avx2, \
        [VARIANT_AVX512] = name##_avx512,                                   \
    }

const struct optimizer_rule optimizer_rule_sgd = {
    .formula = OPTIMIZER_FORMULA_SGD,
    .loops = LOOPS(sgd),
};

const struct optimizer_rule optimizer_rule_momentum = {
    .state_count = 1,
    .uses = OPTIMIZER_USES_MOMENTUM,
    .formula = OPTIMIZER_FORMULA_MOMENTUM,
    .loops = LOOPS(momentum),
};

const struct optimizer_rule optimizer_rule_nesterov = {
    .state_count = 1,
    .uses = OPTIMIZER_USES_MOMENTUM,
    .formula = OPTIMIZER_FORMULA_NESTEROV,
    .loops = LOOPS(nesterov),
};

const struct optimizer_rule optimizer_rule_adam = {
    .state_count = 2,
    .uses = OPTIMIZER_USES_BETAS | OPTIMIZER_USES_EPSILON,
    .epsilon = 1e-8,
    .formula = OPTIMIZER_FORMULA_ADAM,
    .loops = LOOPS(adam),
};

const struct optimizer_rule optimizer_rule_adamw = {
    .state_count = 2,
    .uses = OPTIMIZER_USES_BETAS | OPTIMIZER_USES_EPSILON | OPTIMIZER_DECOUPLES_DECAY,
    .epsilon = 1e-8,
    .formula = OPTIMIZER_FORMULA_ADAM,
    .loops = LOOPS(adam),
};

const struct optimizer_rule optimizer_rule_adagrad = {
    .state_count = 1,
    .uses = OPTIMIZER_USES_EPSILON,
    .epsilon = 1e-10,
    .formula = OPTIMIZER_FORMULA_ADAGRAD,
    .loops = LOOPS(adagrad),
};

const struct optimizer_rule optimizer_rule_adadelta = {
    .state_count = 2,
    .uses = OPTIMIZER_USES_DECAY | OPTIMIZER_USES_EPSILON,
    .epsilon = 1e-6,
    .decay = 0.9,
    .formula = OPTIMIZER_FORMULA_ADADELTA,
    .loops = LOOPS(adadelta),
};

const struct optimizer_rule optimizer_rule_rmsprop = {
    .state_count = 1,
    .uses = OPTIMIZER_USES_DECAY | OPTIMIZER_USES_EPSILON,
    .epsilon = 1e-8,
    .decay = 0.99,
    .formula = OPTIMIZER_FORMULA_RMSPROP,
    .loops = LOOPS(rmsprop),
};
