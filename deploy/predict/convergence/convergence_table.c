/* Cuts lines of tables into values. */
#include "deploy/predict/convergence/convergence_table.h"

#include <string.h>

static bool add_character(char *value, size_t *size, char character)
{
    if (*size + 1 >= TABLE_VALUE_BYTES) {
        return false;
    }
    value[(*size)++] = character;
    value[*size] = '\0';
    return true;
}

/* A value from *at on, which is behind it afterwards: at a comma, or at the end. */
static bool take_value(const char **at, char *value)
{
    size_t size = 0;
    bool is_quoted = **at == '"';
    value[0] = '\0';
    *at += is_quoted;
    for (;; (*at)++) {
        if (is_quoted && **at == '"' && (*at)[1] == '"') {
            (*at)++; // stands for one
        } else if (is_quoted && **at == '"') {
            (*at)++;
            return **at == ',' || **at == '\0';
        } else if (**at == '\0') {
            return !is_quoted;
        } else if (!is_quoted && **at == ',') {
            return true;
        }
        if (!add_character(value, &size, **at)) {
            return false;
        }
    }
}

bool table_line_parse(const char *text, struct table_line *ret_line)
{
    ret_line->count = 0;
    for (const char *at = text;; at++) {
        if (ret_line->count == TABLE_VALUES_MAX ||
            !take_value(&at, ret_line->values[ret_line->count])) {
            return false;
        }
        ret_line->count++;
        if (*at == '\0') {
            return true;
        }
    }
}

const char *table_line_value(const struct table_line *headings, const struct table_line *line,
                             const char *heading)
{
    for (size_t i = 0; i < headings->count; i++) {
        if (strcmp(headings->values[i], heading) == 0) {
            return i < line->count ? line->values[i] : "";
        }
    }
    return NULL;
}
