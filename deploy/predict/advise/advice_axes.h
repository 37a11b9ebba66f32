/* What advice chooses among besides the mode: the axes of its search, each a row of a table. */
#ifndef DEPLOY_PREDICT_ADVISE_ADVICE_AXES_H
#define DEPLOY_PREDICT_ADVISE_ADVICE_AXES_H

#include "deploy/predict/basis/basis.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADVICE_VALUES_MAX 16
#define ADVICE_WORD_BYTES 48

/* A member and a row make a further axis. The search takes them in this order. */
enum advice_axis_kind {
    ADVICE_SERVERS,
    ADVICE_PLACEMENT,
    ADVICE_BUCKET,
    ADVICE_ALL_REDUCE,
    ADVICE_COMPRESSION,
    ADVICE_AXES,
};

/* Values of an axis. The first is the one that the basis has. */
struct advice_values {
    double list[ADVICE_VALUES_MAX];
    size_t count;
};

struct advice_axis {
    const char *name;   // "bucket size"
    const char *option; // of the command line, which keeps the value that it gives; NULL: none

    /* Whether the axis is one of a mode; NULL: of each. */
    bool (*is_of)(enum mode_kind mode);

    /* Of a basis that has mode and workers. One value where there is nothing to choose. */
    void (*list)(const struct basis *basis, struct advice_values *values);
    void (*apply)(double value, struct basis *basis);
    void (*describe)(double value, char ret_word[ADVICE_WORD_BYTES]); // "4 MiB"
};
extern const struct advice_axis advice_axes[ADVICE_AXES];

/* Adds a value that is not there yet, while there is room. */
void advice_values_add(struct advice_values *values, double value);

/* Whether an axis is one of a mode, so that its values mean something there. */
bool advice_axis_is_of(enum advice_axis_kind axis, enum mode_kind mode);

/* Whether the network has places for the servers of a basis. */
bool advice_has_places(const struct basis *basis);

#endif
