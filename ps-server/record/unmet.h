/* What a job was asked for, and a program of one's own makes useless. Pure.
 *
 * Of models of ours all of it is known, and refused, before the job begins. A program may make as
 * many steps as it likes, and the updates itself. */
#ifndef PS_SERVER_RECORD_UNMET_H
#define PS_SERVER_RECORD_UNMET_H

#include "ps-server/coordinator/coordinator.h"

#define UNMET_BYTES 256

/* At the start: that the job as it was asked for has an optimizer, and the program makes the
 * updates. */
void unmet_tell_optimizer(const struct coordinator *coordinator, const struct job *asked,
                          void (*tell)(void *context, const char *sentence), void *context);

/* Tells each step that was not made in a sentence, of a job that is completed. */
void unmet_tell(const struct coordinator *coordinator,
                void (*tell)(void *context, const char *sentence), void *context);

#endif
