/* The command that runs a job of a basis. */
#ifndef DEPLOY_PREDICT_ADVISE_ADVICE_COMMAND_H
#define DEPLOY_PREDICT_ADVISE_ADVICE_COMMAND_H

#include "deploy/predict/basis/basis.h"

#define ADVICE_COMMAND_BYTES 2048

/* "ringside run --mode ring --workers 8 ...": the options in which the job differs from what
 * `run` takes for granted, and its hosts. What predictions do not know is in capitals, to be filled
 * in. "" for jobs that are larger than the product has them. */
void advice_command_write(const struct basis *basis, char ret_text[ADVICE_COMMAND_BYTES]);

#endif
