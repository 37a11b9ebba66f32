/* report.html: the sections of a page, each a row of a table. */
#ifndef DEPLOY_PAGE_SECTIONS_H
#define DEPLOY_PAGE_SECTIONS_H

#include "common/base/status.h"
#include "deploy/plot/gnuplot.h"
#include "deploy/report/run_groups.h"

#include <stdio.h>

/* What a page shows. All of it is borrowed. */
struct report_page {
    const char *title;
    const char *lead;    // what all runs have in common
    const char *folder;  // of the page, and of the plots
    const char *command; // that repeats it; "" if it is not known
    const struct run_groups *groups;
    const struct plot *plots; // shown where this build has no charts

    /* The table that fits, and what only some look for. */
    void (*write_table)(FILE *page, const void *context);
    void (*write_details)(FILE *page, const void *context);
    const void *context;
};

/* FOLDER/report.html. Logs. */
enum status sections_write(const struct report_page *page);

#endif
