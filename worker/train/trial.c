/* Measures the steps of a trial: the median of its rounds. */
#include "worker/train/trial.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_LEFT_OUT 2
#define LAST_LEFT_OUT  1

void trial_add(struct trial *trial, uint64_t step_ns, bool ends_round)
{
    trial->open_ns += step_ns;
    trial->open_steps++;
    if (!ends_round) {
        return;
    }
    if (trial->round_count < TRIAL_ROUNDS_MAX) {
        trial->step_ns[trial->round_count++] = trial->open_ns / trial->open_steps;
    }
    trial->open_ns = trial->open_steps = 0;
}

static int compare(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

uint64_t trial_step_ns(const struct trial *trial)
{
    uint64_t sorted[TRIAL_ROUNDS_MAX];
    if (trial->round_count <= FIRST_LEFT_OUT + LAST_LEFT_OUT) {
        return 0;
    }
    uint32_t count = trial->round_count - FIRST_LEFT_OUT - LAST_LEFT_OUT;
    memcpy(sorted, trial->step_ns + FIRST_LEFT_OUT, count * sizeof(sorted[0]));
    qsort(sorted, count, sizeof(sorted[0]), compare);
    uint64_t low = sorted[(count - 1) / 2], high = sorted[count / 2];
    return low + (high - low) / 2;
}
