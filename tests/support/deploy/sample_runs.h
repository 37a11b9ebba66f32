/* Run folders as a job leaves them, for tests that read them. */
#ifndef TESTS_SUPPORT_DEPLOY_SAMPLE_RUNS_H
#define TESTS_SUPPORT_DEPLOY_SAMPLE_RUNS_H

#include "deploy/report/run_folder.h"

/* What differs from run to run. NULL and 0 stand for: ring, 2 workers, 100 images a second, a
 * digest of ones, completed, no reason. */
struct sample_run {
    const char *mode;
    int workers, servers;
    double images_per_second;
    const char *digest, *bits_of, *outcome, *reason;
    double accuracy;   // at the end; 0: 0.8125
    double best;       // accuracy, of epoch 1; 0: that at the end
    double staleness;  // mean
    int target_steps;  // when a target was reached; 0: there is none
    int diverged_step; // where a loss was not finite; 0: nowhere
};

/* Writes FOLDER/NAME/summary.json with every key of the contract, and opens it. */
void sample_runs_open(const char *folder, const char *name, const struct sample_run *sample,
                      struct run_folder *ret_run);

/* The text of FOLDER/NAME; the caller frees it. The test fails if it cannot be read. */
char *sample_runs_read(const char *folder, const char *name);

#endif
