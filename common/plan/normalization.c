/* Reads means and deviations of channels. */
#include "common/plan/normalization.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEAN_MAX      1.0
#define DEVIATION_MIN 0.0001
#define DEVIATION_MAX 10.0

/* A number of digits and a point, up to a comma, a slash or the end; moves on to that. */
static bool take_number(const char **at, double least, double most, float *ret_number)
{
    char text[32], *end;
    size_t size = strcspn(*at, ",/");
    if (size == 0 || size >= sizeof(text) || strspn(*at, "0123456789.") < size) {
        return false;
    }
    memcpy(text, *at, size);
    text[size] = '\0';
    double number = strtod(text, &end);
    if (*end != '\0' || number < least || number > most) {
        return false;
    }
    *ret_number = (float)number;
    *at += size;
    return true;
}

/* Numbers between commas, up to `stop`. Writes how many they are. */
static bool take_list(const char **at, char stop, double least, double most,
                      float ret_numbers[NORMALIZATION_CHANNELS_MAX], uint32_t *ret_count)
{
    uint32_t count = 0;
    while (count < NORMALIZATION_CHANNELS_MAX &&
           take_number(at, least, most, &ret_numbers[count])) {
        count++;
        if (**at != ',') {
            *ret_count = count;
            return **at == stop;
        }
        ++*at;
    }
    return false;
}

static const struct {
    const char *text;
    enum normalization_kind kind;
} words[] = {
    {"usual", NORMALIZATION_USUAL},
    {"dataset", NORMALIZATION_DATASET},
    {"none", NORMALIZATION_NONE},
};

enum status normalization_parse(const char *text, struct normalization *ret_normalization,
                                char *ret_why, size_t why_size)
{
    struct normalization given = {.kind = NORMALIZATION_GIVEN};
    uint32_t deviations = 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(text, words[i].text) == 0) {
            *ret_normalization = (struct normalization){.kind = words[i].kind};
            return STATUS_OK;
        }
    }
    if (!take_list(&text, '/', 0, MEAN_MAX, given.mean, &given.channels)) {
        snprintf(ret_why, why_size,
                 "it is usual, dataset, none, or means and deviations of the channels, "
                 "M,M,M/D,D,D: each "
                 "mean is from 0 to %g",
                 MEAN_MAX);
        return STATUS_INVALID;
    }
    text++;
    if (!take_list(&text, '\0', DEVIATION_MIN, DEVIATION_MAX, given.deviation, &deviations) ||
        deviations != given.channels) {
        snprintf(ret_why, why_size,
                 "behind the slash there is a deviation for each mean (%u here), each from %g to "
                 "%g",
                 given.channels, DEVIATION_MIN, DEVIATION_MAX);
        return STATUS_INVALID;
    }
    *ret_normalization = given;
    return STATUS_OK;
}
