/* Sorts slices by their piece, and finds the time that most steps exceed. */
#include "deploy/calibrate/observed_pieces.h"

#include "deploy/calibrate/fit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum status observed_pieces_init(struct observed_pieces *pieces, size_t room)
{
    *pieces = (struct observed_pieces){.room = room};
    pieces->list = calloc(room + 1, sizeof(*pieces->list));
    return pieces->list != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

void observed_pieces_finish(struct observed_pieces *pieces)
{
    free(pieces->list);
    *pieces = (struct observed_pieces){.list = NULL};
}

void observed_pieces_add(struct observed_pieces *pieces, size_t step, uint32_t piece,
                         double seconds)
{
    assert(pieces->count < pieces->room);
    pieces->list[pieces->count++] = (struct observed_slice){step, piece, seconds};
}

static int compare_slices(const void *a, const void *b)
{
    const struct observed_slice *left = a, *right = b;
    if (left->piece != right->piece) {
        return left->piece < right->piece ? -1 : 1;
    }
    return (left->step > right->step) - (left->step < right->step);
}

static int compare_seconds(const void *a, const void *b)
{
    const double *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* Of at least one value, which it puts into order. */
static double tenth(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare_seconds);
    return values[(count - 1) / 10];
}

/* Adds what each step takes of the piece that the sorted list has from `first`. Returns where the
 * next piece begins. */
static size_t add_steps(const struct observed_pieces *pieces, size_t first, double *steps_s)
{
    size_t i = first;
    for (; i < pieces->count && pieces->list[i].piece == pieces->list[first].piece; i++) {
        steps_s[pieces->list[i].step] += pieces->list[i].seconds;
    }
    return i;
}

enum status observed_pieces_tenths(struct observed_pieces *pieces, size_t step_count,
                                   double *ret_seconds)
{
    double *steps_s = calloc(step_count + 1, sizeof(*steps_s)); // of one piece
    if (steps_s == NULL) {
        return STATUS_NO_MEMORY;
    }
    memset(ret_seconds, 0, OBSERVED_PIECES * sizeof(*ret_seconds));
    qsort(pieces->list, pieces->count, sizeof(*pieces->list), compare_slices);
    for (size_t i = 0; i < pieces->count;) {
        uint32_t piece = pieces->list[i].piece;
        memset(steps_s, 0, step_count * sizeof(*steps_s));
        i = add_steps(pieces, i, steps_s);
        ret_seconds[piece] = tenth(steps_s, step_count);
    }
    free(steps_s);
    return STATUS_OK;
}

enum status observed_pieces_spreads(struct observed_pieces *pieces, size_t step_count,
                                    struct observed_spreads *ret_spreads)
{
    size_t i = 0;
    double *steps_s = calloc(step_count + 1, sizeof(*steps_s)); // of what is no layer, then of each
    if (steps_s == NULL) {
        return STATUS_NO_MEMORY;
    }
    memset(ret_spreads, 0, sizeof(*ret_spreads));
    qsort(pieces->list, pieces->count, sizeof(*pieces->list), compare_slices);
    while (i < pieces->count && pieces->list[i].piece < OBSERVED_LAYERS) {
        i = add_steps(pieces, i, steps_s);
    }
    ret_spreads->others = fit_spread(steps_s, step_count).spread;
    while (i < pieces->count) {
        uint32_t layer = pieces->list[i].piece - OBSERVED_LAYERS;
        memset(steps_s, 0, step_count * sizeof(*steps_s));
        i = add_steps(pieces, i, steps_s);
        struct spread *spreads = layer % 2 == 0 ? ret_spreads->forward : ret_spreads->backward;
        spreads[layer / 2] = fit_spread(steps_s, step_count).spread;
    }
    free(steps_s);
    return STATUS_OK;
}
