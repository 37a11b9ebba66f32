/* Finite differences: is this the gradient of that function?
 *
 * Central differences of a function that is computed in float have two errors: curvature, which
 * falls with the square of the step, and rounding, which grows with its inverse. A function that is
 * linear in the values has no curvature, so a large step is best; kinks (rectifier, maximum) must
 * be more than a step away. */
#ifndef TESTS_SUPPORT_MODEL_GRADIENT_CHECK_H
#define TESTS_SUPPORT_MODEL_GRADIENT_CHECK_H

#include <stddef.h>

/* The function's value at what `values` holds now. */
typedef double gradient_objective(void *context);

/* |gradient - differences| / |differences| in the L2 norm, over each of the values, which are
 * restored. Infinity if a gradient is not finite. */
double gradient_check(gradient_objective *objective, void *context, float *values,
                      const float *gradient, size_t count, float step);

#endif
