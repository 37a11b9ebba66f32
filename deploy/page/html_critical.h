/* The part of the report on the critical path. */
#ifndef DEPLOY_PAGE_HTML_CRITICAL_H
#define DEPLOY_PAGE_HTML_CRITICAL_H

#include "deploy/report/run_folder.h"

#include <stddef.h>
#include <stdio.h>

/* For each run that has a critical_path.json: a row of links, each as wide as its share, and a
 * sentence. Nothing if no run has one. It has no heading. */
void html_critical(FILE *page, const struct run_folder *runs, size_t count);

#endif
