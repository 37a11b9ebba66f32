/* Which of a launcher's starts this process is. A launcher counts the processes that it starts, and
 * gives each its number in the environment, so that the programs between the launcher and the
 * member hand it on. Members tell it when they join. So a coordinator that hears of the end of a
 * process knows whether a member is that process, or another one that has taken its rank since.
 *
 * Whatever is started below the process inherits the variable, too: a notebook, a shell, and a
 * member of another job that somebody starts there. So the variable has the endpoint of the job
 * that the number is for, and the number counts for a process that joins there, by whatever name.
 *
 * A number also tells for which of the launcher's places the process was started, which need not be
 * its number in the job. A launcher starts a process for a place when the one before has ended, or
 * counts as lost with its host. */
#ifndef COMMON_SERVICE_LAUNCH_NUMBER_H
#define COMMON_SERVICE_LAUNCH_NUMBER_H

#include "common/transport/transport.h"

#include <stdbool.h>
#include <stdint.h>

#define LAUNCH_NUMBER_VARIABLE "RINGSIDE_LAUNCH"

#define LAUNCH_NUMBER_TEXT_BYTES (TRANSPORT_ENDPOINT_BYTES + 12)

#define LAUNCH_NUMBER_PLACES 8192 // more than there are members

/* The number of a start for a place; starts are counted from 1 over all places. */
static inline uint32_t launch_number_make(uint32_t start, uint32_t place)
{
    return start * LAUNCH_NUMBER_PLACES + place;
}

/* Whether a process was started for the same place as one before, after that one. */
static inline bool launch_number_follows(uint32_t later, uint32_t earlier)
{
    return earlier != 0 && later > earlier &&
           later % LAUNCH_NUMBER_PLACES == earlier % LAUNCH_NUMBER_PLACES;
}

/* What the variable has for a process that is to join the coordinator at `endpoint`:
 * "NUMBER@ENDPOINT". */
void launch_number_write(uint32_t number, const char *endpoint,
                         char ret_text[LAUNCH_NUMBER_TEXT_BYTES]);

/* The number by which this process joins the coordinator at `endpoint`. `get` is getenv, or a
 * test's own. 0: no launcher has started it for that job, or one that does not count (mpirun,
 * systemd, a person). */
uint32_t launch_number_read(char *(*get)(const char *name), const char *endpoint);

#endif
