/* Fields of JSON files that people write by hand: numbers, and quantities with a unit.
 *
 * Every function that finds something wrong logs one line that names the file, the place and what
 * would be right. */
#ifndef DEPLOY_PREDICT_BASIS_FIELDS_H
#define DEPLOY_PREDICT_BASIS_FIELDS_H

#include "common/base/status.h"

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUANTITY_BYTES 48

enum quantity {
    QUANTITY_TIME,      // seconds: "30 us"
    QUANTITY_BANDWIDTH, // bytes per second: "25 Gbit/s", "3 GB/s"
};

/* Reads a number and its unit. False for anything else, and for what is below 0. */
bool quantity_parse(const char *text, enum quantity quantity, double *ret_value);

/* A text that quantity_parse reads; of a bandwidth both units, the second one in brackets. 0 of a
 * bandwidth stands for no limit. */
void quantity_format(double value, enum quantity quantity, char ret_text[QUANTITY_BYTES]);

/* A text for files, with one unit and more digits than people read: quantity_parse has the same
 * value from it, within a millionth. A bandwidth of 0 cannot be written. */
void quantity_write(double value, enum quantity quantity, char ret_text[QUANTITY_BYTES]);

/* An object of a file. */
struct fields {
    const char *file;
    const char *place; // "layers[2]", or "" for the whole file
    json_t *object;
};

/* Reads a file whose whole is an object. */
enum status fields_load(const char *file, json_t **ret_object);

/* STATUS_INVALID if the place has no object, or if that has a field that is not in the list, which
 * ends with NULL. */
enum status fields_check_names(const struct fields *fields, const char *const *names);

/* A quantity. Where it is missing: *ret_value stays as it is, unless it is required. */
enum status fields_quantity(const struct fields *fields, const char *name, enum quantity quantity,
                            bool is_required, double *ret_value);

/* true or false; as it was if it is not there. */
enum status fields_flag(const struct fields *fields, const char *name, bool *ret_value);

/* A number from `min` to `max`. Where it is missing: as fields_quantity. */
enum status fields_number(const struct fields *fields, const char *name, double min, double max,
                          bool is_required, double *ret_value);

/* A text without control characters, which belongs to the object; where it is missing: NULL, unless
 * it is required. */
enum status fields_text(const struct fields *fields, const char *name, bool is_required,
                        const char **ret_text);

/* Checks a field that says where values come from, for people: an object of texts, if it is there.
 */
enum status fields_check_notes(const struct fields *fields, const char *name);

/* A list with something in it, unless it is missing and not required: NULL then. */
enum status fields_list(const struct fields *fields, const char *name, bool is_required,
                        const json_t **ret_list);

/* Logs that a field is wrong. */
enum status fields_refuse(const struct fields *fields, const char *name, const char *why);

#endif
