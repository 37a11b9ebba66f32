/* The arithmetic of the optimizers, element by element: for the loops of optimizer_rules.c, and for
 * a GPU.
 *
 * The formulas are those of torch.optim. Bits must not depend on the device that computes them, so
 * every operation is written out as one that IEEE 754 rounds correctly: fmaf, *, / and sqrtf, in
 * this order. A multiply-add that is not written as fmaf is not fused.
 *
 * Weight decay 0 is not a case of its own: fmaf(0, param, grad) is grad.
 *
 * Part of it is compiled as C++. */
#ifndef COMMON_OPTIMIZER_OPTIMIZER_FORMULAS_H
#define COMMON_OPTIMIZER_OPTIMIZER_FORMULAS_H

#include <math.h>
#include <stddef.h>

// What a GPU computes as well says so before it includes this file.
#ifndef OPTIMIZER_FUNCTION
#define OPTIMIZER_FUNCTION static inline __attribute__((always_inline))
#endif

// X(name of the function, enumerator)
#define OPTIMIZER_FORMULA_MAP(X) \
    X(sgd, SGD)                  \
    X(momentum, MOMENTUM)        \
    X(nesterov, NESTEROV)        \
    X(adam, ADAM)                \
    X(adagrad, ADAGRAD)          \
    X(adadelta, ADADELTA)        \
    X(rmsprop, RMSPROP)

enum optimizer_formula {
#define X(name, enumerator) OPTIMIZER_FORMULA_##enumerator,
    OPTIMIZER_FORMULA_MAP(X)
#undef X
};

/* What is the same for all elements of one update, rounded once from double. Those of settings that
 * a formula does not use are 0. */
struct optimizer_coefficients {
    float minus_rate;   // - learning rate; Adam: divided by 1 - beta1^update
    float weight_decay; // added to the gradient, times the parameter
    float shrink;       // decoupled weight decay: factor of the parameter, else 1
    float momentum;
    float beta1, beta2, decay;
    float beta1_rest, beta2_rest, decay_rest; // 1 - beta1, ...
    float root_scale;                         // Adam: 1 / sqrt(1 - beta2^update)
    float epsilon;
};

/* One update of any number of parameters. */
struct optimizer_update {
    enum optimizer_formula formula;
    struct optimizer_coefficients coefficients;
};

/* What an update works on. None of the vectors overlap. */
struct optimizer_vectors {
    float *params;
    const float *grads;
    float *first, *second; // states; NULL where the formula has fewer
};

OPTIMIZER_FUNCTION void optimizer_sgd(const struct optimizer_coefficients *c,
                                      const struct optimizer_vectors *v, size_t i)
{
    float grad = fmaf(c->weight_decay, v->params[i], v->grads[i]);
    v->params[i] = fmaf(c->minus_rate, grad, v->params[i]);
}

/* Polyak 1964. The velocity is not scaled by 1 - momentum. */
OPTIMIZER_FUNCTION void optimizer_momentum(const struct optimizer_coefficients *c,
                                           const struct optimizer_vectors *v, size_t i)
{
    float *velocity = v->first;
    float grad = fmaf(c->weight_decay, v->params[i], v->grads[i]);
    velocity[i] = fmaf(c->momentum, velocity[i], grad);
    v->params[i] = fmaf(c->minus_rate, velocity[i], v->params[i]);
}

/* Nesterov 1983, in the form of Sutskever et al. 2013 that looks ahead from the new velocity. */
OPTIMIZER_FUNCTION void optimizer_nesterov(const struct optimizer_coefficients *c,
                                           const struct optimizer_vectors *v, size_t i)
{
    float *velocity = v->first;
    float grad = fmaf(c->weight_decay, v->params[i], v->grads[i]);
    velocity[i] = fmaf(c->momentum, velocity[i], grad);
    v->params[i] = fmaf(c->minus_rate, fmaf(c->momentum, velocity[i], grad), v->params[i]);
}

/* Kingma and Ba 2015; with shrink also Loshchilov and Hutter 2019. The biases of both moments are
 * corrected in rate and root_scale. */
OPTIMIZER_FUNCTION void optimizer_adam(const struct optimizer_coefficients *c,
                                       const struct optimizer_vectors *v, size_t i)
{
    float *mean = v->first, *square = v->second;
    float grad = fmaf(c->weight_decay, v->params[i], v->grads[i]);
    mean[i] = fmaf(c->beta1_rest, grad, c->beta1 * mean[i]);
    square[i] = fmaf(c->beta2_rest * grad, grad, c->beta2 * square[i]);
    float divisor = fmaf(sqrtf(square[i]), c->root_scale, c->epsilon);
    v->params[i] = fmaf(c->minus_rate, mean[i] / divisor, c->shrink * v->params[i]);
}

/* Duchi et al. 2011. */
OPTIMIZER_FUNCTION void optimizer_adagrad(const struct optimizer_coefficients *c,
                                          const struct optimizer_vectors *v, size_t i)
{
    float *square = v->first;
    float grad = fmaf(c->weight_decay, v->params[i], v->grads[i]);
    square[i] = fmaf(grad, grad, square[i]);
    v->params[i] = fmaf(c->minus_rate, grad / (sqrtf(square[i]) + c->epsilon), v->params[i]);
}

/* Zeiler 2012. */
OPTIMIZER_FUNCTION void optimizer_adadelta(const struct optimizer_coefficients *c,
                                           const struct optimizer_vectors *v, size_t i)
{
    float *square = v->first, *square_delta = v->second;
    float grad = fmaf(c->weight_decay, v->params[i], v->grads[i]);
    square[i] = fmaf(c->decay_rest * grad, grad, c->decay * square[i]);
    float delta = sqrtf(square_delta[i] + c->epsilon) / sqrtf(square[i] + c->epsilon) * grad;
    square_delta[i] = fmaf(c->decay_rest * delta, delta, c->decay * square_delta[i]);
    v->params[i] = fmaf(c->minus_rate, delta, v->params[i]);
}

/* Tieleman and Hinton 2012. */
OPTIMIZER_FUNCTION void optimizer_rmsprop(const struct optimizer_coefficients *c,
                                          const struct optimizer_vectors *v, size_t i)
{
    float *square = v->first;
    float grad = fmaf(c->weight_decay, v->params[i], v->grads[i]);
    square[i] = fmaf(c->decay_rest * grad, grad, c->decay * square[i]);
    v->params[i] = fmaf(c->minus_rate, grad / (sqrtf(square[i]) + c->epsilon), v->params[i]);
}

#endif
