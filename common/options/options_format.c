/* Writes values of options as text. */
#include "common/options/options_format.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void option_make_variable_name(const char *name, char *ret_name, size_t name_size)
{
    snprintf(ret_name, name_size, OPTION_VARIABLE_PREFIX "%s", name);
    for (char *at = ret_name; *at != '\0'; at++) {
        bool is_small = *at >= 'a' && *at <= 'z';
        *at = (char)(*at == '-' ? '_' : is_small ? *at - 'a' + 'A' : *at);
    }
}

const char *option_metavar(const struct option *row)
{
    bool is_name = row->type == OPTION_CHOICE || row->type == OPTION_NAME;
    return is_name ? "NAME" : row->type == OPTION_FLAG ? NULL : row->metavar;
}

locale_t options_enter_plain_locale(void)
{
    // For "C", glibc returns a static object: it cannot fail, and is not freed.
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

/* The shortest decimal that reads back to the same double; whole ones without exponent. */
static void format_real(double value, char *ret_text, size_t text_size)
{
    if (fabs(value) < 1e15 && floor(value) == value) {
        snprintf(ret_text, text_size, "%.0f", value);
        return;
    }
    locale_t before = options_enter_plain_locale();
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(ret_text, text_size, "%.*g", digits, value);
        if (strtod(ret_text, NULL) == value) {
            break;
        }
    }
    uselocale(before);
}

static void format_limit(const struct option *row, double limit, char *ret_text, size_t text_size)
{
    if (row->type == OPTION_REAL) {
        format_real(limit, ret_text, text_size);
    } else {
        snprintf(ret_text, text_size, "%llu", (unsigned long long)limit);
    }
}

void option_format_range(const struct option *row, char *ret_text, size_t text_size)
{
    char min[OPTION_RANGE_BYTES / 2], max[OPTION_RANGE_BYTES / 2];
    format_limit(row, row->min, min, sizeof(min));
    format_limit(row, row->max, max, sizeof(max));
    snprintf(ret_text, text_size, "%s to %s", min, max);
}

void option_picked_text(const struct option_choice *choices, struct option_picked picked,
                        char *ret_text, size_t text_size)
{
    const char *name = choices[picked.index].name;
    int size = (int)strcspn(name, ":");
    if (name[size] == ':') {
        snprintf(ret_text, text_size, "%.*s:%u", size, name, picked.number);
    } else {
        snprintf(ret_text, text_size, "%s", name);
    }
}

void option_format(const struct option *row, const void *values, char *ret_text, size_t text_size)
{
    const char *field = (const char *)values + row->offset;
    uint32_t narrow;
    uint64_t whole;
    double real;
    struct option_picked picked = {0};
    switch (row->type) {
    case OPTION_FLAG:
        snprintf(ret_text, text_size, "%s", field[0] != 0 ? "true" : "false");
        break;
    case OPTION_U32:
        memcpy(&narrow, field, sizeof(narrow));
        if (row->choices != NULL && narrow < row->min) {
            snprintf(ret_text, text_size, "%s", row->choices[0].name);
        } else {
            snprintf(ret_text, text_size, "%u", narrow);
        }
        break;
    case OPTION_U64:
        memcpy(&whole, field, sizeof(whole));
        snprintf(ret_text, text_size, "%llu", (unsigned long long)whole);
        break;
    case OPTION_REAL:
        memcpy(&real, field, sizeof(real));
        if (row->choices != NULL && real < row->min) {
            snprintf(ret_text, text_size, "%s", row->choices[0].name);
        } else {
            format_real(real, ret_text, text_size);
        }
        break;
    case OPTION_CHOICE:
        memcpy(&picked, field, row->size);
        option_picked_text(row->choices, picked, ret_text, text_size);
        break;
    case OPTION_PARSED:
        row->format(field, ret_text, text_size);
        break;
    case OPTION_TEXT:
    case OPTION_NAME:
    case OPTION_LIST:
        snprintf(ret_text, text_size, "%s", field);
        break;
    }
}
