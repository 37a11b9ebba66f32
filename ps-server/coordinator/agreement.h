/* Whether workers would train the same thing. */
#ifndef PS_SERVER_COORDINATOR_AGREEMENT_H
#define PS_SERVER_COORDINATOR_AGREEMENT_H

#include "ps-server/coordinator/coordinator.h"

/* Of a worker that is ready, beside those that were before it: model, data, first parameters.
 * Otherwise writes what differs. */
bool agreement_check(const struct coordinator *coordinator, const struct message *message,
                     char *ret_why, size_t why_size);

#endif
