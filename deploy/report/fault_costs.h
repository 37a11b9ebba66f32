/* What faults (--fault), and losses that nobody has planned, have cost a job. */
#ifndef DEPLOY_REPORT_FAULT_COSTS_H
#define DEPLOY_REPORT_FAULT_COSTS_H

#include "deploy/report/run_folder.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FAULT_COLUMNS    12
#define FAULT_CELL_BYTES 64

/* How a run's last parameters compare with those of the same job without faults and losses. */
enum fault_bits { FAULT_BITS_UNKNOWN, FAULT_BITS_SAME, FAULT_BITS_OTHER };

struct fault_cost {
    uint32_t losses;      // of processes; of several at once that are no workers, one
    uint32_t joins;       // workers that have come and taken part
    uint32_t joins_unmet; // joins of --fault for which none came in time
    bool has_gone_on;     // with other processes: the next three are known
    double seconds;       // from each loss or arrival, as it was noticed, to the next step; of all
    uint64_t steps_redone;
    uint64_t bytes; // of what the job goes on from, that members fetched
    // Images a second; 0: not known. "Before" is until the first loss, "after" since training went
    // on after the last. "During" has the steps that were made again, in the time from each loss
    // until the job was as far as before: 0 if there were none. The coordinator has counted these.
    // For a job that has lost nobody, or is of an older version, they come from metrics.jsonl:
    // "during" is then between its last line before the first fault and the first one behind the
    // last step that was lost or disturbed.
    double before, during, after;
    bool has_during;      // it is known
    double behind;        // seconds that "during" covers, as the coordinator has counted
    double whole_seconds; // of the run, more than of the one without faults
    enum fault_bits bits; // UNKNOWN: there is no such one, or this one has failed
};

/* False if the run's job has no faults, and has lost nobody. The runs beside it may have one
 * without. */
bool fault_cost_find(const struct run_folder *runs, size_t count, size_t index,
                     struct fault_cost *ret_cost);

/* A row of the table, and what stands above it. */
extern const char *const fault_cost_headings[FAULT_COLUMNS];
void fault_cost_format(const struct run_folder *run, const struct fault_cost *cost,
                       char ret_cells[FAULT_COLUMNS][FAULT_CELL_BYTES]);

/* A table with a row for each run that has faults or losses, as text, and below it the faults that
 * did not strike; nothing if no run has any. */
void fault_costs_print(FILE *stream, const struct run_folder *runs, size_t count);

#endif
