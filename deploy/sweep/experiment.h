/* Experiment files: a whole sweep in an INI file.
 *
 *     [job]                            options of the job, as on the command line without dashes
 *     model = lenet5
 *     [grid]                           axes, as in --grid
 *     order = seeded:constant:0,seeded:constant:8
 *     [sweep]
 *     repeat = 3
 */
#ifndef DEPLOY_SWEEP_EXPERIMENT_H
#define DEPLOY_SWEEP_EXPERIMENT_H

#include "common/base/status.h"

#define EXPERIMENT_LINES_MAX 96

// Stands for --grid in the arguments of a file, so that a --grid of the command line wins.
#define EXPERIMENT_GRID "grid-of-experiment"

#define EXPERIMENT_LINE_MAX 256

/* Arguments that an experiment file stands for. */
struct experiment {
    char lines[EXPERIMENT_LINES_MAX][EXPERIMENT_LINE_MAX];
    int count;
};

/* Puts in the place of --experiment FILE what the file says, behind argv[0], so that the rest of
 * the command line wins. *ret_argv points into argv and experiment; it has room for argc +
 * EXPERIMENT_LINES_MAX + 1. Logs. */
enum status experiment_expand(int argc, char **argv, struct experiment *experiment, int *ret_argc,
                              char **ret_argv);

#endif
