/* Reads numbers digit by digit, and chooses units. */
#include "common/base/number.h"

#include <stdio.h>

// More digits than any number of ours has are no part of it.
#define DECIMAL_MAX 1e9

bool number_whole(const char *text, size_t size, uint64_t max, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        bool is_digit = text[i] >= '0' && text[i] <= '9';
        if (!is_digit || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value) || value > max) {
            return false;
        }
    }
    if (size > 0) {
        *ret_value = value;
    }
    return size > 0;
}

size_t number_decimal(const char *text, double *ret_value)
{
    double value = 0, place = 1;
    bool has_point = false, has_digit = false;
    size_t size = 0;
    for (;; size++) {
        if (text[size] == '.' && !has_point) {
            has_point = true;
        } else if (text[size] >= '0' && text[size] <= '9' && value < DECIMAL_MAX) {
            has_digit = true;
            place = has_point ? place / 10 : place;
            value =
                has_point ? value + place * (text[size] - '0') : 10 * value + (text[size] - '0');
        } else {
            break;
        }
    }
    if (!has_digit) {
        return 0;
    }
    *ret_value = value;
    return size;
}

void number_describe_size(uint64_t bytes, char ret_text[NUMBER_SIZE_BYTES])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes / 1024;
    size_t unit = 0;
    if (bytes < 1024) {
        snprintf(ret_text, NUMBER_SIZE_BYTES, "%u byte%s", (unsigned)bytes, bytes == 1 ? "" : "s");
        return;
    }
    for (; value >= 1023.5 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++) {
        value /= 1024;
    }
    // Below ten a rounded number would be off by too much: those have a decimal.
    snprintf(ret_text, NUMBER_SIZE_BYTES, "%.*f %s", unit > 0 && value < 9.95 ? 1 : 0, value,
             units[unit]);
}
