/* The keys of a job that the launcher starts, and how its processes get them: on their standard
 * input, so that neither a command line nor a file nor a log has them. */
#ifndef DEPLOY_LAUNCH_HANDOVER_H
#define DEPLOY_LAUNCH_HANDOVER_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "common/security/security.h"

/* Zeroed: there are no keys. */
struct handover {
    struct keys *made;            // for this job alone; owned
    char *text;                   // for the standard input of each process; owned; NULL: no keys
    const char *arguments[2 + 1]; // that each of them gets; NULL-terminated
};

/* What the job and these options contradict each other in. Logs. */
enum status handover_check(const struct security_options *security, const struct job *job);

/* Takes the keys that the user gave, or makes new ones, on a single host too: any of its users can
 * connect to a port on the loopback interface. No keys with --insecure. Logs. */
enum status handover_begin(struct handover *handover, const struct security *security);
void handover_end(struct handover *handover); // wipes; zeroed is fine

#endif
