/* Costs and a network for the jobs of a comparison: `ringside calibrate`, with their options. */
#ifndef DEPLOY_COMMAND_COMPARE_CALIBRATION_H
#define DEPLOY_COMMAND_COMPARE_CALIBRATION_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "common/options/options.h"

#include <stddef.h>
#include <stdint.h>

#define COMPARE_WORDS_MAX 64

/* "--model=cnn", ...: zeroed, there are none. */
struct compare_words {
    char *list[COMPARE_WORDS_MAX]; // (count) owned
    size_t count;
};

/* Copies those options of the command that costs depend on, hosts and keys, as they were given. */
enum status compare_words_take(const struct option_program *program, struct compare_words *words);
void compare_words_finish(struct compare_words *words);

/* Runs it for a worker's batch and a transport, and prints what it says. STATUS_INTERRUPTED, or
 * STATUS_INVALID if it fails: it logs why. Signals have to be blocked. */
enum status compare_calibration_run(const struct compare_words *words, uint32_t batch,
                                    enum transport_kind transport, const char *costs,
                                    const char *network);

#endif
