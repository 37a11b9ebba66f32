/* Searches for the best combination of values, one of each axis.
 *
 * All combinations are tried where they are few. Otherwise it begins with the default, takes the
 * best value of one axis after the other, and goes round until nothing changes (coordinate
 * descent). Of combinations that are as good (within ADVICE_LEVEL), the one that changes fewest
 * defaults is taken, and of these the first. Pure but for the callback. */
#ifndef DEPLOY_PREDICT_ADVISE_ADVICE_SEARCH_H
#define DEPLOY_PREDICT_ADVISE_ADVICE_SEARCH_H

#include "common/base/status.h"
#include "deploy/predict/advise/advice_axes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADVICE_LEVEL      5e-3 // gains of less are not worth a change
#define ADVICE_TRIES_MAX  1024 // combinations that are tried at once
#define ADVICE_ROUNDS_MAX 8

/* Indices of values; 0 is the default. */
struct advice_picks {
    size_t of[ADVICE_AXES];
};

struct advice_space {
    size_t counts[ADVICE_AXES]; // of values, each at least 1
    size_t exhaustive_max;      // all combinations are tried if they are no more
};

/* Fills in scores of combinations: more is better, and 0 is of one that cannot be. */
struct advice_scorer {
    enum status (*score)(void *context, const struct advice_picks *picks, size_t count,
                         double *ret_scores);
    void *context;
};

struct advice_found {
    struct advice_picks picks;
    double score;
    bool is_exhaustive;
};

/* How many combinations there are; at most ADVICE_TRIES_MAX + 1 is counted. */
size_t advice_combinations(const struct advice_space *space);

enum status advice_search(const struct advice_space *space, const struct advice_scorer *scorer,
                          struct advice_found *ret_found);

#endif
