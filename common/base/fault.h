/* What happens to a process when a fault of its job strikes it (--fault), and what it does to
 * itself.
 */
#ifndef COMMON_BASE_FAULT_H
#define COMMON_BASE_FAULT_H

#include "common/base/status.h"

enum fault_kind {
    FAULT_KILL,      // it is killed by SIGKILL
    FAULT_STOP,      // it is stopped by SIGSTOP, all threads of it, and continued after a time
    FAULT_PARTITION, // its sockets neither send nor receive for a time: see partition.h
    FAULT_JOIN,      // it is a worker that comes, and takes part from then on
};

/* Of the first two kinds. Kills the calling process: then it does not return. Or stops it for so
 * many seconds; STATUS_OK after that. STATUS_NO_MEMORY: there is no second process that could
 * continue it, so it was not stopped. */
enum status fault_strike(enum fault_kind kind, double seconds);

#endif
