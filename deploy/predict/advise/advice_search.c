/* Tries combinations, all of them or axis by axis. */
#include "deploy/predict/advise/advice_search.h"

#include <stdlib.h>
#include <string.h>

size_t advice_combinations(const struct advice_space *space)
{
    size_t count = 1;
    for (size_t axis = 0; axis < ADVICE_AXES; axis++) {
        count *= space->counts[axis];
        if (count > ADVICE_TRIES_MAX) {
            return ADVICE_TRIES_MAX + 1;
        }
    }
    return count;
}

static size_t count_changes(const struct advice_picks *picks)
{
    size_t count = 0;
    for (size_t axis = 0; axis < ADVICE_AXES; axis++) {
        count += picks->of[axis] != 0;
    }
    return count;
}

/* The index of the one that is taken. */
static size_t choose(const struct advice_picks *picks, const double *scores, size_t count)
{
    double most = 0;
    size_t chosen = count;
    for (size_t i = 0; i < count; i++) {
        most = scores[i] > most ? scores[i] : most;
    }
    for (size_t i = 0; i < count; i++) {
        if (scores[i] >= most * (1 - ADVICE_LEVEL) && scores[i] > 0 &&
            (chosen == count || count_changes(&picks[i]) < count_changes(&picks[chosen]))) {
            chosen = i;
        }
    }
    return chosen < count ? chosen : 0;
}

struct tries {
    struct advice_picks picks[ADVICE_TRIES_MAX];
    double scores[ADVICE_TRIES_MAX];
};

/* The default comes first. */
static size_t list_all(const struct advice_space *space, struct advice_picks *picks)
{
    size_t count = advice_combinations(space);
    for (size_t i = 0; i < count; i++) {
        size_t rest = i;
        for (size_t axis = 0; axis < ADVICE_AXES; axis++) {
            picks[i].of[axis] = rest % space->counts[axis];
            rest /= space->counts[axis];
        }
    }
    return count;
}

static enum status try_all(const struct advice_space *space, const struct advice_scorer *scorer,
                           struct tries *tries, struct advice_found *found)
{
    size_t count = list_all(space, tries->picks);
    enum status status = scorer->score(scorer->context, tries->picks, count, tries->scores);
    if (status == STATUS_OK) {
        size_t chosen = choose(tries->picks, tries->scores, count);
        *found = (struct advice_found){tries->picks[chosen], tries->scores[chosen], true};
    }
    return status;
}

/* Sets the best value of an axis. */
static enum status improve(const struct advice_space *space, size_t axis,
                           const struct advice_scorer *scorer, struct tries *tries,
                           struct advice_found *found)
{
    for (size_t i = 0; i < space->counts[axis]; i++) {
        tries->picks[i] = found->picks;
        tries->picks[i].of[axis] = i;
    }
    enum status status =
        scorer->score(scorer->context, tries->picks, space->counts[axis], tries->scores);
    if (status == STATUS_OK) {
        size_t chosen = choose(tries->picks, tries->scores, space->counts[axis]);
        found->picks = tries->picks[chosen];
        found->score = tries->scores[chosen];
    }
    return status;
}

static enum status descend(const struct advice_space *space, const struct advice_scorer *scorer,
                           struct tries *tries, struct advice_found *found)
{
    *found = (struct advice_found){.score = 0};
    enum status status = STATUS_OK;
    for (size_t round = 0; round < ADVICE_ROUNDS_MAX; round++) {
        const struct advice_picks before = found->picks;
        for (size_t axis = 0; axis < ADVICE_AXES && status == STATUS_OK; axis++) {
            status = improve(space, axis, scorer, tries, found);
        }
        if (status != STATUS_OK || memcmp(&before, &found->picks, sizeof(before)) == 0) {
            return status;
        }
    }
    return status;
}

enum status advice_search(const struct advice_space *space, const struct advice_scorer *scorer,
                          struct advice_found *ret_found)
{
    struct tries *tries = calloc(1, sizeof(*tries));
    if (tries == NULL) {
        return STATUS_NO_MEMORY;
    }
    size_t all = advice_combinations(space);
    bool is_exhaustive = all <= space->exhaustive_max && all <= ADVICE_TRIES_MAX;
    enum status status = (is_exhaustive ? try_all : descend)(space, scorer, tries, ret_found);
    free(tries);
    return status;
}
