/* Tables of comma-separated values (RFC 4180), a line at a time. Pure. */
#ifndef DEPLOY_PREDICT_CONVERGENCE_CONVERGENCE_TABLE_H
#define DEPLOY_PREDICT_CONVERGENCE_CONVERGENCE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#define TABLE_LINE_BYTES  8192
#define TABLE_VALUES_MAX  64
#define TABLE_VALUE_BYTES 320

struct table_line {
    char values[TABLE_VALUES_MAX][TABLE_VALUE_BYTES];
    size_t count;
};

/* A line without its end. False if a quote does not end, or if there is no room. */
bool table_line_parse(const char *text, struct table_line *ret_line);

/* The value of a column by its heading; NULL if the table has no such column. "" where the line is
 * shorter. */
const char *table_line_value(const struct table_line *headings, const struct table_line *line,
                             const char *heading);

#endif
