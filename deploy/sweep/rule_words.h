/* Says in words what --straggler, --switch and --fault do to a job, rule by rule. Pure. */
#ifndef DEPLOY_SWEEP_RULE_WORDS_H
#define DEPLOY_SWEEP_RULE_WORDS_H

#include "deploy/sweep/run_words.h"

#include <stdbool.h>

/* "fault", "rank=2,step=100,kill" -> "worker 2 killed at step 100". False, and nothing is written,
 * if the option is none of the three, or its value has no rule. */
bool rule_words_write(const char *name, const char *value, char ret_words[RUN_WORDS_BYTES]);

#endif
