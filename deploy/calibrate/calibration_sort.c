/* Sorts runs, and refuses those that do not go together. */
#include "deploy/calibrate/calibration_sort.h"

#include "common/base/log.h"

#include <string.h>

/* Of all runs with messages that say what keys were used for, also of those with codes. */
static enum status check_security(struct calibration_run *const *runs, size_t run_count,
                                  uint32_t batch)
{
    const struct calibration_run *first = NULL;
    for (size_t i = 0; i < run_count; i++) {
        if (runs[i]->batch != batch || runs[i]->security[0] == '\0') {
            continue;
        }
        first = first == NULL ? runs[i] : first;
        if (strcmp(first->security, runs[i]->security) != 0) {
            log_error("connections of %s had %s, and those of %s %s: encryption is much of what "
                      "messages cost, so calibrate from runs that are alike in it",
                      first->folder.path, conditions_security_text(first->security),
                      runs[i]->folder.path, conditions_security_text(runs[i]->security));
            return STATUS_INVALID;
        }
    }
    return STATUS_OK;
}

/* None of the runs is a plain one. */
static void refuse_lack(const struct calibration_sorted *sorted)
{
    if (sorted->coded_count > 0) {
        const struct calibration_run *coded = sorted->coded[0];
        log_error("%s was run with --compress %s, and shows only what codes take; calibrate from a "
                  "run without --compress as well",
                  coded->folder.path, coded->compress);
        return;
    }
    log_error("%s exchanged nothing before its last step, and shows only what workers take from "
              "each other; calibrate from a run without --sync-every as well",
              sorted->apart[0]->folder.path);
}

enum status calibration_sort(struct calibration_run *const *runs, size_t run_count, uint32_t batch,
                             struct calibration_sorted *ret_sorted)
{
    const struct calibration_run *first = NULL;
    for (size_t i = 0; i < run_count; i++) {
        if (runs[i]->is_apart) {
            ret_sorted->apart[ret_sorted->apart_count++] = runs[i];
            continue;
        }
        if (runs[i]->batch != batch) {
            ret_sorted->others[ret_sorted->other_count++] = runs[i];
            continue;
        }
        bool has_codes = calibration_run_has_codes(runs[i]);
        *(has_codes ? &ret_sorted->coded[ret_sorted->coded_count++]
                    : &ret_sorted->runs[ret_sorted->run_count++]) = runs[i];
        if (has_codes || !calibration_run_moves_values(runs[i])) {
            continue; // codes are copied also where values are lent
        }
        first = first == NULL ? runs[i] : first;
        if (strcmp(first->transport, runs[i]->transport) != 0) {
            log_error("values of %s went by %s, and those of %s by %s: files are of one transport, "
                      "so calibrate from runs with the same --transport",
                      first->folder.path, first->transport, runs[i]->folder.path,
                      runs[i]->transport);
            return STATUS_INVALID;
        }
    }
    if (ret_sorted->run_count == 0) {
        refuse_lack(ret_sorted);
        return STATUS_INVALID;
    }
    return check_security(runs, run_count, batch);
}
