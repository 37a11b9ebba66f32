/* Plots of runs, by gnuplot: FOLDER/NAME.svg and FOLDER/NAME.png. */
#ifndef DEPLOY_PLOTS_H
#define DEPLOY_PLOTS_H

#include "common/status.h"
#include "deploy/run_folder.h"

#include <stddef.h>

struct plot {
    const char *name;    // of the file
    const char *caption; // how to read it
};

extern const struct plot plots[]; // ends with a row whose name is NULL

/* Without gnuplot: a line on standard output, and STATUS_OK. */
enum status plots_write(const char *folder, const struct run_folder *runs, size_t count);

#endif
