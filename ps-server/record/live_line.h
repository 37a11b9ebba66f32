/* The line that is rewritten on a terminal while a job runs: a bar, and the course of the loss as a
 * row of small columns. Pure. */
#ifndef PS_SERVER_RECORD_LIVE_LINE_H
#define PS_SERVER_RECORD_LIVE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_LINE_CELLS 16
#define LIVE_LINE_BYTES 512

/* The last loss of each part of the job; 0: none yet. Zeroed is empty. */
struct live_line_curve {
    double losses[LIVE_LINE_CELLS];
};

/* Losses that are not finite, or not above 0, are left out. */
void live_line_add_loss(struct live_line_curve *curve, uint64_t step, uint64_t total, double loss);

struct live_line {
    uint64_t step, total;
    const struct live_line_curve *curve;
    const char *facts; // "epoch 1  step 20/60  loss 1.2", borrowed
    const char *rest;  // what is left out first where the terminal is narrow, borrowed
    unsigned columns;  // of the terminal; 0: not known
    bool has_blocks;   // the terminal shows characters beyond ASCII
};

/* Whatever of it fits: the bar and the curve are left out before the facts are cut. */
void live_line_format(const struct live_line *line, char ret_text[LIVE_LINE_BYTES]);

#endif
