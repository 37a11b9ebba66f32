/* Tables of runs: CSV with every key of the summary, Markdown and plain text with what matters. */
#ifndef DEPLOY_REPORT_TABLE_H
#define DEPLOY_REPORT_TABLE_H

#include "common/base/status.h"
#include "deploy/report/run_folder.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* FOLDER/table.csv and FOLDER/table.md. Logs. */
enum status table_write(const char *folder, const struct run_folder *runs, size_t count);

/* The same as table.md, aligned, for the terminal. */
void table_print(FILE *stream, const struct run_folder *runs, size_t count);

/* A sentence for each number of workers: whether the designs ended with the same parameters; and
 * one for each run that had a straggler. */
void table_print_verdicts(FILE *stream, const struct run_folder *runs, size_t count);

/* Whether the two must end with the same bits: both were completed, in synchronous designs, with
 * the same job but for the design. */
bool table_is_comparable(const struct run_folder *a, const struct run_folder *b);

/* A value quoted for CSV (RFC 4180) if it needs to be. */
void table_write_csv_value(FILE *stream, const char *value);

/* What the short tables show. `index` from 0; NULL behind the last. */
const char *table_heading(size_t index);

/* Whether it says something of a run alone: predictions are there if compare made some. Data and
 * seed only tell the runs of a table apart. */
bool table_shows(const struct run_folder *run, size_t index);
void table_cell(const struct run_folder *runs, size_t run, size_t index, char *ret_text,
                size_t text_size);

#endif
