/* The part of the report on what each shard had to do. */
#ifndef DEPLOY_REPORT_HTML_SHARDS_H
#define DEPLOY_REPORT_HTML_SHARDS_H

#include "deploy/report/run_folder.h"

#include <stddef.h>
#include <stdio.h>

/* A row for each shard of each run; nothing if no run had any. */
void html_shards(FILE *page, const struct run_folder *runs, size_t count);

#endif
