/* Lets a fault of the job (--fault) strike this process. */
#ifndef COMMON_SERVICE_STRIKE_H
#define COMMON_SERVICE_STRIKE_H

#include "common/base/status.h"
#include "common/job/faults.h"

/* `who` is "worker" or "server", for the log. Does not return from a kill, and returns from a stop
 * when it is over; a partition has begun. STATUS_NO_MEMORY, and said: see fault_strike. */
enum status strike_fault(const struct fault *fault, const char *who);

#endif
