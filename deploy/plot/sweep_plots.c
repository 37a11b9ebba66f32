/* Writes gnuplot commands that plot the settings of a sweep.
 *
 * Where there are several series, with several settings in one of them, curves are drawn in panels,
 * a series each: settings of equal place have equal colours. */
#include "deploy/plot/sweep_plots.h"

#include "deploy/plot/scaling_plots.h"
#include "deploy/plot/sweep_axes.h"
#include "deploy/sweep/run_words.h"

#include <string.h>

#define PANELS_MAX  9
#define COLUMNS     3
#define BANDS_MAX   7  // of one panel; more than so many hide each other
#define KEYS_MAX    20 // lines that a legend has room for
#define LABEL_BYTES 256

// Of a curve's data block.
#define COLUMN_STEP     1
#define COLUMN_ACCURACY 3
#define COLUMN_LOSS     6

// Of gradients: the few that are most stale would leave no room for the others.
#define SHARES_SHOWN 0.995

const struct plot sweep_plots[] = {
    {"accuracy-steps",
     "Accuracy on the test set over steps of the job: mean over the seeds, and its 95 % "
     "interval as a band. A cross on the axis: there a run diverged."},
    {"accuracy-seconds", "The same over seconds of training, evaluations not counted."},
    {"loss-steps",
     "Training loss between evaluations, over steps: mean over the seeds, and its 95 % interval "
     "as a band. What grows beyond all bounds is cut off above; a cross on the axis: there a run "
     "diverged."},
    {"loss-seconds", "The same over seconds of training."},
    {"target-steps", "Steps until the target accuracy, relative to the setting with the least "
                     "staleness, as a function of the staleness that was measured; with 95 % "
                     "intervals. Settings that did not reach it have no point."},
    {"target-seconds", "Seconds of training until the target accuracy, relative in the same way."},
    {"staleness", "How stale gradients were: the share of those that were so many updates old when "
                  "they were applied. The most stale half of a percent is left out."},
    {"images", "Images per second of the whole job, warm-up excluded, with 95 % intervals."},
    SCALING_PLOTS,
    {NULL, NULL},
};

static bool has_staleness(const struct sweep_settings *settings)
{
    return sweep_settings_have(settings, MEASURE_STALENESS);
}

/* Several settings in a series, and not too many series. */
static bool has_panels(const struct sweep_settings *settings)
{
    return settings->series_count > 1 && settings->series_count <= PANELS_MAX &&
           settings->count > settings->series_count;
}

static size_t row_count(const struct sweep_settings *settings)
{
    return has_panels(settings) ? (settings->series_count + COLUMNS - 1) / COLUMNS : 1;
}

/* Options in words, as they may stand in a script. */
static void words_label(const char *options, char *ret_label, size_t label_size)
{
    char words[RUN_WORDS_BYTES];
    run_words_of_label(options, NULL, words);
    gnuplot_label(words, ret_label, label_size);
}

/* What the settings of a series have in common. */
static void series_label(const struct sweep_settings *settings, size_t series,
                         char ret_label[LABEL_BYTES])
{
    ret_label[0] = '\0';
    for (size_t i = 0; i < settings->count; i++) {
        if (settings->list[i].series_index == series) {
            words_label(settings->list[i].series, ret_label, LABEL_BYTES);
            return;
        }
    }
}

/* "order=seeded:constant:8 (2 of 3 diverged)" */
static void label_setting(const struct sweep_setting *setting, bool is_alone,
                          char ret_label[LABEL_BYTES])
{
    words_label(is_alone || setting->axis[0] == '\0' ? setting->label : setting->axis, ret_label,
                LABEL_BYTES);
    size_t used = strlen(ret_label);
    if (setting->diverged > 0) {
        snprintf(ret_label + used, LABEL_BYTES - used, " (%zu of %zu diverged)", setting->diverged,
                 setting->planned);
    }
}

/* ==========================================================================================
 * Data
 * ========================================================================================== */

/* step, seconds, then accuracy and loss, each with its interval */
static void write_curve(FILE *script, const struct sweep_setting *setting, size_t index)
{
    fprintf(script, "$curve%zu << END\n", index);
    for (size_t i = 0; i < setting->point_count; i++) {
        const struct sweep_point *point = &setting->points[i];
        const struct statistics *values[] = {&point->accuracy, &point->train_loss};
        fprintf(script, "%.0f %.6g", point->step, point->seconds.mean);
        for (size_t k = 0; k < 2; k++) {
            if (values[k]->count == 0) {
                fprintf(script, " NaN NaN NaN");
            } else {
                fprintf(script, " %.6g %.6g %.6g", values[k]->mean,
                        values[k]->mean - values[k]->half_width,
                        values[k]->mean + values[k]->half_width);
            }
        }
        fprintf(script, "\n");
    }
    if (setting->point_count == 0) {
        fprintf(script, "NaN NaN NaN NaN NaN NaN NaN NaN\n"); // gnuplot refuses an empty block
    }
    fprintf(script, "END\n$diverged%zu << END\n", index);
    for (size_t i = 0; i < setting->diverged; i++) {
        fprintf(script, "%.0f 0\n", setting->diverged_steps[i]);
    }
    fprintf(script, "END\n$shares%zu << END\n", index);
    double sum = 0;
    for (size_t bin = 0; bin < SWEEP_STALENESS_BINS && sum < SHARES_SHOWN; bin++) {
        sum += setting->shares[bin];
        fprintf(script, "%zu %.6g\n", bin, 100 * setting->shares[bin]);
    }
    fprintf(script, "END\n");
}

/* A series: staleness, relative steps and seconds with their intervals. */
static void write_series(FILE *script, const struct sweep_settings *settings, size_t series)
{
    fprintf(script, "$series%zu << END\n", series);
    for (size_t i = 0; i < settings->count; i++) {
        const struct sweep_setting *setting = &settings->list[i];
        const struct statistics *steps = &setting->relative_steps;
        const struct statistics *seconds = &setting->relative_seconds;
        if (setting->series_index == series && steps->count > 0) {
            fprintf(script, "%.6g %.6g %.6g %.6g %.6g\n", setting->measures[MEASURE_STALENESS].mean,
                    steps->mean, steps->half_width, seconds->mean, seconds->half_width);
        }
    }
    fprintf(script, "NaN NaN NaN NaN NaN\nEND\n");
}

/* Whether some setting's runs are drawn beside their mean: of more, the interval says it. */
static bool has_runs(const struct sweep_settings *settings)
{
    for (size_t i = 0; i < settings->count; i++) {
        size_t count = settings->list[i].measures[MEASURE_RATE].count;
        if (count > 1 && count <= RUNS_DRAWN_MAX) {
            return true;
        }
    }
    return false;
}

/* The place of a bar, and what one of its runs has. */
static void write_runs(FILE *script, const struct sweep_settings *settings)
{
    if (!has_runs(settings)) {
        return;
    }
    fprintf(script, "$runs << END\n");
    for (size_t i = 0; i < settings->count; i++) {
        const struct sweep_setting *setting = &settings->list[settings->rows[i]];
        size_t count = setting->measures[MEASURE_RATE].count;
        for (size_t k = 0; k < count && count > 1 && count <= RUNS_DRAWN_MAX; k++) {
            fprintf(script, "%zu %.6g\n", i, setting->rates[k]);
        }
    }
    fprintf(script, "END\n");
}

/* The data of one script. */
struct plotted {
    const struct sweep_settings *settings;
    const struct group_scaling *scaling;
};

static void write_data(FILE *script, const void *context)
{
    const struct plotted *plotted = context;
    const struct sweep_settings *settings = plotted->settings;
    char label[LABEL_BYTES];
    for (size_t i = 0; i < settings->count; i++) {
        write_curve(script, &settings->list[i], i);
    }
    for (size_t i = 0; i < settings->series_count; i++) {
        write_series(script, settings, i);
    }
    fprintf(script, "$bars << END\n");
    for (size_t i = 0; i < settings->count; i++) {
        const struct sweep_setting *setting = &settings->list[settings->rows[i]];
        const struct statistics *rate = &setting->measures[MEASURE_RATE];
        label_setting(setting, true, label);
        fprintf(script, "\"%s\" %.6g %.6g %zu\n", label, rate->mean, rate->half_width,
                setting->stroke.colour + 1);
    }
    fprintf(script, "END\n");
    write_runs(script, settings);
    scaling_plots_write_data(script, plotted->scaling);
}

/* ==========================================================================================
 * Curves
 * ========================================================================================== */

struct curve_plot {
    const char *x_title, *y_title;
    int x, y; // columns; the interval is in the two behind y
    const char *range;
};

/* Whether a setting has something for a curve; gnuplot refuses to plot nothing. */
static bool has_curve(const struct sweep_setting *setting, const struct curve_plot *curve)
{
    for (size_t i = 0; i < setting->point_count; i++) {
        const struct sweep_point *point = &setting->points[i];
        if ((curve->y == COLUMN_ACCURACY ? point->accuracy.count : point->train_loss.count) > 0) {
            return true;
        }
    }
    return false;
}

/* Where each panel has settings of its own: of equal place, they have equal strokes. */
static struct run_stroke stroke_of_place(size_t place)
{
    return (struct run_stroke){place % RUN_COLOURS, place / RUN_COLOURS % RUN_DASHES};
}

static void write_curve_panel(FILE *script, const struct sweep_settings *settings,
                              const void *context, size_t series, bool is_alone)
{
    const struct curve_plot *curve = context;
    size_t count = 0, place = 0;
    char label[LABEL_BYTES];
    const char *separator = "plot ";
    for (size_t i = 0; i < settings->count; i++) {
        count += is_alone || settings->list[i].series_index == series;
    }
    for (size_t row = 0; row < settings->count; row++) {
        size_t i = settings->rows[row];
        const struct sweep_setting *setting = &settings->list[i];
        if (!is_alone && setting->series_index != series) {
            continue;
        }
        // Also of one that has nothing: places have their colours.
        const struct run_stroke stroke = is_alone ? setting->stroke : stroke_of_place(place++);
        label_setting(setting, is_alone, label);
        if (curve->x == COLUMN_STEP && setting->diverged > 0) {
            fprintf(script,
                    "%s$diverged%zu using 1:2 with points pt 2 ps 1.5 lw 2 lt %zu title \"%s\"",
                    separator, i, stroke.colour + 1,
                    count <= KEYS_MAX && !has_curve(setting, curve) ? label : "");
            separator = ", \\\n  ";
        }
        if (!has_curve(setting, curve)) {
            continue;
        }
        if (count <= BANDS_MAX && setting->completed > 1) {
            fprintf(script,
                    "%s$curve%zu using %d:%d:%d with filledcurves lt %zu fs transparent solid "
                    "0.15 notitle",
                    separator, i, curve->x, curve->y + 1, curve->y + 2, stroke.colour + 1);
            separator = ", \\\n  ";
        }
        fprintf(script, "%s$curve%zu using %d:%d with lines lt %zu dt %zu title \"%s\"", separator,
                i, curve->x, curve->y, stroke.colour + 1, stroke.dash + 1,
                count <= KEYS_MAX ? label : "");
        separator = ", \\\n  ";
    }
    fprintf(script, "\n");
    if (strcmp(separator, "plot ") == 0) {
        gnuplot_write_empty(script, "no run was completed");
    }
}

/* Draws one panel: the settings of a series, or all of them. */
typedef void write_panel_fn(FILE *script, const struct sweep_settings *settings,
                            const void *context, size_t series, bool is_alone);

static void write_panels(FILE *script, const struct sweep_settings *settings,
                         write_panel_fn *write_panel, const void *context)
{
    char title[LABEL_BYTES];
    size_t columns = settings->series_count < COLUMNS ? settings->series_count : COLUMNS;
    if (!has_panels(settings)) {
        write_panel(script, settings, context, 0, true);
        return;
    }
    fprintf(script,
            "set key bmargin left vertical maxcols 1 samplen 1.5 font ',10' noenhanced\n"
            "set multiplot layout %zu,%zu\n",
            row_count(settings), columns);
    for (size_t series = 0; series < settings->series_count; series++) {
        series_label(settings, series, title);
        fprintf(script, "set title \"%s\" noenhanced\n", title);
        write_panel(script, settings, context, series, false);
    }
    fprintf(script, "unset multiplot\nunset title\nset key default\n"
                    "set key outside right top noenhanced\n");
}

static void write_curves(FILE *script, const struct sweep_settings *settings,
                         const struct curve_plot *curve)
{
    fprintf(script, "set xlabel '%s'\nset ylabel '%s'\nset yrange [%s]\n", curve->x_title,
            curve->y_title, curve->range);
    if (has_panels(settings)) {
        fprintf(script, "set xtics %.6g\n", sweep_axes_tics(settings, curve->x));
    }
    write_panels(script, settings, write_curve_panel, curve);
    fprintf(script, "set yrange [*:*]\nset xtics autofreq\n");
}

/* ==========================================================================================
 * The others
 * ========================================================================================== */

static void write_target(FILE *script, const struct sweep_settings *settings, const char *what,
                         int column)
{
    char label[LABEL_BYTES];
    fprintf(script,
            "set xlabel 'mean staleness (updates)'\nset ylabel '%s to the target, relative'\n"
            "set yrange [0:*]\nplot 1 with lines lc rgb '#999999' dt 2 notitle",
            what);
    for (size_t series = 0; series < settings->series_count; series++) {
        series_label(settings, series, label);
        fprintf(script,
                ", \\\n  $series%zu using 1:%d with lines lt %zu notitle"
                ", \\\n  $series%zu using 1:%d:%d with yerrorbars pt 7 ps 0.7 lt %zu title \"%s\"",
                series, column, series % RUN_COLOURS + 1, series, column, column + 1,
                series % RUN_COLOURS + 1, label);
    }
    fprintf(script, "\nset yrange [*:*]\n");
}

static void write_staleness_panel(FILE *script, const struct sweep_settings *settings,
                                  const void *context, size_t series, bool is_alone)
{
    char label[LABEL_BYTES];
    const char *separator = "plot ";
    size_t place = 0;
    (void)context;
    for (size_t row = 0; row < settings->count; row++) {
        size_t i = settings->rows[row];
        const struct sweep_setting *setting = &settings->list[i];
        if (setting->completed == 0 || (!is_alone && setting->series_index != series)) {
            continue;
        }
        words_label(is_alone || setting->axis[0] == '\0' ? setting->label : setting->axis, label,
                    sizeof(label));
        // Beside each other, so that none hides another.
        double shift = 0.08 * (double)place;
        const struct run_stroke stroke = stroke_of_place(place++);
        fprintf(script,
                "%s$shares%zu using ($1+%.2f):2 with impulses lw 4 lt %zu dt 1 title \"%s\"",
                separator, i, shift, stroke.colour + 1, label);
        separator = ", \\\n  ";
    }
    fprintf(script, "\n");
    if (place == 0) {
        gnuplot_write_empty(script, "no run was completed");
    }
}

/* The bin that also counts all older gradients, if it is shown; 0 otherwise. */
static size_t capped_bin(const struct sweep_settings *settings)
{
    size_t bin = 0;
    for (size_t i = 0; i < settings->count; i++) {
        const struct sweep_setting *setting = &settings->list[i];
        double before = 0;
        for (size_t k = 0; k < setting->capped_bin; k++) {
            before += setting->shares[k];
        }
        bin = before < SHARES_SHOWN && setting->capped_bin > bin ? setting->capped_bin : bin;
    }
    return bin;
}

static void write_staleness(FILE *script, const struct sweep_settings *settings)
{
    size_t capped = capped_bin(settings);
    fprintf(script, "set xlabel 'staleness (updates)");
    if (capped > 0) {
        fprintf(script, "; what is older than %zu is counted there", capped);
    }
    fprintf(script, "'\nset ylabel 'share of gradients (%%)'\nset yrange [0:*]\n");
    write_panels(script, settings, write_staleness_panel, NULL);
    fprintf(script, "set yrange [*:*]\n");
}

static void write_images(FILE *script, const struct sweep_settings *settings)
{
    bool draws_runs = has_runs(settings);
    fprintf(script,
            "set xlabel ''\nset ylabel 'images per second'\nset yrange [0:*<%.6g]\nset boxwidth "
            "0.6\n"
            "set xtics rotate by -25 noenhanced font ',10'\n"
            "plot $bars using 0:2:4:xtic(1) with boxes lc variable notitle, \\\n"
            "  $bars using 0:($2-$3):(0):(2*$3) with vectors heads size graph 0.008,90 nofilled "
            "lw 2 lc rgb '#333333' notitle%s\n"
            "set xtics norotate font ''\nset yrange [*:*]\n",
            sweep_axes_highest_rate(settings),
            draws_runs ? ", \\\n  $runs using ($1+0.15):2 with points pt 6 ps 0.6 lc rgb '#333333' "
                         "notitle"
                       : "");
}

static void write_plot(FILE *script, const struct plot *plot, const void *context)
{
    const struct plotted *plotted = context;
    const struct sweep_settings *settings = plotted->settings;
    static const struct {
        const char *name;
        struct curve_plot curve;
    } curves[] = {
        {"accuracy-steps", {"step", "test accuracy (%)", 1, COLUMN_ACCURACY, "0:100"}},
        {"accuracy-seconds",
         {"seconds of training", "test accuracy (%)", 2, COLUMN_ACCURACY, "0:100"}},
        // Three times the loss of guessing one of ten: what has diverged is cut off there.
        {"loss-steps", {"step", "training loss (nats)", 1, COLUMN_LOSS, "0:*<6.9"}},
        {"loss-seconds",
         {"seconds of training", "training loss (nats)", 2, COLUMN_LOSS, "0:*<6.9"}},
    };
    for (size_t i = 0; i < sizeof(curves) / sizeof(curves[0]); i++) {
        if (strcmp(plot->name, curves[i].name) == 0) {
            write_curves(script, settings, &curves[i].curve);
        }
    }
    if (strcmp(plot->name, "target-steps") == 0) {
        write_target(script, settings, "steps", 2);
    } else if (strcmp(plot->name, "target-seconds") == 0) {
        write_target(script, settings, "seconds", 4);
    } else if (strcmp(plot->name, "staleness") == 0) {
        write_staleness(script, settings);
    } else if (strcmp(plot->name, "images") == 0) {
        write_images(script, settings);
    } else if (scaling_plots_has(plot)) {
        scaling_plots_write(script, plot, plotted->scaling);
    }
}

static double height(const struct plot *plot, const void *context)
{
    const struct plotted *plotted = context;
    const struct sweep_settings *settings = plotted->settings;
    if (scaling_plots_has(plot)) {
        return plotted->scaling->count > 0 ? 1 : 0;
    }
    bool is_curve = strncmp(plot->name, "accuracy", 8) == 0 || strncmp(plot->name, "loss", 4) == 0;
    if (strncmp(plot->name, "accuracy", 8) == 0 &&
        !sweep_settings_have(settings, MEASURE_ACCURACY)) {
        return 0;
    }
    if (strncmp(plot->name, "target", 6) == 0) {
        return sweep_settings_have(settings, MEASURE_TARGET_STEPS) && has_staleness(settings) ? 1
                                                                                              : 0;
    }
    if (strcmp(plot->name, "staleness") == 0) {
        return has_staleness(settings) ? 0.2 + 0.8 * (double)row_count(settings) : 0;
    }
    return is_curve ? 0.2 + 0.8 * (double)row_count(settings) : 1.1;
}

enum status sweep_plots_write(const char *folder, const struct sweep_settings *settings,
                              const struct run_groups *groups)
{
    struct group_scaling scaling;
    enum status status = group_scaling_of(groups, &scaling);
    if (status != STATUS_OK) {
        return status;
    }
    const struct plotted plotted = {settings, &scaling};
    const struct gnuplot_script script = {
        .plots = sweep_plots,
        .context = &plotted,
        .write_data = write_data,
        .write_plot = write_plot,
        .height = height,
    };
    status = gnuplot_write(folder, &script);
    group_scaling_finish(&scaling);
    return status;
}
