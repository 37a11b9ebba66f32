/* report.html: one self-contained page. */
#ifndef DEPLOY_REPORT_HTML_H
#define DEPLOY_REPORT_HTML_H

#include "common/base/status.h"
#include "deploy/report/gnuplot.h"
#include "deploy/report/report.h"
#include "deploy/report/run_folder.h"

#include <stddef.h>
#include <stdio.h>

/* FOLDER/report.html, with the plots of the folder in it. Logs. */
enum status html_write(const char *folder, const struct report *report);

/* Parts of such a page. The end says how to reproduce it, and on which machine it was made. */
void html_begin(FILE *page, const char *title);
void html_plot(FILE *page, const char *folder,
               const struct plot *plot); // nothing if it has no file
void html_end(FILE *page, const char *command);

/* How a run that was not completed has ended, and why. */
void html_ending(FILE *page, const char *name, const struct run_folder *run);

/* Text as HTML shows it. */
void html_escape(FILE *stream, const char *text);

#endif
