/* Repeats the runs of a comparison: on synthetic data, and in rounds. Pure. */
#ifndef DEPLOY_SWEEP_ROUNDS_H
#define DEPLOY_SWEEP_ROUNDS_H

#include "deploy/sweep/grid.h"

/* Whether a job's input can be compared with synthetic data. STATUS_INVALID with a sentence. */
enum status rounds_check_input_gap(const struct job *job, char ret_error[OPTION_ERROR_BYTES]);

/* Puts behind each run the same on synthetic data: noise of the same shape and classes, neither
 * augmented nor normalised, so that nothing of its input is left but a copy. `cells` has
 * GRID_CELLS_MAX. STATUS_INVALID with a sentence if they are too many, or a name is too long. */
enum status rounds_add_synthetic(struct grid_cell *cells, size_t *count,
                                 char ret_error[OPTION_ERROR_BYTES]);

/* Repeats all runs, in their order, `repeat` times, each time with the next seed. As above. */
enum status rounds_repeat(struct grid_cell *cells, size_t *count, uint32_t repeat,
                          char ret_error[OPTION_ERROR_BYTES]);

#endif
