/* How the settings of a report are drawn: their colours and dashes. Pure. */
#ifndef DEPLOY_REPORT_RUN_STROKES_H
#define DEPLOY_REPORT_RUN_STROKES_H

#include <stdbool.h>
#include <stddef.h>

#define RUN_COLOURS 7 // of page.css, and of gnuplot.c
#define RUN_DASHES  4 // of page.js, and of gnuplot

/* From 0. */
struct run_stroke {
    size_t colour, dash;
};

/* The strokes of settings, by the ranks of their modes. Returns whether each mode has the colour
 * that it has in every report. Otherwise each setting has one of its own: where there is one mode
 * only, or more settings of one than there are dashes. */
bool run_strokes_choose(const size_t *mode_ranks, size_t count, struct run_stroke *ret_strokes);

#endif
