/* Builds and measures figures. */
#include "deploy/page/figure_parts.h"

#include <math.h>

// How far a plot shows bands beyond its curves, as a share of what those take.
#define BAND_ROOM 0.5

json_t *figure_lines(const char *id, const char *title, const char *x, const char *y,
                     const char *note)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:[]}", "id", id, "kind", "lines", "title",
                     title, "x", x, "y", y, "note", note, "series");
}

json_t *figure_bars(const char *id, const char *title, const char *y, const char *note)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:[], s:[], s:[]}", "id", id, "kind", "bars",
                     "title", title, "y", y, "note", note, "names", "colours", "series");
}

json_t *figure_add_series(json_t *figure, const char *name, struct run_stroke stroke)
{
    json_t *series =
        json_pack("{s:s, s:i, s:i, s:[], s:[], s:[]}", "name", name, "colour", (int)stroke.colour,
                  "dash", (int)stroke.dash, "points", "runs", "ends");
    json_array_append_new(json_object_get(figure, "series"), series);
    return series;
}

json_t *figure_point(double x, double y)
{
    return json_pack("[f, f]", x, y);
}

json_t *figure_mean(double x, const struct statistics *value)
{
    if (value->count < 2) {
        return figure_point(x, value->mean);
    }
    return json_pack("[f, f, f, f]", x, value->mean, fmax(0, value->mean - value->half_width),
                     value->mean + value->half_width);
}

struct limits {
    double x_min, x_max, y_min, y_max;
};

/* The means, runs and ends; bands may leave the plot. */
static void measure(const json_t *points, struct limits *limits)
{
    const json_t *point;
    size_t i;
    json_array_foreach(points, i, point)
    {
        double x = json_number_value(json_array_get(point, 0));
        const json_t *y = json_array_get(point, 1);
        limits->x_min = fmin(limits->x_min, x);
        limits->x_max = fmax(limits->x_max, x);
        if (json_is_number(y)) {
            limits->y_min = fmin(limits->y_min, json_number_value(y));
            limits->y_max = fmax(limits->y_max, json_number_value(y));
        }
    }
}

void figure_set_limits(json_t *figure, double most)
{
    struct limits limits = {HUGE_VAL, -HUGE_VAL, HUGE_VAL, -HUGE_VAL};
    const json_t *series, *run;
    size_t i, k;
    json_array_foreach(json_object_get(figure, "series"), i, series)
    {
        measure(json_object_get(series, "points"), &limits);
        measure(json_object_get(series, "ends"), &limits);
        json_array_foreach(json_object_get(series, "runs"), k, run)
        {
            measure(run, &limits);
        }
    }
    json_object_set_new(figure, "x_min", json_real(fmin(limits.x_min, limits.x_max)));
    json_object_set_new(figure, "x_max", json_real(limits.x_max));
    if (limits.y_max > most) {
        json_object_set_new(figure, "y_min", json_real(0));
        json_object_set_new(figure, "y_max", json_real(most));
        return;
    }
    double room = BAND_ROOM * (limits.y_max - limits.y_min);
    json_object_set_new(figure, "y_low", json_real(fmax(0, limits.y_min - room)));
    json_object_set_new(figure, "y_high", json_real(fmin(most, limits.y_max + room)));
}

size_t figure_longest(const json_t *figure)
{
    const json_t *series;
    size_t i, longest = 0;
    json_array_foreach(json_object_get(figure, "series"), i, series)
    {
        size_t count = json_array_size(json_object_get(series, "points"));
        longest = count > longest ? count : longest;
    }
    return longest;
}
