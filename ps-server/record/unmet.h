/* Options that have come to nothing because a program of one's own decided otherwise. Pure.
 *
 * With our models such options are refused before the job begins. But a program makes as many steps
 * as it likes, and may make the updates itself. */
#ifndef PS_SERVER_RECORD_UNMET_H
#define PS_SERVER_RECORD_UNMET_H

#include "ps-server/coordinator/coordinator.h"

#define UNMET_BYTES 256

/* At the start: tells the options of an optimizer that nobody uses, as the program makes the
 * updates. `asked`: the job as its options have it. */
void unmet_tell_optimizer(const struct coordinator *coordinator, const struct job *asked,
                          void (*tell)(void *context, const char *sentence), void *context);

/* Tells each step that was not made in a sentence, of a job that is completed. */
void unmet_tell(const struct coordinator *coordinator,
                void (*tell)(void *context, const char *sentence), void *context);

#endif
