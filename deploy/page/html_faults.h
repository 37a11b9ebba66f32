/* The part of the report on faults (--fault). */
#ifndef DEPLOY_PAGE_HTML_FAULTS_H
#define DEPLOY_PAGE_HTML_FAULTS_H

#include "deploy/report/run_folder.h"

#include <stddef.h>
#include <stdio.h>

/* A row for each run that has faults. Nothing if no run has any. It has no heading. */
void html_faults(FILE *page, const struct run_folder *runs, size_t count);

#endif
