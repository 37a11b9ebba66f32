/* The part of the report on the critical path. */
#ifndef DEPLOY_PAGE_HTML_CRITICAL_H
#define DEPLOY_PAGE_HTML_CRITICAL_H

#include "deploy/report/run_folder.h"

#include <stdbool.h>
#include <stdio.h>

/* What limits a run that has a critical_path.json: a sentence, and a row of links, each as wide as
 * its share; `before` goes before it. False, and nothing, if it has none. */
bool html_critical(FILE *page, const struct run_folder *run, const char *before);

#endif
