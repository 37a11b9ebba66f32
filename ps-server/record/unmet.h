/* What a job was asked for at steps that it has not made. Pure.
 *
 * Where the length is known, such steps are refused before the job begins. A program of one's own
 * may make as many as it likes. */
#ifndef PS_SERVER_RECORD_UNMET_H
#define PS_SERVER_RECORD_UNMET_H

#include "ps-server/coordinator/coordinator.h"

#define UNMET_BYTES 256

/* Tells each in a sentence, of a job that is completed. */
void unmet_tell(const struct coordinator *coordinator,
                void (*tell)(void *context, const char *sentence), void *context);

#endif
