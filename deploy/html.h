/* report.html: one self-contained page. */
#ifndef DEPLOY_HTML_H
#define DEPLOY_HTML_H

#include "common/status.h"
#include "deploy/report.h"

#include <stddef.h>
#include <stdio.h>

/* FOLDER/report.html, with the plots of the folder in it. Logs. */
enum status html_write(const char *folder, const struct report *report);

/* Text as HTML shows it. */
void html_escape(FILE *stream, const char *text);

#endif
