/* Which of a launcher's starts this process is. A launcher counts the processes that it starts, and
 * gives each its number in the environment, so that the programs between the launcher and the
 * member hand it on. Members tell it when they join. So a coordinator that hears of the end of a
 * process knows whether a member is that process, or another one that has taken its rank since. */
#ifndef COMMON_SERVICE_LAUNCH_NUMBER_H
#define COMMON_SERVICE_LAUNCH_NUMBER_H

#include <stdint.h>

#define LAUNCH_NUMBER_VARIABLE "RINGSIDE_LAUNCH"

/* `get` is getenv, or a test's own. 0: no launcher has started this process, or one that does not
 * count (mpirun, systemd, a person). */
uint32_t launch_number_read(char *(*get)(const char *name));

#endif
