/* gnuplot scripts from run folders.
 *
 * The data go into the script itself, as named blocks, so that a plot needs no other file. */
#include "deploy/plots.h"

#include "common/log.h"
#include "deploy/process_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCRIPT_NAME "plots.gnuplot"

#define KEY_RUNS_MAX 20

const struct plot plots[] = {
    {"loss-steps", "Training loss over steps. Synchronous designs on the same seed lie on each "
                   "other: they compute the same numbers."},
    {"loss-seconds", "Training loss over seconds. Here the faster design is ahead."},
    {"accuracy", "Accuracy on the test set at the end of each epoch."},
    {"images", "Images per second of the whole job, warm-up excluded."},
    {"time", "Where each millisecond of a step went: computing, waiting for the exchange of "
             "gradients, waiting for input."},
    {NULL, NULL},
};

// Okabe and Ito's colours, which are told apart by colour-blind readers as well.
static const char style[] =
    "set grid back lc rgb '#dddddd'\n"
    "set border 3 lc rgb '#666666'\n"
    "set tics nomirror out\n"
    "set linetype 1 lc rgb '#0072B2' lw 2\nset linetype 2 lc rgb '#E69F00' lw 2\n"
    "set linetype 3 lc rgb '#009E73' lw 2\nset linetype 4 lc rgb '#CC79A7' lw 2\n"
    "set linetype 5 lc rgb '#56B4E9' lw 2\nset linetype 6 lc rgb '#D55E00' lw 2\n"
    "set linetype 7 lc rgb '#000000' lw 2\nset linetype cycle 7\n"
    "set key outside right top noenhanced\n";

/* A run's label as it may stand in a script: quotes and backquotes mean something to gnuplot, and a
 * summary may come from anywhere. */
static const char *plain_label(const struct run_folder *run)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789 ,=.:_-";
    static char label[sizeof(run->label)];
    snprintf(label, sizeof(label), "%s", run->label);
    for (char *at = label; *at != '\0'; at++) {
        if (strchr(plain, *at) == NULL) {
            *at = '_';
        }
    }
    return label;
}

/* Losses of a run, a line for each step: mean over the ranks that reported it. Whether there were
 * any. */
static bool write_losses(FILE *script, const struct run_folder *run, size_t index)
{
    char path[RUN_FOLDER_PATH_MAX + 32], line[4096];
    snprintf(path, sizeof(path), "%s/metrics.jsonl", run->path);
    FILE *file = fopen(path, "re");
    fprintf(script, "$loss%zu << END\n", index);
    bool has_losses = false;
    long long step = -1;
    double loss = 0, seconds = 0;
    unsigned ranks = 0;
    for (bool has_line = true; has_line;) {
        has_line = file != NULL && fgets(line, sizeof(line), file) != NULL;
        json_t *entry = has_line ? json_loads(line, 0, NULL) : NULL;
        long long at = json_integer_value(json_object_get(entry, "step"));
        if (ranks > 0 && (entry == NULL || at != step)) {
            fprintf(script, "%lld %.6g %.6g\n", step, seconds, loss / ranks);
            has_losses = true;
            loss = 0;
            ranks = 0;
        }
        if (entry != NULL) {
            step = at;
            loss += json_number_value(json_object_get(entry, "loss"));
            seconds = json_number_value(json_object_get(entry, "seconds"));
            ranks++;
        }
        json_decref(entry);
    }
    fprintf(script, "END\n");
    if (file != NULL) {
        fclose(file);
    }
    return has_losses;
}

/* Whether there were any. */
static bool write_epochs(FILE *script, const struct run_folder *run, size_t index)
{
    bool has_epochs = false;
    const json_t *epochs = json_object_get(run->summary, "epochs"), *epoch;
    size_t i;
    fprintf(script, "$epochs%zu << END\n", index);
    json_array_foreach(epochs, i, epoch)
    {
        const json_t *accuracy = json_object_get(epoch, "test_accuracy");
        if (json_is_number(accuracy)) {
            fprintf(script, "%zu %.6g\n", i + 1, 100 * json_number_value(accuracy));
            has_epochs = true;
        }
    }
    fprintf(script, "END\n");
    return has_epochs;
}

static void write_bars(FILE *script, const struct run_folder *runs, size_t count)
{
    fprintf(script, "$bars << END\n");
    for (size_t i = 0; i < count; i++) {
        fprintf(script, "\"%s\" %.0f %.6g %.6g %.6g\n", plain_label(&runs[i]),
                run_folder_number(&runs[i], "images_per_second"),
                run_folder_number(&runs[i], "ms_per_step.compute"),
                run_folder_number(&runs[i], "ms_per_step.exchange_wait"),
                run_folder_number(&runs[i], "ms_per_step.input_wait"));
    }
    fprintf(script, "END\n");
}

/* What the data blocks hold; gnuplot refuses to plot nothing. */
struct contents {
    bool has_losses, has_epochs;
};

static void write_empty(FILE *script, const char *why)
{
    fprintf(script,
            "set label 1 '%s' at graph 0.5, 0.5 center\nplot [0:1][0:100] NaN notitle\n"
            "unset label 1\n",
            why);
}

/* "plot $block0 using ... title ..., ..." over all runs. */
static void write_lines(FILE *script, const char *block, const char *columns, const char *with,
                        const struct run_folder *runs, size_t count)
{
    fprintf(script, "plot ");
    for (size_t i = 0; i < count; i++) {
        fprintf(script, "%s$%s%zu using %s with %s lt %zu title \"%s\"", i > 0 ? ", \\\n  " : "",
                block, i, columns, with, i + 1, plain_label(&runs[i]));
    }
    fprintf(script, "\n");
}

static void write_losses_plot(FILE *script, const char *axis, const char *columns,
                              const struct contents *contents, const struct run_folder *runs,
                              size_t count)
{
    fprintf(script, "set xlabel '%s'\nset ylabel 'training loss (nats)'\n", axis);
    if (contents->has_losses) {
        write_lines(script, "loss", columns, "lines", runs, count);
    } else {
        write_empty(script, "no run has reported a loss");
    }
}

static void write_accuracy_plot(FILE *script, const struct contents *contents,
                                const struct run_folder *runs, size_t count)
{
    fprintf(script, "set xlabel 'epoch'\nset ylabel 'test accuracy (%%)'\nset xtics 1\n");
    if (contents->has_epochs) {
        write_lines(script, "epochs", "1:2", "linespoints pt 7 ps 0.7", runs, count);
    } else {
        write_empty(script, "no run was evaluated");
    }
    fprintf(script, "set xtics autofreq\n");
}

static void write_plot(FILE *script, const char *name, const struct contents *contents,
                       const struct run_folder *runs, size_t count)
{
    if (strcmp(name, "loss-steps") == 0) {
        write_losses_plot(script, "step", "1:3", contents, runs, count);
    } else if (strcmp(name, "loss-seconds") == 0) {
        write_losses_plot(script, "seconds", "2:3", contents, runs, count);
    } else if (strcmp(name, "accuracy") == 0) {
        write_accuracy_plot(script, contents, runs, count);
    } else if (strcmp(name, "images") == 0) {
        fprintf(script,
                "set xlabel ''\nset ylabel 'images per second'\nset yrange [0:*]\n"
                "set style fill solid 0.9\nset boxwidth 0.6\nset xtics rotate by -20 noenhanced\n"
                "plot $bars using 0:2:($0+1):xtic(1) with boxes lc variable notitle, \\\n"
                "  $bars using 0:2:2 with labels offset 0,0.7 notitle\n");
    } else {
        fprintf(script, "set ylabel 'milliseconds per step'\nset yrange [0:*]\n"
                        "set style data histograms\nset style histogram rowstacked\n"
                        "plot $bars using 3:xtic(1) lt 1 title 'compute', $bars using 4 lt 2 title "
                        "'exchange wait', $bars using 5 lt 3 title 'input wait'\n"
                        "unset style histogram\nset style data points\nset yrange [*:*]\n");
    }
}

static enum status write_script(const char *path, const char *folder, const struct run_folder *runs,
                                size_t count)
{
    static const struct {
        const char *ending, *terminal;
    } formats[] = {
        {"svg", "svg size 860,420 dynamic font 'sans-serif,13' background rgb 'white'"},
        {"png", "pngcairo size 1290,630 font 'sans,17' background rgb 'white'"},
    };
    FILE *script = fopen(path, "we");
    if (script == NULL) {
        log_error("cannot write %s: %m", path);
        return STATUS_IO;
    }
    fputs(style, script);
    struct contents contents = {false, false};
    for (size_t i = 0; i < count; i++) {
        contents.has_losses = write_losses(script, &runs[i], i) || contents.has_losses;
        contents.has_epochs = write_epochs(script, &runs[i], i) || contents.has_epochs;
    }
    write_bars(script, runs, count);
    if (count > KEY_RUNS_MAX) {
        fprintf(script, "unset key\n"); // a legend that long leaves no room for the curves
    }
    for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++) {
        fprintf(script, "set terminal %s\nset xtics norotate\n", formats[f].terminal);
        for (size_t i = 0; plots[i].name != NULL; i++) {
            fprintf(script, "set output \"%s/%s.%s\"\n", folder, plots[i].name, formats[f].ending);
            write_plot(script, plots[i].name, &contents, runs, count);
        }
    }
    bool is_written = ferror(script) == 0;
    is_written = fclose(script) == 0 && is_written;
    if (!is_written) {
        log_error("cannot write %s: %m", path);
    }
    return is_written ? STATUS_OK : STATUS_IO;
}

enum status plots_write(const char *folder, const struct run_folder *runs, size_t count)
{
    char path[RUN_FOLDER_PATH_MAX + 32], output[4096];
    if (strpbrk(folder, "\"\\`\n") != NULL) {
        printf("no plots: gnuplot cannot write to a folder with such a name\n");
        return STATUS_OK;
    }
    snprintf(path, sizeof(path), "%.4000s/%s", folder, SCRIPT_NAME);
    enum status status = write_script(path, folder, runs, count);
    if (status != STATUS_OK) {
        return status;
    }
    const char *const argv[] = {"gnuplot", path, NULL};
    const struct process_run_options options = {.argv = argv, .input = "", .takes_errors = true};
    int code = 0;
    status = process_run(&options, output, sizeof(output), &code);
    if (status == STATUS_INTERRUPTED) {
        unlink(path);
        return status;
    }
    if (status == STATUS_OK && code == 127) {
        printf("no plots: gnuplot is not installed (package gnuplot-nox)\n");
    } else if (status != STATUS_OK || code != 0) {
        // The script stays: it is what one needs to find out why.
        printf("no plots, or not all: gnuplot refused %s:\n%s\n", path, output);
        return STATUS_OK;
    }
    unlink(path);
    return STATUS_OK;
}
