/* Sets options from text, checked against their rows. */
#include "common/options/options.h"

#include "common/base/number.h"
#include "common/options/options_format.h"

#include <assert.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 256

static char *field_of(const struct option *row, void *values)
{
    return (char *)values + row->offset;
}

/* Appends text, cut to the space that is left. */
__attribute__((format(printf, 3, 4))) static void append(char *text, size_t text_size,
                                                         const char *format, ...)
{
    size_t used = strnlen(text, text_size);
    if (used >= text_size) {
        return;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, text_size - used, format, args);
    va_end(args);
}

static bool parse_flag(const char *text, bool *ret_value)
{
    static const char *const names[] = {"false", "true", "0", "1", "no", "yes", "off", "on"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_value = i % 2 != 0;
            return true;
        }
    }
    return false;
}

static bool parse_real(const char *text, double *ret_value)
{
    // Plain decimals only: strtod would take "inf", "nan" and hexadecimals as well.
    if (text[0] == '\0' || strspn(text, "0123456789.eE+-") != strlen(text)) {
        return false;
    }
    char *end;
    locale_t before = options_enter_plain_locale();
    errno = 0;
    double value = strtod(text, &end);
    bool is_too_small = errno == ERANGE && value < 1 && value > -1; // 0 would be another value
    uselocale(before);
    *ret_value = value + 0.0; // -0 becomes 0
    return *end == '\0' && end != text && isfinite(value) && !is_too_small;
}

static enum status refuse_number(const struct option *row, const char *value, char *ret_error,
                                 size_t error_size)
{
    char range[OPTION_RANGE_BYTES];
    option_format_range(row, range, sizeof(range));
    bool has_word = row->choices != NULL;
    snprintf(ret_error, error_size, "%s is '%.60s', but must be %s%sa %snumber from %s", row->name,
             value, has_word ? row->choices[0].name : "", has_word ? ", or " : "",
             row->type == OPTION_REAL ? "" : "whole ", range);
    return STATUS_INVALID;
}

/* Whether it is the word that a number may be instead. */
static bool is_word(const struct option *row, const char *value)
{
    return row->choices != NULL && strcmp(row->choices[0].name, value) == 0;
}

static enum status set_whole(const struct option *row, void *values, const char *value,
                             char *ret_error, size_t error_size)
{
    char *field = field_of(row, values);
    uint64_t whole = 0;
    // Limits are compared as integers: a double cannot tell large ones from their neighbours.
    if (!is_word(row, value) && (!number_whole(value, strlen(value), UINT64_MAX, &whole) ||
                                 whole < (uint64_t)row->min || whole > (uint64_t)row->max)) {
        return refuse_number(row, value, ret_error, error_size);
    }
    if (row->type == OPTION_U64) {
        memcpy(field, &whole, sizeof(whole));
        return STATUS_OK;
    }
    assert(row->max <= UINT32_MAX);
    uint32_t narrow = (uint32_t)whole;
    memcpy(field, &narrow, sizeof(narrow));
    return STATUS_OK;
}

static enum status set_real(const struct option *row, void *values, const char *value,
                            char *ret_error, size_t error_size)
{
    double real = 0;
    if (!is_word(row, value) && (!parse_real(value, &real) || real < row->min || real > row->max)) {
        return refuse_number(row, value, ret_error, error_size);
    }
    memcpy(field_of(row, values), &real, sizeof(real));
    return STATUS_OK;
}

/* Writes the choices of a row, and the nearest to `value` if there is one. */
static enum status refuse_choice(const struct option *row, const char *value, char *ret_error,
                                 size_t error_size)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (; row->choices[count].name != NULL && count < NAMES_MAX; count++) {
        names[count] = row->choices[count].name;
    }
    snprintf(ret_error, error_size, "there is no %s '%.60s'", row->name, value);
    const char *nearest = options_nearest(value, names, count);
    if (nearest != NULL) {
        append(ret_error, error_size, "; did you mean %s?", nearest);
    }
    for (size_t i = 0; i < count; i++) {
        append(ret_error, error_size, "%s%s", i > 0 ? ", " : " (one of ", names[i]);
    }
    append(ret_error, error_size, ")");
    return STATUS_INVALID;
}

/* Finds a name, or the beginning of a text up to the colon of a name. */
static bool find_choice(const struct option_choice *choices, const char *text, uint32_t *ret_index)
{
    for (uint32_t i = 0; choices[i].name != NULL; i++) {
        const char *name = choices[i].name;
        size_t size = strcspn(name, ":");
        bool takes_number = name[size] == ':' && strncmp(name, text, size + 1) == 0;
        if (strcmp(name, text) == 0 || takes_number) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

bool option_pick(const struct option_choice *choices, const char *text, uint32_t number_max,
                 struct option_picked *ret_picked)
{
    uint32_t index;
    uint64_t number = 0;
    if (!find_choice(choices, text, &index)) {
        return false;
    }
    size_t size = strcspn(choices[index].name, ":");
    bool takes_number = choices[index].name[size] == ':';
    if (takes_number &&
        !number_whole(text + size + 1, strlen(text + size + 1), number_max, &number)) {
        return false;
    }
    *ret_picked = (struct option_picked){.index = index, .number = (uint32_t)number};
    return true;
}

/* The length of the UTF-8 character that the text begins with; 0 if it begins with none, or with a
 * control character. */
static size_t character_size(const unsigned char *text)
{
    if (text[0] < 0x80) {
        return text[0] >= 0x20 && text[0] != 0x7F ? 1 : 0;
    }
    size_t size = text[0] >= 0xF0 ? 4 : text[0] >= 0xE0 ? 3 : 2;
    uint32_t point = text[0] & (0xFFu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xC0) != 0x80) {
            return 0;
        }
        point = point << 6 | (text[i] & 0x3Fu);
    }
    static const uint32_t least[] = {0, 0, 0xA0, 0x800, 0x10000};
    bool is_surrogate = point >= 0xD800 && point < 0xE000;
    // 0xC0 and up begin a character; 0x80 to 0x9F are control characters, too.
    bool is_good = text[0] >= 0xC0 && text[0] < 0xF8 && point >= least[size] && point < 0x110000 &&
                   !is_surrogate;
    return is_good ? size : 0;
}

/* Values travel in lines, JSON and logs: these take neither control characters nor other than
 * UTF-8. */
static bool is_plain_text(const char *value)
{
    const unsigned char *text = (const unsigned char *)value;
    while (*text != '\0') {
        size_t size = character_size(text);
        if (size == 0) {
            return false;
        }
        text += size;
    }
    return true;
}

static enum status refuse_why(const struct option *row, const char *value, const char *why,
                              char *ret_error, size_t error_size)
{
    snprintf(ret_error, error_size, "%s is '%.60s': %s", row->name, value, why);
    return STATUS_INVALID;
}

static enum status set_choice(const struct option *row, void *values, const char *value,
                              char *ret_error, size_t error_size)
{
    char why[OPTION_ERROR_BYTES / 2];
    uint32_t index;
    struct option_picked picked;
    if (!find_choice(row->choices, value, &index)) {
        return refuse_choice(row, value, ret_error, error_size);
    }
    if (row->is_valid != NULL && !row->is_valid(value, why, sizeof(why))) {
        return refuse_why(row, value, why, ret_error, error_size);
    }
    if (!option_pick(row->choices, value, (uint32_t)row->max, &picked)) {
        return refuse_choice(row, value, ret_error, error_size);
    }
    assert(row->size == sizeof(index) || row->size == sizeof(picked));
    memcpy(field_of(row, values), &picked, row->size); // an enum alone is the index
    return STATUS_OK;
}

static enum status set_parsed(const struct option *row, void *values, const char *value,
                              char *ret_error, size_t error_size)
{
    char why[OPTION_ERROR_BYTES / 2];
    return row->parse(value, field_of(row, values), why, sizeof(why))
               ? STATUS_OK
               : refuse_why(row, value, why, ret_error, error_size);
}

bool options_text_is_there(const char *text, char *ret_why, size_t why_size)
{
    snprintf(ret_why, why_size, "give it a value, or leave it out");
    return text[0] != '\0';
}

static enum status set_text(const struct option *row, void *values, const char *value,
                            char *ret_error, size_t error_size)
{
    char why[OPTION_ERROR_BYTES / 2], whole[OPTION_VALUE_BYTES];
    uint32_t index;
    if (row->complete != NULL && strlen(value) < sizeof(whole)) {
        row->complete(value, whole);
        value = whole;
    }
    if (row->type == OPTION_NAME && !find_choice(row->choices, value, &index)) {
        return refuse_choice(row, value, ret_error, error_size);
    }
    if (strlen(value) >= row->size) {
        snprintf(ret_error, error_size, "%s is longer than %zu characters", row->name,
                 row->size - 1);
        return STATUS_INVALID;
    }
    if (!is_plain_text(value)) {
        snprintf(ret_error, error_size,
                 "the value of %s contains a line break, another control character, or "
                 "invalid UTF-8",
                 row->name);
        return STATUS_INVALID;
    }
    if (row->is_valid != NULL && !row->is_valid(value, why, sizeof(why))) {
        return refuse_why(row, value, why, ret_error, error_size);
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
        return set_whole(row, values, value, ret_error, error_size);
    case OPTION_REAL:
        return set_real(row, values, value, ret_error, error_size);
    case OPTION_CHOICE:
        return set_choice(row, values, value, ret_error, error_size);
    case OPTION_PARSED:
        return set_parsed(row, values, value, ret_error, error_size);
    case OPTION_TEXT:
    case OPTION_NAME:
    case OPTION_LIST:
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
            const char *row_name = sets[s].rows[i].name;
            if (row_name[0] == name[0] && strcmp(row_name, name) == 0) {
                return set_value(&sets[s].rows[i], sets[s].values, value, ret_error, error_size);
            }
        }
    }
    return refuse_name(sets, set_count, name, ret_error, error_size);
}
