/* Makes the keys of a job that the launcher starts, and hands them to its processes on their
 * standard input, so that no command line, file or log contains them. */
#ifndef DEPLOY_LAUNCH_HANDOVER_H
#define DEPLOY_LAUNCH_HANDOVER_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "common/security/security.h"
#include "deploy/launch/launch.h"

#include <stdbool.h>

/* Zeroed: there are no keys. */
struct handover {
    struct keys *made;            // for this job alone; owned
    char *text;                   // for the standard input of each process; owned; NULL: no keys
    const char *arguments[2 + 1]; // arguments that each process gets; NULL-terminated
};

/* Whether members meet at Unix sockets, which no other user of this host finds, and so need no
 * keys: a port on the loopback interface is in reach of everybody. Not where the user asks for tcp
 * or has keys. */
bool handover_is_needless(const struct launcher *launcher, const struct launch_options *options);

/* What the job and these options contradict each other in. Logs. */
enum status handover_check(const struct security_options *security, const struct job *job);

/* Takes the keys that the user gave, or makes new ones. Makes them on a single host, too, because
 * any of its users can connect to a port on the loopback interface. With --insecure there are no
 * keys. Logs. */
enum status handover_begin(struct handover *handover, const struct security *security);
void handover_end(struct handover *handover); // wipes; zeroed is fine

#endif
