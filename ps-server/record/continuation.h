/* The run folder of a job that is resumed: what stays of its metrics, and what goes. */
#ifndef PS_SERVER_RECORD_CONTINUATION_H
#define PS_SERVER_RECORD_CONTINUATION_H

#include "common/base/status.h"

#include <stdint.h>

/* Puts the lines of from/metrics.jsonl that are of steps up to `step` into folder/metrics.jsonl,
 * and removes the results of a run that was there: they are written anew at the end. The folders
 * may be the same; a file changes as a whole or not at all. STATUS_IO and errno. */
enum status continuation_begin(const char *from, const char *folder, uint64_t step);

/* Removes the results alone. STATUS_IO and errno. */
enum status continuation_remove_results(const char *folder);

#endif
