/* Plots by gnuplot: one script for a list of plots, each as FOLDER/NAME.svg and FOLDER/NAME.png. */
#ifndef DEPLOY_PLOT_GNUPLOT_H
#define DEPLOY_PLOT_GNUPLOT_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdio.h>

struct plot {
    const char *name;    // of the file
    const char *caption; // how to read it
};

struct gnuplot_script {
    const struct plot *plots; // ends with a row whose name is NULL
    const void *context;

    /* Data blocks, which all plots read, so that a plot needs no other file. */
    void (*write_data)(FILE *script, const void *context);

    /* The commands of one plot. What they set must not outlive them. */
    void (*write_plot)(FILE *script, const struct plot *plot, const void *context);

    /* How many times as high as the others a plot is; 0: it is left out. NULL: all are alike. */
    double (*height)(const struct plot *plot, const void *context);
};

/* Without gnuplot: a line on standard output, and STATUS_OK. Logs. */
enum status gnuplot_write(const char *folder, const struct gnuplot_script *script);

/* A label as it may stand in a script, cut at label_size: quotes and backquotes mean something to
 * gnuplot, and a summary may come from anywhere. */
void gnuplot_label(const char *text, char *ret_label, size_t label_size);

/* A plot that says why there is nothing to plot, which gnuplot refuses. */
void gnuplot_write_empty(FILE *script, const char *why);

#endif
