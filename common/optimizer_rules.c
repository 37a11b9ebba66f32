/* The update rules of the optimizers, element by element.
 *
 * The formulas are those of torch.optim. Bits must not depend on who computes them (a variant here,
 * a GPU kernel), so every operation is written out as one that IEEE 754 rounds correctly: fmaf, *,
 * / and sqrtf, in this order. A multiply-add that is not written as fmaf is not fused.
 *
 * Weight decay 0 is not a case of its own: fmaf(0, param, grad) is grad. */
#include "common/optimizer_rules.h"

#include <math.h>

// NOLINTBEGIN(readability-non-const-parameter): all bodies are alike, also without a second state.
VARIANT_BODY void sgd_body(const struct optimizer_coefficients *coefficients,
                           float *restrict params, const float *restrict grads,
                           float *restrict first, float *restrict second, size_t count)
{
    (void)first;
    (void)second;
    const struct optimizer_coefficients c = *coefficients;
    for (size_t i = 0; i < count; i++) {
        float grad = fmaf(c.weight_decay, params[i], grads[i]);
        params[i] = fmaf(c.minus_rate, grad, params[i]);
    }
}

/* Polyak 1964. The velocity is not scaled by 1 - momentum. */
VARIANT_BODY void momentum_body(const struct optimizer_coefficients *coefficients,
                                float *restrict params, const float *restrict grads,
                                float *restrict velocity, float *restrict second, size_t count)
{
    (void)second;
    const struct optimizer_coefficients c = *coefficients;
    for (size_t i = 0; i < count; i++) {
        float grad = fmaf(c.weight_decay, params[i], grads[i]);
        velocity[i] = fmaf(c.momentum, velocity[i], grad);
        params[i] = fmaf(c.minus_rate, velocity[i], params[i]);
    }
}

/* Nesterov 1983, in the form of Sutskever et al. 2013 that looks ahead from the new velocity. */
VARIANT_BODY void nesterov_body(const struct optimizer_coefficients *coefficients,
                                float *restrict params, const float *restrict grads,
                                float *restrict velocity, float *restrict second, size_t count)
{
    (void)second;
    const struct optimizer_coefficients c = *coefficients;
    for (size_t i = 0; i < count; i++) {
        float grad = fmaf(c.weight_decay, params[i], grads[i]);
        velocity[i] = fmaf(c.momentum, velocity[i], grad);
        params[i] = fmaf(c.minus_rate, fmaf(c.momentum, velocity[i], grad), params[i]);
    }
}

/* Kingma and Ba 2015; with shrink also Loshchilov and Hutter 2019. The biases of both moments are
 * corrected in rate and root_scale. */
VARIANT_BODY void adam_body(const struct optimizer_coefficients *coefficients,
                            float *restrict params, const float *restrict grads,
                            float *restrict mean, float *restrict square, size_t count)
{
    const struct optimizer_coefficients c = *coefficients;
    for (size_t i = 0; i < count; i++) {
        float grad = fmaf(c.weight_decay, params[i], grads[i]);
        mean[i] = fmaf(c.beta1_rest, grad, c.beta1 * mean[i]);
        square[i] = fmaf(c.beta2_rest * grad, grad, c.beta2 * square[i]);
        float divisor = fmaf(sqrtf(square[i]), c.root_scale, c.epsilon);
        params[i] = fmaf(c.minus_rate, mean[i] / divisor, c.shrink * params[i]);
    }
}

/* Duchi et al. 2011. */
VARIANT_BODY void adagrad_body(const struct optimizer_coefficients *coefficients,
                               float *restrict params, const float *restrict grads,
                               float *restrict square, float *restrict second, size_t count)
{
    (void)second;
    const struct optimizer_coefficients c = *coefficients;
    for (size_t i = 0; i < count; i++) {
        float grad = fmaf(c.weight_decay, params[i], grads[i]);
        square[i] = fmaf(grad, grad, square[i]);
        params[i] = fmaf(c.minus_rate, grad / (sqrtf(square[i]) + c.epsilon), params[i]);
    }
}

/* Zeiler 2012. */
VARIANT_BODY void adadelta_body(const struct optimizer_coefficients *coefficients,
                                float *restrict params, const float *restrict grads,
                                float *restrict square, float *restrict square_delta, size_t count)
{
    const struct optimizer_coefficients c = *coefficients;
    for (size_t i = 0; i < count; i++) {
        float grad = fmaf(c.weight_decay, params[i], grads[i]);
        square[i] = fmaf(c.decay_rest * grad, grad, c.decay * square[i]);
        float delta = sqrtf(square_delta[i] + c.epsilon) / sqrtf(square[i] + c.epsilon) * grad;
        square_delta[i] = fmaf(c.decay_rest * delta, delta, c.decay * square_delta[i]);
        params[i] = fmaf(c.minus_rate, delta, params[i]);
    }
}

/* Tieleman and Hinton 2012. */
VARIANT_BODY void rmsprop_body(const struct optimizer_coefficients *coefficients,
                               float *restrict params, const float *restrict grads,
                               float *restrict square, float *restrict second, size_t count)
{
    (void)second;
    const struct optimizer_coefficients c = *coefficients;
    for (size_t i = 0; i < count; i++) {
        float grad = fmaf(c.weight_decay, params[i], grads[i]);
        square[i] = fmaf(c.decay_rest * grad, grad, c.decay * square[i]);
        params[i] = fmaf(c.minus_rate, grad / (sqrtf(square[i]) + c.epsilon), params[i]);
    }
}

// NOLINTEND(readability-non-const-parameter)

// Wrappers of the bodies; `target` is empty for the portable variant.
#define DEFINE_LOOP(body, variant, target)                                                 \
    target static void body##_##variant(const struct optimizer_coefficients *coefficients, \
                                        float *params, const float *grads, float *first,   \
                                        float *second, size_t count)                       \
    {                                                                                      \
        body##_body(coefficients, params, grads, first, second, count);                    \
    }
#define DEFINE_LOOPS(body)                       \
    DEFINE_LOOP(body, portable, )                \
    DEFINE_LOOP(body, avx2, VARIANT_TARGET_AVX2) \
    DEFINE_LOOP(body, avx512, VARIANT_TARGET_AVX512)

DEFINE_LOOPS(sgd)
DEFINE_LOOPS(momentum)
DEFINE_LOOPS(nesterov)
DEFINE_LOOPS(adam)
DEFINE_LOOPS(adagrad)
DEFINE_LOOPS(adadelta)
DEFINE_LOOPS(rmsprop)

#define LOOPS(body)                                                         \
    {                                                                       \
        [VARIANT_PORTABLE] = body##_portable, [VARIANT_AVX2] = body##_avx2, \
        [VARIANT_AVX512] = body##_avx512,                                   \
    }

const struct optimizer_rule optimizer_rule_sgd = {
    .loops = LOOPS(sgd),
};

const struct optimizer_rule optimizer_rule_momentum = {
    .state_count = 1,
    .uses = OPTIMIZER_USES_MOMENTUM,
    .loops = LOOPS(momentum),
};

const struct optimizer_rule optimizer_rule_nesterov = {
    .state_count = 1,
    .uses = OPTIMIZER_USES_MOMENTUM,
    .loops = LOOPS(nesterov),
};

const struct optimizer_rule optimizer_rule_adam = {
    .state_count = 2,
    .uses = OPTIMIZER_USES_BETAS | OPTIMIZER_USES_EPSILON,
    .epsilon = 1e-8,
    .loops = LOOPS(adam),
};

const struct optimizer_rule optimizer_rule_adamw = {
    .state_count = 2,
    .uses = OPTIMIZER_USES_BETAS | OPTIMIZER_USES_EPSILON | OPTIMIZER_DECOUPLES_DECAY,
    .epsilon = 1e-8,
    .loops = LOOPS(adam),
};

const struct optimizer_rule optimizer_rule_adagrad = {
    .state_count = 1,
    .uses = OPTIMIZER_USES_EPSILON,
    .epsilon = 1e-10,
    .loops = LOOPS(adagrad),
};

const struct optimizer_rule optimizer_rule_adadelta = {
    .state_count = 2,
    .uses = OPTIMIZER_USES_DECAY | OPTIMIZER_USES_EPSILON,
    .epsilon = 1e-6,
    .decay = 0.9,
    .loops = LOOPS(adadelta),
};

const struct optimizer_rule optimizer_rule_rmsprop = {
    .state_count = 1,
    .uses = OPTIMIZER_USES_DECAY | OPTIMIZER_USES_EPSILON,
    .epsilon = 1e-8,
    .decay = 0.99,
    .loops = LOOPS(rmsprop),
};
