/* Reads fields of JSON files, and says what is wrong with them. */
#include "deploy/predict/basis/fields.h"

#include "common/base/log.h"
#include "common/base/number.h"
#include "common/base/printable.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct unit {
    const char *name;
    double factor;
};

static const struct unit times[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
static const struct unit bandwidths[] = {
    {"Tbit/s", 1.25e11}, {"Gbit/s", 1.25e8}, {"Mbit/s", 1.25e5}, {"kbit/s", 125},
    {"TB/s", 1e12},      {"GB/s", 1e9},      {"MB/s", 1e6},      {"kB/s", 1e3},
};

static const struct unit *units_of(enum quantity quantity, size_t *ret_count)
{
    *ret_count = quantity == QUANTITY_TIME ? sizeof(times) / sizeof(times[0])
                                           : sizeof(bandwidths) / sizeof(bandwidths[0]);
    return quantity == QUANTITY_TIME ? times : bandwidths;
}

bool quantity_parse(const char *text, enum quantity quantity, double *ret_value)
{
    size_t count = 0;
    const struct unit *units = units_of(quantity, &count);
    double value = 0;
    size_t digits = number_decimal(text, &value);
    const char *unit = text + digits;
    unit += *unit == ' ';
    for (size_t i = 0; i < count && digits > 0; i++) {
        if (strcmp(unit, units[i].name) == 0) {
            *ret_value = value * units[i].factor;
            return isfinite(*ret_value);
        }
    }
    return false;
}

/* The largest unit, from `first` to `last`, of which the value has at least one. */
static const struct unit *fitting(double value, const struct unit *first, const struct unit *last)
{
    while (first < last && value < first->factor * (1 - 1e-9)) {
        first++;
    }
    return first;
}

void quantity_write(double value, enum quantity quantity, char ret_text[QUANTITY_BYTES])
{
    const struct unit *unit = quantity == QUANTITY_BANDWIDTH
                                  ? fitting(value, bandwidths + 4, bandwidths + 7)
                              : value > 0 ? fitting(value, times, times + 3)
                                          : times;
    snprintf(ret_text, QUANTITY_BYTES, "%.7g %s", value / unit->factor, unit->name);
}

void quantity_format(double value, enum quantity quantity, char ret_text[QUANTITY_BYTES])
{
    if (quantity == QUANTITY_TIME) {
        const struct unit *unit = value > 0 ? fitting(value, times, times + 3) : times;
        snprintf(ret_text, QUANTITY_BYTES, "%.4g %s", value / unit->factor, unit->name);
    } else if (value == 0) {
        snprintf(ret_text, QUANTITY_BYTES, "no limit");
    } else {
        const struct unit *bits = fitting(value, bandwidths, bandwidths + 3);
        const struct unit *bytes = fitting(value, bandwidths + 4, bandwidths + 7);
        snprintf(ret_text, QUANTITY_BYTES, "%.4g %s (%.4g %s)", value / bits->factor, bits->name,
                 value / bytes->factor, bytes->name);
    }
}

enum status fields_refuse(const struct fields *fields, const char *name, const char *why)
{
    // Names and values of the file are printed on terminals, which obey control characters.
    char text[512];
    snprintf(text, sizeof(text), "%s%s%s %s", fields->place, fields->place[0] != '\0' ? "." : "",
             name, why);
    printable_make_utf8(text);
    log_error("%s: %s", fields->file, text);
    return STATUS_INVALID;
}

/* Logs what some files begin with that have no JSON text. A pipe is read only once, so what it
 * begins with is looked at in the stream. */
static enum status check_begin(const char *file, FILE *stream)
{
    int first = getc(stream);
    if (first == EOF && !ferror(stream)) {
        log_error("%s is empty; see docs/PREDICT-FILES.md for its form", file);
        return STATUS_INVALID;
    }
    // No JSON text begins with this byte, so nothing is lost where others follow.
    if (first == 0xEF && getc(stream) == 0xBB && getc(stream) == 0xBF) {
        log_error("%s cannot be read: it begins with a byte order mark of UTF-8 (bytes EF BB BF); "
                  "save it without one",
                  file);
        return STATUS_INVALID;
    }
    (void)ungetc(first, stream);
    return STATUS_OK;
}

enum status fields_load(const char *file, json_t **ret_object)
{
    json_error_t error;
    struct stat facts;
    if (stat(file, &facts) == 0 && S_ISDIR(facts.st_mode)) {
        log_error("%s cannot be read: it is a folder; name a file", file);
        return STATUS_INVALID;
    }
    FILE *stream = fopen(file, "rbe");
    if (stream == NULL) {
        log_error("%s cannot be read: %m", file);
        return STATUS_INVALID;
    }
    if (check_begin(file, stream) != STATUS_OK) {
        fclose(stream);
        return STATUS_INVALID;
    }
    json_t *object = json_loadf(stream, JSON_REJECT_DUPLICATES, &error);
    fclose(stream);
    if (object == NULL) {
        char where[32] = "";
        if (error.line > 0) {
            snprintf(where, sizeof(where), "line %d: ", error.line);
        }
        log_error("%s cannot be read: %s%s", file, where, error.text);
        return STATUS_INVALID;
    }
    if (!json_is_object(object)) {
        log_error("%s has no JSON object; see docs/PREDICT-FILES.md for its form", file);
        json_decref(object);
        return STATUS_INVALID;
    }
    *ret_object = object;
    return STATUS_OK;
}

enum status fields_check_names(const struct fields *fields, const char *const *names)
{
    if (!json_is_object(fields->object)) {
        log_error("%s: %s is no JSON object; see docs/PREDICT-FILES.md for its form", fields->file,
                  fields->place);
        return STATUS_INVALID;
    }
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(fields->object, key, value)
    {
        const char *const *name = names;
        while (*name != NULL && strcmp(*name, key) != 0) {
            name++;
        }
        if (*name == NULL) {
            return fields_refuse(fields, key,
                                 "is not known; see docs/PREDICT-FILES.md for the fields");
        }
    }
    return STATUS_OK;
}

static enum status find(const struct fields *fields, const char *name, bool is_required,
                        const json_t **ret_value)
{
    *ret_value = json_object_get(fields->object, name);
    return *ret_value == NULL && is_required ? fields_refuse(fields, name, "is missing")
                                             : STATUS_OK;
}

/* `text`: what stands there; NULL: no text. */
static enum status refuse_quantity(const struct fields *fields, const char *name,
                                   enum quantity quantity, const char *text)
{
    char why[192];
    snprintf(why, sizeof(why), "has to be a %s%s%.40s%s",
             quantity == QUANTITY_TIME
                 ? "time of at least 0 with its unit (s, ms, us, ns): \"30 us\""
                 : "bandwidth with its unit (kbit/s ... Tbit/s, kB/s ... TB/s): \"25 Gbit/s\"",
             text != NULL ? ", and is \"" : "", text != NULL ? text : "", text != NULL ? "\"" : "");
    return fields_refuse(fields, name, why);
}

enum status fields_quantity(const struct fields *fields, const char *name, enum quantity quantity,
                            bool is_required, double *ret_value)
{
    const json_t *value = NULL;
    enum status status = find(fields, name, is_required, &value);
    if (status != STATUS_OK || value == NULL) {
        return status;
    }
    if (!json_is_string(value) || !quantity_parse(json_string_value(value), quantity, ret_value)) {
        return refuse_quantity(fields, name, quantity, json_string_value(value));
    }
    if (quantity == QUANTITY_BANDWIDTH && *ret_value <= 0) {
        return fields_refuse(fields, name,
                             is_required ? "has to be above 0"
                                         : "has to be above 0; leave it out if there is no limit");
    }
    return STATUS_OK;
}

enum status fields_flag(const struct fields *fields, const char *name, bool *ret_value)
{
    const json_t *value = NULL;
    enum status status = find(fields, name, false, &value);
    if (status != STATUS_OK || value == NULL) {
        return status;
    }
    if (!json_is_boolean(value)) {
        return fields_refuse(fields, name, "has to be true or false");
    }
    *ret_value = json_is_true(value);
    return STATUS_OK;
}

enum status fields_number(const struct fields *fields, const char *name, double min, double max,
                          bool is_required, double *ret_value)
{
    const json_t *value = NULL;
    enum status status = find(fields, name, is_required, &value);
    if (status != STATUS_OK || value == NULL) {
        return status;
    }
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= min && number <= max)) {
        char why[96];
        snprintf(why, sizeof(why), "has to be a number from %.10g to %.10g", min, max);
        return fields_refuse(fields, name, why);
    }
    *ret_value = number;
    return STATUS_OK;
}

enum status fields_text(const struct fields *fields, const char *name, bool is_required,
                        const char **ret_text)
{
    const json_t *value = NULL;
    enum status status = find(fields, name, is_required, &value);
    *ret_text = json_string_value(value);
    if (status != STATUS_OK || value == NULL) {
        return status;
    }
    if (*ret_text == NULL || **ret_text == '\0') {
        return fields_refuse(fields, name, "has to be a text");
    }
    // Texts are printed on terminals, which obey control characters.
    return printable_is_utf8(*ret_text, strlen(*ret_text))
               ? STATUS_OK
               : fields_refuse(fields, name, "has control characters; leave them out");
}

enum status fields_list(const struct fields *fields, const char *name, bool is_required,
                        const json_t **ret_list)
{
    enum status status = find(fields, name, is_required, ret_list);
    return status == STATUS_OK && *ret_list != NULL && json_array_size(*ret_list) == 0
               ? fields_refuse(fields, name, "has to be a list with at least one entry")
               : status;
}

enum status fields_check_notes(const struct fields *fields, const char *name)
{
    json_t *notes = json_object_get(fields->object, name);
    const char *key = NULL;
    json_t *value = NULL;
    bool is_right = notes == NULL || json_is_object(notes);
    json_object_foreach(notes, key, value)
    {
        is_right = is_right && json_is_string(value);
    }
    return is_right ? STATUS_OK : fields_refuse(fields, name, "has to be an object of texts");
}
