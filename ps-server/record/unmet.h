/* Options that have come to nothing. Pure.
 *
 * With our models most such options are refused before the job begins. But a program of one's own
 * makes as many steps as it likes, and may make the updates itself; and in races a worker need not
 * make the step at which a fault would strike it. */
#ifndef PS_SERVER_RECORD_UNMET_H
#define PS_SERVER_RECORD_UNMET_H

#include "ps-server/coordinator/coordinator.h"

#include <jansson.h>

#define UNMET_BYTES 256

/* At the start: tells the options of an optimizer that nobody uses, as the program makes the
 * updates. `asked`: the job as its options have it. */
void unmet_tell_optimizer(const struct coordinator *coordinator, const struct job *asked,
                          void (*tell)(void *context, const char *sentence), void *context);

/* Tells each step that was not made in a sentence, of a job that is completed. With our models, and
 * programs whose steps were known, it is told of kills and what comes behind them, and of workers
 * that did not come. */
void unmet_tell(const struct coordinator *coordinator,
                void (*tell)(void *context, const char *sentence), void *context);

/* The same as a list of sentences. The caller's. */
json_t *unmet_json(const struct coordinator *coordinator);

#endif
