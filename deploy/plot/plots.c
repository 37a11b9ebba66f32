/* Writes gnuplot commands that plot run folders. */
#include "deploy/plot/plots.h"

#include "deploy/plot/scaling_plots.h"
#include "deploy/report/metrics_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_RUNS_MAX   20
#define DIVERGED_BYTES 72 // of a label: the seed, too

const struct plot plots[] = {
    {"loss-steps", "Training loss over steps. Synchronous designs on the same seed lie on each "
                   "other: they compute the same numbers."},
    {"loss-seconds", "Training loss over seconds. Here the faster design is ahead."},
    {"accuracy", "Accuracy on the test set at the end of each epoch."},
    {"images", "Images per second of the whole job, warm-up excluded."},
    {"time", "Where each millisecond of a step went: computing, waiting for the exchange of "
             "gradients, waiting for input."},
    SCALING_PLOTS,
    {NULL, NULL},
};

/* What the data blocks hold; gnuplot refuses to plot nothing. */
struct contents {
    bool has_losses, has_epochs;
};

#define LABEL_BYTES (RUN_WORDS_BYTES + DIVERGED_BYTES)

/* A run as it may stand in a script. */
struct drawn {
    const struct run_folder *run; // borrowed
    char label[LABEL_BYTES];
    struct run_stroke stroke;
};

/* The data of one script. */
struct plotted {
    const struct drawn *runs; // (count)
    size_t count;
    struct contents *contents; // filled with the data
    const struct group_scaling *scaling;
};

/* "ring, seed 2, diverged at step 80" */
static void write_label(const struct run_group *group, const struct run_folder *run,
                        char ret_label[LABEL_BYTES])
{
    unsigned long long step;
    gnuplot_label(group->label, ret_label, RUN_WORDS_BYTES);
    size_t used = strlen(ret_label);
    if (group->count > 1) {
        used += (size_t)snprintf(ret_label + used, LABEL_BYTES - used, ", seed %.0f",
                                 run_folder_number(run, "seed"));
    }
    if (run_folder_has_diverged(run, &step) && used < LABEL_BYTES) {
        snprintf(ret_label + used, LABEL_BYTES - used, ", diverged at step %llu", step);
    }
}

/* Losses of a run, a line for each step: mean over the ranks that reported it. Whether there were
 * any. */
static bool write_losses(FILE *script, const struct run_folder *run, size_t index)
{
    struct metrics_file metrics;
    metrics_file_open(run, &metrics);
    fprintf(script, "$loss%zu << END\n", index);
    bool has_losses = false;
    long long step = -1;
    double loss = 0, seconds = 0;
    unsigned ranks = 0;
    for (bool has_line = true; has_line;) {
        json_t *entry = metrics_file_next(&metrics);
        has_line = entry != NULL;
        long long at = json_integer_value(json_object_get(entry, "step"));
        if (ranks > 0 && (entry == NULL || at != step)) {
            fprintf(script, "%lld %.6g %.6g\n", step, seconds, loss / ranks);
            has_losses = true;
            loss = 0;
            ranks = 0;
        }
        if (json_is_number(json_object_get(entry, "loss"))) { // else it computed none
            step = at;
            loss += json_number_value(json_object_get(entry, "loss"));
            seconds = json_number_value(json_object_get(entry, "seconds"));
            ranks++;
        }
        json_decref(entry);
    }
    fprintf(script, "END\n");
    metrics_file_close(&metrics);
    return has_losses;
}

/* Steps of an epoch; 0 if that is not known. */
static double steps_per_epoch(const struct run_folder *run)
{
    double samples = json_number_value(json_object_get(run->job, "train_samples"));
    double batch = run_folder_number(run, "global_batch");
    return batch > 0 ? floor(samples / batch) : 0;
}

/* Whether there were any. */
static bool write_epochs(FILE *script, const struct run_folder *run, size_t index)
{
    bool has_epochs = false;
    double per_epoch = steps_per_epoch(run);
    const json_t *epochs = run_folder_epochs(run), *epoch;
    size_t i;
    fprintf(script, "$epochs%zu << END\n", index);
    json_array_foreach(epochs, i, epoch)
    {
        const json_t *accuracy = json_object_get(epoch, "test_accuracy");
        double step = json_number_value(json_object_get(epoch, "step"));
        if (json_is_number(accuracy)) {
            fprintf(script, "%.6g %.6g\n",
                    per_epoch > 0 && step > 0 ? step / per_epoch : (double)(i + 1),
                    100 * json_number_value(accuracy));
            has_epochs = true;
        }
    }
    fprintf(script, "END\n");
    return has_epochs;
}

/* Label, images per second, the parts of a step, and the colour. */
static void write_bars(FILE *script, const struct drawn *runs, size_t count)
{
    fprintf(script, "$bars << END\n");
    for (size_t i = 0; i < count; i++) {
        const struct run_folder *run = runs[i].run;
        fprintf(script, "\"%s\" %.0f %.6g %.6g %.6g %zu\n", runs[i].label,
                run_folder_number(run, "images_per_second"),
                run_folder_number(run, "ms_per_step.compute"),
                run_folder_number(run, "ms_per_step.exchange_wait"),
                run_folder_number(run, "ms_per_step.input_wait"), runs[i].stroke.colour + 1);
    }
    fprintf(script, "END\n");
}

/* "plot $block0 using ... title ..., ..." over all runs. */
static void write_lines(FILE *script, const char *block, const char *columns, const char *with,
                        const struct drawn *runs, size_t count)
{
    fprintf(script, "plot ");
    for (size_t i = 0; i < count; i++) {
        fprintf(script, "%s$%s%zu using %s %s lt %zu dt %zu title \"%s\"", i > 0 ? ", \\\n  " : "",
                block, i, columns, with, runs[i].stroke.colour + 1, runs[i].stroke.dash + 1,
                runs[i].label);
    }
    fprintf(script, "\n");
}

static void write_losses_plot(FILE *script, const char *axis, const char *columns,
                              const struct plotted *plotted)
{
    fprintf(script, "set xlabel '%s'\nset ylabel 'training loss (nats)'\n", axis);
    if (plotted->contents->has_losses) {
        write_lines(script, "loss", columns, "smooth unique with lines", plotted->runs,
                    plotted->count);
    } else {
        gnuplot_write_empty(script, "no run has reported a loss");
    }
}

static void write_accuracy_plot(FILE *script, const struct plotted *plotted)
{
    fprintf(script, "set xlabel 'epoch'\nset ylabel 'test accuracy (%%)'\n");
    if (plotted->contents->has_epochs) {
        write_lines(script, "epochs", "1:2", "with linespoints pt 7 ps 0.7", plotted->runs,
                    plotted->count);
    } else {
        gnuplot_write_empty(script, "no run was evaluated");
    }
}

static void write_plot(FILE *script, const struct plot *plot, const void *context)
{
    const struct plotted *plotted = context;
    const char *name = plot->name;
    if (scaling_plots_has(plot)) {
        scaling_plots_write(script, plot, plotted->scaling);
    } else if (strcmp(name, "loss-steps") == 0) {
        write_losses_plot(script, "step", "1:3", plotted);
    } else if (strcmp(name, "loss-seconds") == 0) {
        write_losses_plot(script, "seconds", "2:3", plotted);
    } else if (strcmp(name, "accuracy") == 0) {
        write_accuracy_plot(script, plotted);
    } else if (strcmp(name, "images") == 0) {
        fprintf(script, "set xlabel ''\nset ylabel 'images per second'\n"
                        "set yrange [0:*]\nset boxwidth 0.6\nset xtics rotate by -20 noenhanced\n"
                        "plot $bars using 0:2:6:xtic(1) with boxes lc variable notitle, \\\n"
                        "  $bars using 0:2:2 with labels offset 0,0.7 notitle\n"
                        "set xtics norotate\nset yrange [*:*]\n");
    } else {
        fprintf(script,
                "set xlabel ''\nset ylabel 'milliseconds per step'\nset yrange [0:*]\n"
                "set xtics rotate by -20 noenhanced\n"
                "set style data histograms\nset style histogram rowstacked\n"
                "plot $bars using 3:xtic(1) lt 1 title 'computing', $bars using 4 lt 2 title "
                "'exchange wait', $bars using 5 lt 3 title 'input wait'\n"
                "unset style histogram\nset style data points\nset yrange [*:*]\n"
                "set xtics norotate\n");
    }
}

static void write_data(FILE *script, const void *context)
{
    const struct plotted *plotted = context;
    for (size_t i = 0; i < plotted->count; i++) {
        bool has_losses = write_losses(script, plotted->runs[i].run, i);
        bool has_epochs = write_epochs(script, plotted->runs[i].run, i);
        plotted->contents->has_losses = has_losses || plotted->contents->has_losses;
        plotted->contents->has_epochs = has_epochs || plotted->contents->has_epochs;
    }
    write_bars(script, plotted->runs, plotted->count);
    scaling_plots_write_data(script, plotted->scaling);
    if (plotted->count > KEY_RUNS_MAX) {
        fprintf(script, "unset key\n"); // a legend that long leaves no room for the curves
    }
}

static double height(const struct plot *plot, const void *context)
{
    const struct plotted *plotted = context;
    return scaling_plots_has(plot) && plotted->scaling->count == 0 ? 0 : 1;
}

enum status plots_write(const char *folder, const struct run_groups *groups)
{
    struct contents contents = {false, false};
    struct drawn *runs = calloc(groups->run_count + 1, sizeof(*runs));
    size_t count = 0;
    struct group_scaling scaling;
    if (runs == NULL || group_scaling_of(groups, &scaling) != STATUS_OK) {
        free(runs);
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < groups->count; i++) {
        const struct run_group *group = &groups->list[i];
        for (size_t k = 0; k < group->count && count < groups->run_count; k++) {
            runs[count] = (struct drawn){.run = group->runs[k], .stroke = group->stroke};
            write_label(group, group->runs[k], runs[count++].label);
        }
    }
    const struct plotted plotted = {runs, count, &contents, &scaling};
    const struct gnuplot_script script = {
        .plots = plots,
        .context = &plotted,
        .write_data = write_data,
        .write_plot = write_plot,
        .height = height,
    };
    enum status status = gnuplot_write(folder, &script);
    group_scaling_finish(&scaling);
    free(runs);
    return status;
}
