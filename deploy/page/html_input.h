/* The part of the report on what input costs. */
#ifndef DEPLOY_PAGE_HTML_INPUT_H
#define DEPLOY_PAGE_HTML_INPUT_H

#include "deploy/report/input_gap.h"

#include <stdio.h>

/* A row for each gap. Nothing if there is none. It has no heading. */
void html_input_gaps(FILE *page, const struct input_gaps *gaps);

#endif
