/* Runs gnuplot on a script that is written for it, and removed afterwards. */
#include "deploy/plot/gnuplot.h"

#include "common/base/log.h"
#include "common/base/new_file.h"
#include "deploy/system/process_run.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SCRIPT_NAME "plots.gnuplot"
#define PATH_BYTES  4200

// Okabe and Ito's colours, which are told apart by colour-blind readers as well, as page.css has
// them: a run_stroke's colour, and one.
static const char style[] =
    "set grid back lc rgb '#b8b8b8'\n"
    "set border 3 lw 1.5 lc rgb '#222222'\n"
    "set tics nomirror out\n"
    "set linetype 1 lc rgb '#0072B2' lw 3\nset linetype 2 lc rgb '#D98200' lw 3\n"
    "set linetype 3 lc rgb '#009E73' lw 3\nset linetype 4 lc rgb '#C0609A' lw 3\n"
    "set linetype 5 lc rgb '#3C9BD6' lw 3\nset linetype 6 lc rgb '#D55E00' lw 3\n"
    "set linetype 7 lc rgb '#1B1F24' lw 3\n"
    "set style fill solid 0.9 noborder\n"
    "set key outside right top noenhanced\n";

void gnuplot_label(const char *text, char *ret_label, size_t label_size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789 ,=.:_-|";
    snprintf(ret_label, label_size, "%s", text);
    for (char *at = ret_label; *at != '\0'; at++) {
        if (strchr(plain, *at) == NULL) {
            *at = '_';
        }
    }
}

void gnuplot_write_empty(FILE *script, const char *why)
{
    fprintf(script,
            "set label 1 '%s' at graph 0.5, 0.5 center\nplot [0:1][0:100] NaN notitle\n"
            "unset label 1\n",
            why);
}

static void write_terminal(FILE *stream, const char *ending, double height)
{
    if (strcmp(ending, "svg") == 0) {
        fprintf(stream,
                "set terminal svg size 1080,%.0f dynamic font 'sans-serif,16' background rgb "
                "'white'\n",
                540 * height);
    } else {
        fprintf(stream,
                "set terminal pngcairo size 1620,%.0f font 'sans,21' background rgb 'white'\n",
                810 * height);
    }
}

static enum status write_script(const char *path, const char *folder,
                                const struct gnuplot_script *script)
{
    static const char *const endings[] = {"svg", "png"};
    FILE *stream = new_file_stream(path, true);
    if (stream == NULL) {
        log_error("cannot write %s: %m", path);
        return STATUS_IO;
    }
    fputs(style, stream);
    script->write_data(stream, script->context);
    for (size_t f = 0; f < sizeof(endings) / sizeof(endings[0]); f++) {
        for (const struct plot *plot = script->plots; plot->name != NULL; plot++) {
            double height = script->height != NULL ? script->height(plot, script->context) : 1;
            if (height > 0) {
                write_terminal(stream, endings[f], height);
                fprintf(stream, "set output \"%s/%s.%s\"\n", folder, plot->name, endings[f]);
                script->write_plot(stream, plot, script->context);
            }
        }
    }
    bool is_written = ferror(stream) == 0;
    is_written = fclose(stream) == 0 && is_written;
    if (!is_written) {
        log_error("cannot write %s: %m", path);
    }
    return is_written ? STATUS_OK : STATUS_IO;
}

/* Plots of an earlier time, of which this one may have fewer. */
static void remove_plots(const char *folder, const struct plot *plots)
{
    char path[PATH_BYTES + 64];
    for (; plots->name != NULL; plots++) {
        snprintf(path, sizeof(path), "%.4000s/%s.svg", folder, plots->name);
        unlink(path);
        snprintf(path, sizeof(path), "%.4000s/%s.png", folder, plots->name);
        unlink(path);
    }
}

enum status gnuplot_write(const char *folder, const struct gnuplot_script *script)
{
    char path[PATH_BYTES], output[4096];
    remove_plots(folder, script->plots);
    if (strpbrk(folder, "\"\\`\n") != NULL) {
        printf("no plots: the folder's name contains a character that gnuplot cannot write\n");
        return STATUS_OK;
    }
    snprintf(path, sizeof(path), "%.4000s/%s", folder, SCRIPT_NAME);
    enum status status = write_script(path, folder, script);
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
