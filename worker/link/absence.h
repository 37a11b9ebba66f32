/* What a worker keeps for a coordinator that comes in the place of one that was lost.
 *
 * A worker of a ring trains on without its coordinator until it needs an answer (a sum, a decision,
 * the next phase, the verdict). The next coordinator knows what is in files at most. So each worker
 * tells it what it had told the one before, in short, then what it had to tell since, then asks
 * again what was not answered:
 *
 *     BACK                       who it is, and which job this is
 *     GO                         all members are back
 *     REPORT (is_repeated)       of each rank: the sum of what it had reported; each period
 *     REPORT, SNAPSHOT           what came since, in order
 *     COMMIT                     if it is not over
 *     SUM, PASSED, DONE          what waits for an answer
 *
 * Belongs to the communication thread. */
#ifndef WORKER_LINK_ABSENCE_H
#define WORKER_LINK_ABSENCE_H

#include "common/base/status.h"
#include "worker/link/outbox.h"

#include <stdbool.h>
#include <stdint.h>

struct absence_report {
    uint32_t rank;
    uint64_t step;
    struct wire_report report;
};

struct absence {
    bool is_on;                    // the job may lose its coordinator
    bool is_short;                 // there was no memory for what a coordinator has to be told
    uint32_t first;                // of the ranks
    struct absence_report *totals; // (rank_count) of what was reported of intervals; owned
    uint32_t rank_count;
    struct absence_report *periods; // (period_count) as they were reported; owned
    uint32_t period_count, period_capacity;
    struct outbox_entry **held; // (held_count) what is to be told, in order; owned
    uint32_t held_count, held_capacity;
    uint64_t snapshot_step;         // the newest that was offered, or was said to be missing
    struct outbox_entry unanswered; // PASSED or DONE, if has_unanswered
    bool has_unanswered;
    double *sum; // (sum_count) the last sum that came; owned
    uint32_t sum_count;
    // Of a program that commits: after how many steps it did, and whether the sum behind that has
    // come, by which it knows that all have.
    uint64_t commit_step, next_commit_step;
    bool has_commit, is_committing;
};

/* Of a worker that carries these ranks. */
enum status absence_begin(struct absence *absence, uint32_t first, uint32_t count);
void absence_finish(struct absence *absence); // zeroed is fine

/* The coordinator was told. */
void absence_note_told(struct absence *absence, const struct outbox_entry *entry);

/* There is nobody to tell. A sum is not kept: the trainer waits, and has it. */
void absence_hold(struct absence *absence, const struct outbox_entry *entry);

/* An answer came: a phase begins. */
void absence_note_phase(struct absence *absence);

/* A sum came. */
void absence_note_sum(struct absence *absence, const struct wire_sum *sum);

/* There is a coordinator again: gives `tell` all that it has to hear, as above but for SUM, which
 * is to be told before the last. What was held counts as told then. */
void absence_tell(struct absence *absence,
                  void (*tell)(void *context, const struct message *message), void *context);

/* The last message that waits for an answer; NULL: none does. */
const struct message *absence_unanswered(const struct absence *absence);

#endif
