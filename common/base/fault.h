/* What a process does to itself when a fault of its job strikes it (--fault). */
#ifndef COMMON_BASE_FAULT_H
#define COMMON_BASE_FAULT_H

#include "common/base/status.h"

enum fault_kind {
    FAULT_KILL,      // it is killed by SIGKILL
    FAULT_STOP,      // it is stopped by SIGSTOP, all threads of it, and continued after a time
    FAULT_PARTITION, // its sockets neither send nor receive for a time: see partition.h
};

/* Of the first two kinds. Kills the calling process: then it does not return. Or stops it for so
 * many seconds; STATUS_OK after that. STATUS_NO_MEMORY: there is no second process that could
 * continue it, so it was not stopped. */
enum status fault_strike(enum fault_kind kind, double seconds);

#endif
