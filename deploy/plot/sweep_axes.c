/* Finds the ends and the tics of axes from what a sweep has found. */
#include "deploy/plot/sweep_axes.h"

#include <math.h>

double sweep_axes_tics(const struct sweep_settings *settings, int x)
{
    double last = 0;
    for (size_t i = 0; i < settings->count; i++) {
        const struct sweep_setting *setting = &settings->list[i];
        for (size_t k = 0; k < setting->point_count; k++) {
            const struct sweep_point *point = &setting->points[k];
            double at = x == 1 ? point->step : point->seconds.mean;
            last = at > last ? at : last;
        }
    }
    double unit = last > 0 ? pow(10, floor(log10(last / 4))) : 1;
    double units = last / 4 / unit;
    return unit * (units <= 1 ? 1 : units <= 2 ? 2 : units <= 5 ? 5 : 10);
}

double sweep_axes_highest_rate(const struct sweep_settings *settings)
{
    double highest = 1;
    for (size_t i = 0; i < settings->count; i++) {
        const struct statistics *rate = &settings->list[i].measures[MEASURE_RATE];
        highest = fmax(highest, rate->count > 0 ? rate->mean : 0);
        for (size_t k = 0; k < rate->count; k++) {
            highest = fmax(highest, settings->list[i].rates[k]);
        }
    }
    return 1.5 * highest;
}
