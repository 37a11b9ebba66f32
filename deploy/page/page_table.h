/* The tables of a report of run folders: a row for each setting, with the columns that say
 * something; and, folded, a row for each run with all columns. */
#ifndef DEPLOY_PAGE_PAGE_TABLE_H
#define DEPLOY_PAGE_PAGE_TABLE_H

#include "deploy/report/run_groups.h"

#include <stdio.h>

void page_table_write(FILE *page, const struct run_groups *groups);
void page_table_write_full(FILE *page, const struct run_groups *groups);

#endif
