/* The part of the report on the critical path. */
#ifndef DEPLOY_PAGE_HTML_CRITICAL_H
#define DEPLOY_PAGE_HTML_CRITICAL_H

#include "deploy/report/run_groups.h"

#include <stdio.h>

/* What limits each run that has a critical_path.json: a sentence, a row of links, each as wide as
 * its share, and their numbers. Nothing if no run has one. */
void html_critical(FILE *page, const struct run_groups *groups);

#endif
