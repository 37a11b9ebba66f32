/* How many steps training takes to a target, from a table that `ringside sweep` has written
 * (sweep.csv), for jobs that the table need not have.
 *
 * What an update does to the parameters follows from the images that it is of and from the
 * staleness of its gradients, whoever computes them: of the whole global batch in synchronous
 * modes, of one worker's batch where each gradient is an update. So a row says how many updates
 * training takes at so many images and so much staleness. Between two rows of equal images updates
 * are linear in the staleness. Between two numbers of images the logarithm of updates is linear in
 * that of images. Beyond the rows nothing is said, but for a staleness within 5 % of the last row.
 *
 * Rows that differ in other options (a rate, an optimizer) are recipes of their own, and are never
 * mixed. Of several, the one that takes fewest steps counts. */
#ifndef DEPLOY_PREDICT_CONVERGENCE_CONVERGENCE_H
#define DEPLOY_PREDICT_CONVERGENCE_CONVERGENCE_H

#include "common/base/status.h"
#include "common/job/job.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONVERGENCE_TEXT_BYTES 256

/* A setting of the sweep. */
struct convergence_row {
    char setting[CONVERGENCE_TEXT_BYTES]; // "mode=ps-async lr=0.1"
    char recipe[CONVERGENCE_TEXT_BYTES];  // of it, what rows are not mixed by: "lr=0.1"
    double images;                        // of an update
    double staleness;                     // mean
    double updates;                       // to the target; 0: not every run has reached it
};

struct convergence {
    struct convergence_row *rows; // (count), owned
    size_t count;
};

/* Reads a table. Logs what is wrong. convergence_finish frees it. */
enum status convergence_read(const char *file, struct convergence *ret_convergence);
void convergence_finish(struct convergence *convergence); // zeros are fine

/* What training takes to the target. */
struct target {
    double steps;   // 0: not known
    double seconds; // likewise
    char recipe[CONVERGENCE_TEXT_BYTES];
    char why[CONVERGENCE_TEXT_BYTES]; // it is not known; "" if it is
};

/* Of a job whose mode, workers and other options are set, with the images of a worker's step, the
 * staleness and the time of a step that it has. */
void convergence_find(const struct convergence *convergence, const struct job *job, double batch,
                      double staleness, double step_s, struct target *ret_target);

#endif
