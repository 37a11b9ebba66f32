/* Values of options: set from text, written as text, checked against their rows. */
#include "common/options.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX         256
#define NAME_LENGTH_MAX   64 // longer names are near to nothing
#define NEAR_DISTANCE_MAX 3

static char *field_of(const struct option *row, void *values)
{
    return (char *)values + row->offset;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

/* Insertions, deletions, substitutions and swaps of neighbours between a and b (optimal string
 * alignment), by its recurrence over three rows. */
static unsigned edit_distance(const char *a, const char *b)
{
    size_t a_size = strlen(a), b_size = strlen(b);
    unsigned rows[3][NAME_LENGTH_MAX + 1];
    if (a_size > NAME_LENGTH_MAX || b_size > NAME_LENGTH_MAX) {
        return UINT32_MAX;
    }
    for (size_t j = 0; j <= b_size; j++) {
        rows[0][j] = (unsigned)j;
    }
    for (size_t i = 1; i <= a_size; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *before = rows[(i + 2) % 3], *twice_before = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_size; j++) {
            row[j] = min3(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1]));
            bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (is_swap && twice_before[j - 2] + 1 < row[j]) {
                row[j] = twice_before[j - 2] + 1;
            }
        }
    }
    return rows[a_size % 3][b_size];
}

const char *options_nearest(const char *name, const char *const *names, size_t count)
{
    const char *nearest = NULL;
    unsigned least = NEAR_DISTANCE_MAX + 1;
    for (size_t i = 0; i < count; i++) {
        unsigned distance = edit_distance(name, names[i]);
        // The beginning of a name is near to it, however long it is.
        size_t size = strlen(name);
        if (size >= 3 && strncmp(names[i], name, size) == 0) {
            distance = distance < 2 ? distance : 2;
        }
        // Of two that are equally near, the one of the same length: letters are swapped more often
        // than they are lost. Nothing is near to a name that it shares no letter with.
        bool is_nearer = distance < least || (distance == least && strlen(names[i]) == size);
        if (is_nearer && distance < strlen(names[i])) {
            least = distance;
            nearest = names[i];
        }
    }
    return nearest;
}

static bool parse_flag(const char *text, bool *ret_value)
{
    if (strcmp(text, "true") == 0 || strcmp(text, "1") == 0 || strcmp(text, "yes") == 0) {
        *ret_value = true;
        return true;
    }
    *ret_value = false;
    return strcmp(text, "false") == 0 || strcmp(text, "0") == 0 || strcmp(text, "no") == 0;
}

static bool parse_whole(const char *text, uint64_t *ret_value)
{
    if (text[0] == '\0' || strspn(text, "0123456789") != strlen(text)) {
        return false;
    }
    errno = 0;
    *ret_value = strtoull(text, NULL, 10);
    return errno == 0;
}

static bool parse_real(const char *text, double *ret_value)
{
    // Plain decimals only: strtod would take "inf", "nan" and hexadecimals as well.
    if (text[0] == '\0' || strspn(text, "0123456789.eE+-") != strlen(text)) {
        return false;
    }
    char *end;
    *ret_value = strtod(text, &end);
    return *end == '\0' && end != text && isfinite(*ret_value);
}

static enum status refuse_range(const struct option *row, const char *value, char *ret_error,
                                size_t error_size)
{
    bool is_real = row->type == OPTION_REAL;
    snprintf(ret_error, error_size, "%s is '%.60s', but must be a %snumber from %.12g to %.12g",
             row->name, value, is_real ? "" : "whole ", row->min, row->max);
    return STATUS_INVALID;
}

static enum status set_number(const struct option *row, void *values, const char *value,
                              char *ret_error, size_t error_size)
{
    char *field = field_of(row, values);
    uint64_t whole = 0;
    double real = 0;
    bool is_number =
        row->type == OPTION_REAL ? parse_real(value, &real) : parse_whole(value, &whole);
    if (row->type != OPTION_REAL) {
        real = (double)whole;
    }
    if (!is_number || real < row->min || real > row->max) {
        return refuse_range(row, value, ret_error, error_size);
    }
    if (row->type == OPTION_REAL) {
        memcpy(field, &real, sizeof(real));
    } else if (row->type == OPTION_U32) {
        uint32_t narrow = (uint32_t)whole;
        memcpy(field, &narrow, sizeof(narrow));
    } else {
        memcpy(field, &whole, sizeof(whole));
    }
    return STATUS_OK;
}

/* Writes the choices of a row, and the nearest to `value` if there is one. */
static enum status refuse_choice(const struct option *row, const char *value, char *ret_error,
                                 size_t error_size)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    int used = snprintf(ret_error, error_size, "there is no %s '%.60s'", row->name, value);
    for (; row->choices[count].name != NULL && count < NAMES_MAX; count++) {
        names[count] = row->choices[count].name;
    }
    const char *nearest = options_nearest(value, names, count);
    if (nearest != NULL) {
        used +=
            snprintf(ret_error + used, error_size - (size_t)used, "; did you mean %s?", nearest);
    }
    used += snprintf(ret_error + used, error_size - (size_t)used, " (one of");
    for (size_t i = 0; i < count && (size_t)used < error_size; i++) {
        used += snprintf(ret_error + used, error_size - (size_t)used, "%s %s", i > 0 ? "," : "",
                         names[i]);
    }
    if ((size_t)used < error_size) {
        snprintf(ret_error + used, error_size - (size_t)used, ")");
    }
    return STATUS_INVALID;
}

static bool is_choice(const struct option *row, const char *value)
{
    for (size_t i = 0; row->choices[i].name != NULL; i++) {
        if (strcmp(row->choices[i].name, value) == 0) {
            return true;
        }
    }
    return false;
}

static enum status set_text(const struct option *row, void *values, const char *value,
                            char *ret_error, size_t error_size)
{
    char why[OPTION_ERROR_BYTES / 2];
    if (row->type == OPTION_CHOICE && !is_choice(row, value)) {
        return refuse_choice(row, value, ret_error, error_size);
    }
    if (strlen(value) >= row->size) {
        snprintf(ret_error, error_size, "%s is longer than %zu characters", row->name,
                 row->size - 1);
        return STATUS_INVALID;
    }
    if (strpbrk(value, "\n\r") != NULL) {
        snprintf(ret_error, error_size, "%s has a line break in its value", row->name);
        return STATUS_INVALID;
    }
    if (row->is_valid != NULL && !row->is_valid(value, why, sizeof(why))) {
        snprintf(ret_error, error_size, "%s is '%.60s': %s", row->name, value, why);
        return STATUS_INVALID;
    }
    // Bytes behind the terminator are zero: values of equal text are equal memory.
    memset(field_of(row, values), 0, row->size);
    memcpy(field_of(row, values), value, strlen(value));
    return STATUS_OK;
}

static enum status set_value(const struct option *row, void *values, const char *value,
                             char *ret_error, size_t error_size)
{
    switch (row->type) {
    case OPTION_FLAG: {
        bool flag;
        if (!parse_flag(value, &flag)) {
            snprintf(ret_error, error_size, "%s is '%.60s', but must be true or false", row->name,
                     value);
            return STATUS_INVALID;
        }
        memcpy(field_of(row, values), &flag, sizeof(flag));
        return STATUS_OK;
    }
    case OPTION_U32:
    case OPTION_U64:
    case OPTION_REAL:
        return set_number(row, values, value, ret_error, error_size);
    case OPTION_TEXT:
    case OPTION_CHOICE:
        return set_text(row, values, value, ret_error, error_size);
    }
    return STATUS_INVALID;
}

void options_reset(const struct option_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct option *row = &set->rows[i];
        if (row->fallback[0] == '\0') {
            memset(field_of(row, set->values), 0, row->size); // "": not checked, nothing is given
            continue;
        }
        char error[OPTION_ERROR_BYTES];
        enum status status = set_value(row, set->values, row->fallback, error, sizeof(error));
        assert(status == STATUS_OK);
        (void)status;
    }
}

static enum status refuse_name(const struct option_set *sets, size_t set_count, const char *name,
                               char *ret_error, size_t error_size)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (size_t s = 0; s < set_count; s++) {
        for (size_t i = 0; i < sets[s].count && count < NAMES_MAX; i++) {
            names[count++] = sets[s].rows[i].name;
        }
    }
    const char *nearest = options_nearest(name, names, count);
    if (nearest != NULL) {
        snprintf(ret_error, error_size, "unknown option '%.60s'; did you mean %s?", name, nearest);
    } else {
        snprintf(ret_error, error_size, "unknown option '%.60s'; --help lists them all", name);
    }
    return STATUS_INVALID;
}

enum status options_set_text(const struct option_set *sets, size_t set_count, const char *name,
                             const char *value, char *ret_error, size_t error_size)
{
    for (size_t s = 0; s < set_count; s++) {
        for (size_t i = 0; i < sets[s].count; i++) {
            if (strcmp(sets[s].rows[i].name, name) == 0) {
                return set_value(&sets[s].rows[i], sets[s].values, value, ret_error, error_size);
            }
        }
    }
    return refuse_name(sets, set_count, name, ret_error, error_size);
}

/* The shortest decimal that reads back to the same double. */
static void format_real(double value, char *ret_text, size_t text_size)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(ret_text, text_size, "%.*g", digits, value);
        if (strtod(ret_text, NULL) == value) {
            return;
        }
    }
}

void option_format(const struct option *row, const void *values, char *ret_text, size_t text_size)
{
    const char *field = (const char *)values + row->offset;
    uint32_t narrow;
    uint64_t whole;
    double real;
    switch (row->type) {
    case OPTION_FLAG:
        snprintf(ret_text, text_size, "%s", field[0] != 0 ? "true" : "false");
        break;
    case OPTION_U32:
        memcpy(&narrow, field, sizeof(narrow));
        snprintf(ret_text, text_size, "%u", narrow);
        break;
    case OPTION_U64:
        memcpy(&whole, field, sizeof(whole));
        snprintf(ret_text, text_size, "%llu", (unsigned long long)whole);
        break;
    case OPTION_REAL:
        memcpy(&real, field, sizeof(real));
        format_real(real, ret_text, text_size);
        break;
    case OPTION_TEXT:
    case OPTION_CHOICE:
        snprintf(ret_text, text_size, "%s", field);
        break;
    }
}
