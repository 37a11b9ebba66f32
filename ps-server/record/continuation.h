/* The run folder of a job that is resumed: what stays of its metrics, and what goes. */
#ifndef PS_SERVER_RECORD_CONTINUATION_H
#define PS_SERVER_RECORD_CONTINUATION_H

#include "common/base/status.h"

#include <stdint.h>

/* What lines of metrics.jsonl have of a rank, of steps behind a certain one. */
struct continuation_lines {
    uint64_t steps;
    double loss_steps; // each step with the mean loss of its line
};

/* Puts the lines of from/metrics.jsonl that are of steps up to `step` into folder/metrics.jsonl,
 * and removes the results of a run that was there: they are written anew at the end. The folders
 * may be the same. A file changes as a whole or not at all, unless the disk has no room for a
 * second one: then it is cut in its place. ret_lines gets what those lines have of each rank
 * (rank_count). STATUS_IO and errno. */
enum status continuation_begin(const char *from, const char *folder, uint64_t step,
                               uint32_t rank_count, struct continuation_lines *ret_lines);

/* Reads those of steps behind `begin`, of `count` ranks from `first` on; a file that is not there
 * has none. STATUS_IO and errno. */
enum status continuation_read(const char *folder, uint32_t first, uint32_t count, uint64_t begin,
                              struct continuation_lines *ret_lines);

/* Removes the results alone. STATUS_IO and errno. */
enum status continuation_remove_results(const char *folder);

#endif
