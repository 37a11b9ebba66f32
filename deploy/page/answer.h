/* The sentences at the top of a report: what its runs show, and nothing that they do not. Pure.
 *
 * Rules, each a sentence or none:
 *   - which runs did not complete, and how they ended;
 *   - whether the designs whose bits can be compared ended with the same ones;
 *   - of the settings with the most workers, which was the fastest, and what the slowest lost. With
 *     repeats, a difference counts if
 *     the 95 % intervals of the two means do not overlap. Without them it counts if it is larger
 *     than what two runs of one job differ by on an ordinary machine, and the sentence says that
 *     each was run once;
 *   - which setting ended with the best accuracy, by the same rule;
 *   - how far the largest number of workers was from the ideal. */
#ifndef DEPLOY_PAGE_ANSWER_H
#define DEPLOY_PAGE_ANSWER_H

#include "deploy/report/scaling.h"
#include "deploy/report/statistics.h"

#include <stddef.h>

#define ANSWER_BYTES 4096

/* A setting of the report, which borrows its texts. */
struct answer_setting {
    const char *label;
    size_t planned, completed, diverged, failed;
    unsigned workers;
    const char
        *digest;   // of its parameters; "" if its runs differ, or cannot be compared with others
    size_t family; // settings whose bits should be equal have the same number
    struct statistics rate;                              // images per second; count 0: not known
    struct statistics accuracy;                          // percent
    struct statistics compute_ms, exchange_ms, input_ms; // of a step
};

struct answer_input {
    const struct answer_setting *settings;
    size_t count;
    const struct scaling_design *designs; // of scaling_of
    size_t design_count;
};

/* Whole sentences, a line for each, cut where a sentence ends if there are too many. */
void answer_write(const struct answer_input *input, char ret_text[ANSWER_BYTES]);

/* Whether two means differ by more than chance: see the rules. */
bool answer_differs(const struct statistics *a, const struct statistics *b, double least_ratio);

#endif
