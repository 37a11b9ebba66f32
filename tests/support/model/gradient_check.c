/* Central differences. */
#include "tests/support/model/gradient_check.h"

#include <math.h>

/* Divides by the step that was really taken: value + step is rounded to float. */
static double difference(gradient_objective *objective, void *context, float *value, float step)
{
    float middle = *value;
    float high = middle + step;
    float low = middle - step;
    *value = high;
    double at_high = objective(context);
    *value = low;
    double at_low = objective(context);
    *value = middle;
    return (at_high - at_low) / ((double)high - (double)low);
}

double gradient_check(gradient_objective *objective, void *context, float *values,
                      const float *gradient, size_t count, float step)
{
    double error = 0;
    double norm = 0;
    for (size_t i = 0; i < count; i++) {
        double numeric = difference(objective, context, &values[i], step);
        double d = (double)gradient[i] - numeric;
        error += d * d;
        norm += numeric * numeric;
    }
    if (!isfinite(error)) {
        return (double)INFINITY;
    }
    return norm > 0 ? sqrt(error / norm) : sqrt(error);
}
