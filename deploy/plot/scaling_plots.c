/* Writes gnuplot commands that plot how designs scale. */
#include "deploy/plot/scaling_plots.h"

#include "deploy/sweep/run_words.h"

#include <string.h>

#define TICS_MAX 16 // workers that each have a tic

// Of a design's data block: the half of the interval is behind the value.
enum { COLUMN_SPEED_UP = 2, COLUMN_EFFICIENCY = 4 };

static bool is_efficiency(const struct plot *plot)
{
    return strcmp(plot->name, "efficiency") == 0;
}

bool scaling_plots_has(const struct plot *plot)
{
    return strcmp(plot->name, "speed-up") == 0 || is_efficiency(plot);
}

/* Lines of a data block: workers, speed-up, efficiency in percent, each value with the half of its
 * interval. Only those with an interval: one seed has none, nor what the others are compared with.
 */
static void write_points(FILE *script, const struct scaling_design *design, bool has_interval_only)
{
    for (size_t k = 0; k < design->count; k++) {
        const struct scaling_point *point = &design->points[k];
        if (!has_interval_only || point->speed_up.half_width > 0) {
            fprintf(script, "%u %.6g %.6g %.6g %.6g\n", point->workers, point->speed_up.mean,
                    point->speed_up.half_width, 100 * point->efficiency.mean,
                    100 * point->efficiency.half_width);
        }
    }
}

void scaling_plots_write_data(FILE *script, const struct group_scaling *scaling)
{
    fprintf(script, "$ideal << END\n1 1 0 100 0\n%u %u 0 100 0\nEND\n", scaling->workers_max,
            scaling->workers_max);
    for (size_t i = 0; i < scaling->count; i++) {
        const struct scaling_design *design = &scaling->designs[i];
        fprintf(script, "$scaling%zu << END\n", i);
        write_points(script, design, false);
        fprintf(script, "END\n$intervals%zu << END\n", i);
        write_points(script, design, true);
        fprintf(script, "END\n");
    }
}

/* Whether a design has an interval; gnuplot refuses to plot nothing. */
static bool has_intervals(const struct scaling_design *design)
{
    for (size_t k = 0; k < design->count; k++) {
        if (design->points[k].speed_up.half_width > 0) {
            return true;
        }
    }
    return false;
}

/* Above what is drawn of means: intervals of two seeds may be many times as high, and are cut. */
static double highest(const struct group_scaling *scaling, bool is_efficiency)
{
    double most = is_efficiency ? 100 : scaling->workers_max;
    for (size_t i = 0; i < scaling->count; i++) {
        for (size_t k = 0; k < scaling->designs[i].count; k++) {
            const struct scaling_point *point = &scaling->designs[i].points[k];
            double mean = is_efficiency ? 100 * point->efficiency.mean : point->speed_up.mean;
            most = mean > most ? mean : most;
        }
    }
    return 1.25 * most;
}

static void write_axes(FILE *script, const struct group_scaling *scaling, bool is_efficiency)
{
    double margin = 0.03 * (scaling->workers_max - 1); // so that no point is cut
    fprintf(script,
            "set xlabel 'workers'\nset ylabel '%s'\nset xrange [%.6g:%.6g]\n"
            "set yrange [0:*<%.6g]\n",
            is_efficiency ? "efficiency (%)" : "speed-up", 1 - margin,
            scaling->workers_max + margin, highest(scaling, is_efficiency));
    if (scaling->workers_max <= TICS_MAX) {
        fprintf(script, "set xtics 1\n");
    }
}

void scaling_plots_write(FILE *script, const struct plot *plot, const struct group_scaling *scaling)
{
    int column = is_efficiency(plot) ? COLUMN_EFFICIENCY : COLUMN_SPEED_UP;
    write_axes(script, scaling, is_efficiency(plot));
    fprintf(script, "plot $ideal using 1:%d with lines lt %d lw 2 dt %d title 'ideal'", column,
            RUN_COLOURS, RUN_DASHES + 1);
    for (size_t i = 0; i < scaling->count; i++) {
        char label[RUN_WORDS_BYTES];
        const struct run_stroke *stroke = &scaling->strokes[i];
        gnuplot_label(scaling->designs[i].name, label, sizeof(label));
        fprintf(script,
                ", \\\n  $scaling%zu using 1:%d with linespoints pt 7 ps 0.9 lt %zu dt %zu title "
                "\"%s\"",
                i, column, stroke->colour + 1, stroke->dash + 1, label);
        if (has_intervals(&scaling->designs[i])) {
            fprintf(script,
                    ", \\\n  $intervals%zu using 1:%d:%d with yerrorbars pt 7 ps 0.9 lt %zu dt 1 "
                    "notitle",
                    i, column, column + 1, stroke->colour + 1);
        }
    }
    fprintf(script, "\nset xrange [*:*]\nset yrange [*:*]\nset xtics autofreq\n");
}
