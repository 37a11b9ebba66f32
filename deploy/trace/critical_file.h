/* critical_path.json of a run folder: where the time of its recorded steps went. */
#ifndef DEPLOY_TRACE_CRITICAL_FILE_H
#define DEPLOY_TRACE_CRITICAL_FILE_H

#include "common/base/status.h"

#include <stdio.h>

#define CRITICAL_FILE_NAME "critical_path.json"

/* RUN/timeline.pftrace -> RUN/critical_path.json. Logs. */
enum status critical_file_make(const char *run);

/* The sentence, the shares and what changes would bring, for people. Nothing if there is no such
 * file. */
void critical_file_print(FILE *stream, const char *run);

#endif
